//! What the kernel says of an interface: one question to rtnetlink.

use rustix::io::retry_on_intr;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::io;
use std::time::Duration;

// linux/rtnetlink.h, linux/netlink.h, linux/if_link.h.
const RTM_GETLINK: u16 = 18;
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_PROG_ID: u16 = 4;
/// Of an attribute's type, the bits that are no flags.
const TYPE: u16 = 0x3fff;
/// `struct nlmsghdr` and `struct ifinfomsg`.
const HEADERS: usize = 32;
/// The kernel answers at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// The program's number in the kernel; `None` for no program, no interface or no answer. In the calling thread's namespace.
pub(crate) fn program_on(index: u32) -> Option<u32> {
    let answer = ask(index).ok()?;
    let id = find(find(attributes(&answer)?, IFLA_XDP)?, IFLA_XDP_PROG_ID)?;
    Some(u32::from_ne_bytes(id.try_into().ok()?))
}

/// Whether the kernel made it (veth, TAP …): what it receives was sent on this host, and no device has finished its checksums.
pub(crate) fn is_virtual(index: u32) -> bool {
    let kind = |answer: &[u8]| {
        find(find(attributes(answer)?, IFLA_LINKINFO)?, IFLA_INFO_KIND).map(|kind| !kind.is_empty())
    };
    ask(index).ok().and_then(|answer| kind(&answer)).unwrap_or(false)
}

/// Of an answer that is about an interface.
fn attributes(answer: &[u8]) -> Option<&[u8]> {
    let (header, attributes) = answer.split_at_checked(HEADERS)?;
    let kind = u16::from_ne_bytes(header[4..6].try_into().ok()?);
    (kind == RTM_NEWLINK).then_some(attributes)
}

fn ask(index: u32) -> io::Result<Vec<u8>> {
    // Protocol 0 of netlink is rtnetlink.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let mut request = [0_u8; HEADERS];
    request[..4].copy_from_slice(&(HEADERS as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    request[20..24].copy_from_slice(&index.to_ne_bytes());
    sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = vec![0; 64 * 1024];
    let (len, _) = retry_on_intr(|| recv(&socket, &mut answer[..], RecvFlags::empty()))?;
    answer.truncate(len);
    Ok(answer)
}

/// The value of the first attribute of that type: `len` and `type` of 16 bits each, then the value, padded to 4 bytes.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let &[len_low, len_high, type_low, type_high] = attributes.first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([len_low, len_high]));
        let value = attributes.get(4..len)?;
        if u16::from_ne_bytes([type_low, type_high]) & TYPE == wanted {
            return Some(value);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
}
