//! Packet sockets: addresses, options, and many messages in one call.

use super::parts::Part;
use crate::batch::BODIES;
use std::io::{self, IoSliceMut};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

pub(crate) const PACKET_FANOUT: i32 = 18;
pub(crate) const PACKET_IGNORE_OUTGOING: i32 = 23;
pub(crate) const PACKET_AUXDATA: i32 = 8;
pub(crate) const PACKET_VNET_HDR: i32 = 15;
const PACKET_ADD_MEMBERSHIP: i32 = 1;
const PACKET_STATISTICS: i32 = 6;
const PACKET_MR_PROMISC: u16 = 1;
const PACKET_MR_ALLMULTI: u16 = 2;

/// `struct tpacket_auxdata` (linux/if_packet.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AuxData {
    pub(crate) status: u32,
    pub(crate) len: u32,
    pub(crate) snaplen: u32,
    pub(crate) mac: u16,
    pub(crate) net: u16,
    pub(crate) vlan_tci: u16,
    pub(crate) vlan_tpid: u16,
}

/// One message received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    /// Bytes written to the buffers.
    pub(crate) len: usize,
    /// The frame was longer than the buffers.
    pub(crate) truncated: bool,
    /// What the kernel says about the frame.
    pub(crate) aux: AuxData,
}

/// A packet socket in the calling thread's namespace, receiving nothing until it is bound.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: `fd` was just made and belongs to no one else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds to an interface; `protocol` is `ETH_P_ALL` to receive, 0 to send only.
pub(crate) fn bind(socket: impl AsFd, index: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: `address` is a whole sockaddr_ll and `len` its size.
    check(unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(())
}

/// Whether the interface that the socket is bound to still exists (the kernel forgets it when it goes).
pub(crate) fn is_bound(socket: impl AsFd) -> io::Result<bool> {
    // SAFETY: all-zero is a value of `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut len = size_of::<libc::sockaddr_ll>() as u32;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `len` bytes to `address`.
    check(unsafe { libc::getsockname(fd, (&raw mut address).cast(), &raw mut len) })?;
    Ok(address.sll_ifindex > 0)
}

/// Sets an option whose value is an `int`.
pub(crate) fn set_int(socket: impl AsFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let len = size_of::<i32>() as u32;
    // SAFETY: `value` is `len` bytes long and lives for the whole call.
    check(unsafe {
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw const value).cast(), len)
    })?;
    Ok(())
}

/// Reads an option whose value is an `int`.
pub(crate) fn get_int(socket: impl AsFd, level: i32, option: i32) -> io::Result<i32> {
    let (mut value, mut len) = (0_i32, size_of::<i32>() as u32);
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `len` bytes to `value`.
    check(unsafe { libc::getsockopt(fd, level, option, (&raw mut value).cast(), &raw mut len) })?;
    Ok(value)
}

/// Takes frames for any MAC address while the socket lives.
pub(crate) fn join_promiscuous(socket: impl AsFd, index: u32) -> io::Result<()> {
    join(socket, index, PACKET_MR_PROMISC)
}

/// Takes frames for any group while the socket lives: there are drivers that filter those even when promiscuous.
pub(crate) fn join_all_multicast(socket: impl AsFd, index: u32) -> io::Result<()> {
    join(socket, index, PACKET_MR_ALLMULTI)
}

fn join(socket: impl AsFd, index: u32, kind: u16) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: kind,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    let (fd, len) = (socket.as_fd().as_raw_fd(), size_of::<libc::packet_mreq>() as u32);
    let value = (&raw const membership).cast();
    // SAFETY: `membership` is `len` bytes long and lives for the whole call.
    check(unsafe { libc::setsockopt(fd, libc::SOL_PACKET, PACKET_ADD_MEMBERSHIP, value, len) })?;
    Ok(())
}

/// Frames that found the socket's buffer full since the last call (`tp_drops`; reading resets it).
pub(crate) fn take_drops(socket: impl AsFd) -> io::Result<u32> {
    // struct tpacket_stats: packets, drops.
    let (mut stats, mut len) = ([0_u32; 2], size_of::<[u32; 2]>() as u32);
    let fd = socket.as_fd().as_raw_fd();
    let value = stats.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `len` bytes to `stats`.
    check(unsafe {
        libc::getsockopt(fd, libc::SOL_PACKET, PACKET_STATISTICS, value, &raw mut len)
    })?;
    Ok(stats[1])
}

