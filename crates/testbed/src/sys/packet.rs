//! A raw packet socket on one interface of the calling thread's namespace.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const ETH_P_ALL: u16 = 3;
const PACKET_AUXDATA: libc::c_int = 8;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;

/// Bytes that wait for a reader who is late. Chosen: thousands of small frames, several times what any case sends at once.
const ROOM: libc::c_int = 4 << 20;

/// `struct tpacket_auxdata` (linux/if_packet.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct AuxData {
    status: u32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
}

/// Room for one control message, aligned as `struct cmsghdr`.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// The socket: sends frames as they are, receives what comes in.
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens it on an interface; a receive waits for at most `patience`.
    pub fn open(interface: &str, patience: Duration) -> io::Result<Self> {
        let name = std::ffi::CString::new(interface)?;
        // SAFETY: `name` is a live C string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        check(fd as isize)?;
        // SAFETY: `fd` was just made and belongs to no one else.
        let socket = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        socket.set(libc::SOL_PACKET, PACKET_AUXDATA, 1)?;
        socket.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, ROOM)?;
        let timeout = libc::timeval {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_usec: patience.subsec_micros().into(),
        };
        socket.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, timeout)?;
        socket.bind(index)?;
        Ok(socket)
    }

    fn set<T: Copy>(&self, level: libc::c_int, option: libc::c_int, value: T) -> io::Result<()> {
        let (fd, len) = (self.0.as_raw_fd(), size_of::<T>() as u32);
        // SAFETY: `value` is `len` bytes long and lives for the whole call.
        let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), len) };
        check(result as isize).map(drop)
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: ETH_P_ALL.to_be(),
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let (fd, len) = (self.0.as_raw_fd(), size_of::<libc::sockaddr_ll>() as u32);
        // SAFETY: `address` is a whole sockaddr_ll and `len` its size.
        check(unsafe { libc::bind(fd, (&raw const address).cast(), len) } as isize).map(drop)
    }

    /// Sends one frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let fd = self.0.as_raw_fd();
        // SAFETY: `frame` is borrowed for the whole call.
        check(unsafe { libc::send(fd, frame.as_ptr().cast(), frame.len(), 0) }).map(drop)
    }

    /// The next frame, with the outer VLAN tag that the kernel keeps beside it put back in.
    pub fn receive(&self) -> io::Result<Vec<u8>> {
        let taken = || crate::unbroken(|| self.take(0));
        match taken() {
            // Told once of an interface that was down meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => taken(),
            result => result,
        }
    }

    /// The next frame if one waits; an interface that went down has none.
    pub fn receive_waiting(&self) -> io::Result<Option<Vec<u8>>> {
        match self.take(libc::MSG_DONTWAIT) {
            Ok(frame) => Ok(Some(frame)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENETDOWN)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn take(&self, flags: libc::c_int) -> io::Result<Vec<u8>> {
        let mut frame = vec![0_u8; 1 << 16];
        let mut control = Control([0; 64]);
        let mut vector = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        // SAFETY: all-zero is a value of `msghdr`: null pointers and zero lengths.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len();
        // SAFETY: `message` names memory borrowed mutably for the whole call.
        let len = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) };
        frame.truncate(check(len)? as usize);
        let aux = aux_data(&message);
        if aux.status & TP_STATUS_VLAN_VALID != 0 {
            let tag = u32::from(aux.vlan_tpid) << 16 | u32::from(aux.vlan_tci);
            frame.splice(12..12, tag.to_be_bytes());
        }
        Ok(frame)
    }
}

fn aux_data(message: &libc::msghdr) -> AuxData {
    // SAFETY: `message` was filled by recvmsg, and its control buffer is alive in the caller.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: CMSG_FIRSTHDR returns null or a pointer to a whole header inside the control buffer.
    let Some(found) = (unsafe { header.as_ref() }) else { return AuxData::default() };
    assert_eq!((found.cmsg_level, found.cmsg_type), (libc::SOL_PACKET, PACKET_AUXDATA));
    // SAFETY: the header is inside the buffer, so is what follows it.
    let value = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: the kernel wrote a whole `tpacket_auxdata` there; it may be unaligned.
    unsafe { value.cast::<AuxData>().read_unaligned() }
}

fn check(result: isize) -> io::Result<isize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
