//! `ioctl`s of TAP devices and ethtool.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Longest interface name, with the final 0.
pub(crate) const NAME_SIZE: usize = libc::IFNAMSIZ;

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETPERSIST: libc::c_ulong = 0x4004_54cb;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;
const TUNGETIFF: libc::c_ulong = 0x8004_54d2;
const TUNGETDEVNETNS: libc::c_ulong = 0x54e3;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// An interface's name as the kernel takes it; the rest is 0.
#[derive(Clone, Copy)]
pub(crate) struct Name([libc::c_char; NAME_SIZE]);

impl Name {
    /// `None` unless the kernel would take the name.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let allowed = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':');
        let fits = !name.is_empty() && name.len() < NAME_SIZE && name != "." && name != "..";
        (fits && name.as_bytes().iter().all(allowed)).then(|| {
            let mut bytes = [0; NAME_SIZE];
            bytes.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
            Self(bytes)
        })
    }
}

/// Makes the file a queue of the TAP `name`, creating the interface if it is not there.
pub(crate) fn tun_set_interface(file: impl AsFd, name: Name, flags: i32) -> io::Result<()> {
    let request = libc::ifreq {
        ifr_name: name.0,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags as libc::c_short },
    };
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which `request` is for the whole call.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), TUNSETIFF, &raw const request) })
}

/// Whether the interface outlives its last file.
pub(crate) fn tun_set_persistent(file: impl AsFd, persistent: bool) -> io::Result<()> {
    // SAFETY: TUNSETPERSIST takes a number, not a pointer.
    check(unsafe {
        libc::ioctl(file.as_fd().as_raw_fd(), TUNSETPERSIST, libc::c_long::from(persistent))
    })
}

/// Which offloads the reader of the file takes (`TUN_F_…`).
pub(crate) fn tun_set_offload(file: impl AsFd, features: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number, not a pointer.
    check(unsafe {
        libc::ioctl(file.as_fd().as_raw_fd(), TUNSETOFFLOAD, libc::c_ulong::from(features))
    })
}

/// Length of the virtio-net header before each frame.
pub(crate) fn tun_set_header_len(file: impl AsFd, len: i32) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one `int`, which `len` is for the whole call.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), TUNSETVNETHDRSZ, &raw const len) })
}

/// The namespace that the file's TAP is in now.
pub(crate) fn tun_netns(file: impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: TUNGETDEVNETNS takes nothing and returns a descriptor.
    let netns = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), TUNGETDEVNETNS) };
    check(netns)?;
    // SAFETY: the kernel has just made it, for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(netns) })
}

/// The name that the file's TAP has now.
pub(crate) fn tun_name(file: impl AsFd) -> io::Result<String> {
    let mut request = libc::ifreq {
        ifr_name: [0; NAME_SIZE],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: 0 },
    };
    // SAFETY: TUNGETIFF writes a `struct ifreq`, which `request` is for the whole call.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), TUNGETIFF, &raw mut request) })?;
    let name = request.ifr_name.iter().take_while(|&&byte| byte != 0);
    Ok(name.map(|&byte| char::from(byte as u8)).collect())
}

/// Hands `command` to the interface's ethtool interface and lets the kernel write its answer into it.
///
/// `command` begins with the `ETHTOOL_…` number. The kernel uses a fixed number of bytes for each number, so the buffer is
/// copied into one larger than any that suiro uses.
///
/// # Panics
/// When `command` is longer than [`ETHTOOL_MAX`]: a bug of ours.
pub(crate) fn ethtool(socket: impl AsFd, name: Name, command: &mut [u8]) -> io::Result<()> {
    let mut buffer = [0_u64; ETHTOOL_MAX / 8];
    let bytes = buffer.as_mut_ptr().cast::<u8>();
    assert!(command.len() <= ETHTOOL_MAX, "an ethtool command of {} bytes", command.len());
    // SAFETY: `bytes` begins ETHTOOL_MAX writable bytes, of which `command` is at most as long; both are ours.
    unsafe { bytes.copy_from_nonoverlapping(command.as_ptr(), command.len()) };
    let request = libc::ifreq {
        ifr_name: name.0,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: bytes.cast() },
    };
    // SAFETY: SIOCETHTOOL reads `request` and the structure that its data points to, which is longer than any structure
    // for the commands in `crate::ethtool`, and lives for the whole call.
    check(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCETHTOOL, &raw const request) })?;
    // SAFETY: as above, the other way.
    unsafe { command.as_mut_ptr().copy_from_nonoverlapping(bytes, command.len()) };
    Ok(())
}

/// Room for an ethtool command: `struct ethtool_link_settings` with three masks of at most 127 words is the longest.
pub(crate) const ETHTOOL_MAX: usize = 2048;

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_refuses_are_refused() {
        for bad in ["", ".", "..", "a/b", "a b", "a:1", "sixteen-bytes-xx", "ä"] {
            assert!(Name::new(bad).is_none(), "{bad}");
        }
        assert!(Name::new("fifteen-bytes-x").is_some());
    }
}