/// Room for one control message with an `AuxData`, aligned as `struct cmsghdr`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// Receives without waiting: one message into each element of `buffers`, at most [`BODIES`]; returns how many.
pub(crate) fn receive<const PARTS: usize>(
    socket: impl AsFd,
    buffers: &mut [[IoSliceMut<'_>; PARTS]],
    received: &mut [Received; BODIES],
) -> io::Result<usize> {
    // SAFETY: all-zero is a value of `mmsghdr`: null pointers and zero lengths.
    let mut messages: [libc::mmsghdr; BODIES] = unsafe { zeroed() };
    let mut controls = [Control([0; 64]); BODIES];
    let count = buffers.len().min(BODIES);
    for ((message, control), buffer) in
        messages.iter_mut().zip(&mut controls).zip(buffers.iter_mut())
    {
        // `IoSliceMut` is laid out as `iovec`.
        message.msg_hdr.msg_iov = buffer.as_mut_ptr().cast();
        message.msg_hdr.msg_iovlen = buffer.len();
        message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = control.0.len();
    }
    let (fd, vector) = (socket.as_fd().as_raw_fd(), messages.as_mut_ptr());
    // SAFETY: the first `count` headers name memory borrowed mutably for the whole call; there is no timeout.
    let filled = unsafe {
        libc::recvmmsg(fd, vector, count as u32, libc::MSG_DONTWAIT, std::ptr::null_mut())
    };
    let filled = check(filled)? as usize;
    for (message, received) in messages[..filled].iter().zip(received.iter_mut()) {
        *received = Received {
            len: message.msg_len as usize,
            truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            aux: aux_data(&message.msg_hdr),
        };
    }
    Ok(filled)
}

/// The frame's `AuxData`, if the kernel wrote one.
fn aux_data(message: &libc::msghdr) -> AuxData {
    // SAFETY: `message` was filled by recvmmsg, and its control buffer is alive in the caller.
    let control = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: CMSG_FIRSTHDR returns null or a pointer to a whole header inside the control buffer.
    let Some(header) = (unsafe { control.as_ref() }) else { return AuxData::default() };
    // SAFETY: CMSG_LEN only computes.
    let whole = header.cmsg_len >= unsafe { libc::CMSG_LEN(size_of::<AuxData>() as u32) } as usize;
    if (header.cmsg_level, header.cmsg_type, whole) != (libc::SOL_PACKET, PACKET_AUXDATA, true) {
        return AuxData::default();
    }
    // SAFETY: the header is inside the buffer, so is what follows it, as its length says.
    let value = unsafe { libc::CMSG_DATA(control) };
    // SAFETY: `value` begins the bytes of an `AuxData`, which any bit pattern is; it may be unaligned.
    unsafe { value.cast::<AuxData>().read_unaligned() }
}

/// Sends without waiting: each element of `messages` is one frame, at most [`BODIES`]; returns how many were taken.
pub(crate) fn send(socket: impl AsFd, messages: &[&[Part<'_>]]) -> io::Result<usize> {
    // SAFETY: all-zero is a value of `mmsghdr`: null pointers and zero lengths.
    let mut headers: [libc::mmsghdr; BODIES] = unsafe { zeroed() };
    let count = messages.len().min(BODIES);
    for (header, message) in headers.iter_mut().zip(messages) {
        // `Part` is laid out as `iovec`; the kernel only reads through it.
        header.msg_hdr.msg_iov = message.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iovlen = message.len();
    }
    let (fd, vector) = (socket.as_fd().as_raw_fd(), headers.as_mut_ptr());
    // SAFETY: the first `count` headers name memory borrowed for the whole call.
    check(unsafe { libc::sendmmsg(fd, vector, count as u32, libc::MSG_DONTWAIT) })
        .map(|sent| sent as usize)
}

/// Lets [`send_at`] work.
pub(crate) fn take_times(socket: impl AsFd) -> io::Result<()> {
    // struct sock_txtime: clock and flags.
    let (times, fd) = ([libc::CLOCK_MONOTONIC, 0], socket.as_fd().as_raw_fd());
    let (value, len) = ((&raw const times).cast(), size_of_val(&times) as u32);
    // SAFETY: `times` is `len` bytes long and lives for the whole call.
    check(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_TXTIME, value, len) })?;
    Ok(())
}

/// Sends one frame with a time to leave.
pub(crate) fn send_at(socket: impl AsFd, parts: &[Part<'_>], time: u64) -> io::Result<()> {
    let mut control = Control([0; 64]);
    // SAFETY: all-zero is a value of `msghdr`: null pointers and zero lengths.
    let mut message: libc::msghdr = unsafe { zeroed() };
    // `Part` is laid out as `iovec`; the kernel only reads through it.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len();
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE only computes.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u64>() as u32) } as usize;
    // SAFETY: CMSG_LEN only computes.
    let cmsg_len = unsafe { libc::CMSG_LEN(size_of::<u64>() as u32) } as usize;
    let header =
        libc::cmsghdr { cmsg_len, cmsg_level: libc::SOL_SOCKET, cmsg_type: libc::SCM_TXTIME };
    // SAFETY: it only computes where the buffer begins, which is longer than a header.
    let at = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: the control buffer is aligned as a header, and longer.
    unsafe { at.write(header) };
    // SAFETY: it only computes where the header's value begins.
    let value = unsafe { libc::CMSG_DATA(at) };
    // SAFETY: `msg_controllen` bytes of the buffer hold the header and, behind it, the time.
    unsafe { value.cast::<u64>().write_unaligned(time) };
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the message's memory is borrowed, and its control buffer lives, for the whole call.
    let sent = unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
