//! What a driver's XDP can do, as the kernel tells since Linux 6.3: the generic netlink family `netdev`
//! (`Documentation/netlink/specs/netdev.yaml`).
//!
//! Two requests: the family's number by its name, then the device. Message header, 16 bytes: `len` 0..4, `type` 4..6, `flags` 6..8,
//! `sequence` 8..12, `port` 12..16; `struct genlmsghdr`, 4 bytes: `cmd`, `version`; attributes: `len` 0..2, `type` 2..4, value padded to 4.

use rustix::io::retry_on_intr;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// What is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XdpFeatures {
    /// There is no such interface.
    NoInterface,
    /// The kernel does not say.
    Unknown,
    /// What it says.
    Known {
        /// Programs run in the driver.
        basic: bool,
        /// They may send frames elsewhere.
        redirect: bool,
    },
}

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
/// `enum netdev_xdp_act`.
const BASIC: u64 = 1;
const REDIRECT: u64 = 2;

const HEADERS: usize = 16 + 4;

/// Asks about an interface of the calling thread's network namespace.
pub fn xdp_features(name: &str) -> XdpFeatures {
    let Ok(index) = index(name) else { return XdpFeatures::NoInterface };
    match ask(index) {
        Ok(Some(bits)) => {
            XdpFeatures::Known { basic: bits & BASIC != 0, redirect: bits & REDIRECT != 0 }
        }
        _ => XdpFeatures::Unknown,
    }
}

fn index(name: &str) -> io::Result<u32> {
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
}

fn ask(index: u32) -> io::Result<Option<u64>> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::GENERIC),
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(2)))?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    let name = b"netdev\0";
    let family =
        exchange(&socket, &request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, name))?;
    let Some(family) =
        attribute(&family, CTRL_ATTR_FAMILY_ID).and_then(|value| value.first_chunk())
    else {
        return Ok(None);
    };
    let family = u16::from_ne_bytes(*family);
    let device = request(family, NETDEV_CMD_DEV_GET, NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes());
    let device = exchange(&socket, &device)?;
    let bits = attribute(&device, NETDEV_A_DEV_XDP_FEATURES).and_then(|value| value.first_chunk());
    Ok(bits.map(|bits| u64::from_ne_bytes(*bits)))
}

/// A request with one attribute.
fn request(family: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADERS];
    bytes[4..6].copy_from_slice(&family.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    bytes[16..18].copy_from_slice(&[command, 1]);
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// The attributes of the answer.
fn exchange(socket: &OwnedFd, request: &[u8]) -> io::Result<Vec<u8>> {
    rustix::net::send(socket, request, SendFlags::empty())?;
    let mut answer = vec![0; 16 * 1024];
    let (length, _) =
        retry_on_intr(|| rustix::net::recv(socket, &mut answer[..], RecvFlags::empty()))?;
    answer.truncate(length);
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    match kind {
        Some(kind) if kind != NLMSG_ERROR && answer.len() >= HEADERS => {
            Ok(answer.split_off(HEADERS))
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// The value of an attribute; stops at the first one that does not fit.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let head: [u8; 4] = *bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = bytes.get(4..length)?;
        if u16::from_ne_bytes([head[2], head[3]]) == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_behind_others_and_a_short_one_is_none() {
        let mut bytes = request(1, 2, 7, b"abcde").split_off(HEADERS);
        bytes.extend(request(1, 2, 3, &9u64.to_ne_bytes()).split_off(HEADERS));
        assert_eq!(attribute(&bytes, 7), Some(&b"abcde"[..]));
        assert_eq!(attribute(&bytes, 3), Some(&9u64.to_ne_bytes()[..]));
        assert_eq!(attribute(&bytes, 4), None);
        assert_eq!(attribute(&bytes[..bytes.len() - 1], 3), None);
    }

    #[test]
    fn an_interface_that_is_not_there_is_told_from_one_of_which_nothing_is_known() {
        assert_eq!(xdp_features("no-such-if"), XdpFeatures::NoInterface);
        assert_ne!(xdp_features("lo"), XdpFeatures::NoInterface);
    }
}
