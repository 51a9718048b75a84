//! UDP sockets of tunnels: bound as a group, many datagrams of one length in one call, and the DS field beside the bytes.

use super::parts::Part;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// `linux/udp.h`.
const UDP_SEGMENT: i32 = 103;
const UDP_GRO: i32 = 104;
const UDP_NO_CHECK6_TX: i32 = 101;
const UDP_NO_CHECK6_RX: i32 = 102;
/// `linux/in.h`, `linux/in6.h`: never fragmented, and refused when longer than the path takes.
const PMTUDISC_DO: i32 = 2;
/// Room for the ancillary data of one call: two values of at most 4 bytes, each with its header, aligned.
const CONTROL: usize = 64;

/// Aligned as `cmsghdr` has to be.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// What came with received bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    /// Bytes.
    pub(crate) len: usize,
    /// Bytes of each datagram in them but the last, which may be shorter; 0: it is one.
    pub(crate) segment: usize,
    /// The outer DS field.
    pub(crate) ds: u8,
}

/// A UDP socket in the calling thread's namespace, of the family of `like`.
pub(crate) fn socket(like: IpAddr) -> io::Result<OwnedFd> {
    let family = if like.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: `fd` was just made and belongs to no one else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    if like.is_ipv6() {
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    Ok(socket)
}

/// Has it send by one interface alone, and know what addresses of that one's link mean.
pub(crate) fn bind_to(socket: impl AsFd, interface: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, interface as i32)
}

/// Sets an option whose value is an `int`.
pub(crate) fn set(socket: impl AsFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    super::packet::set_int(socket, level, option, value)
}

/// Lets it receive runs of datagrams at once, each with its DS field.
pub(crate) fn receive_runs(socket: impl AsFd, is_v4: bool) -> io::Result<()> {
    set(&socket, libc::SOL_UDP, UDP_GRO, 1)?;
    match is_v4 {
        true => set(&socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
        false => set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
    }
}

/// Never fragments what it sends, and sends it with this TTL.
pub(crate) fn send_whole(socket: impl AsFd, is_v4: bool, ttl: u8) -> io::Result<()> {
    match is_v4 {
        true => {
            set(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, PMTUDISC_DO)?;
            set(&socket, libc::IPPROTO_IP, libc::IP_TTL, ttl.into())
        }
        false => {
            set(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, PMTUDISC_DO)?;
            set(&socket, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, ttl.into())
        }
    }
}

/// Has it send without UDP's checksum (RFC 768; over IPv6 RFC 6935), and over IPv6 receive what has none. Over IPv4 every socket does.
///
/// The kernel cuts no runs then (`UDP_SEGMENT`): [`send_apart`].
pub(crate) fn without_checksum(socket: impl AsFd, is_v4: bool) -> io::Result<()> {
    if is_v4 {
        return set(&socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1);
    }
    let options = [UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX];
    options.into_iter().try_for_each(|option| set(&socket, libc::SOL_UDP, option, 1))
}

/// Bytes of the longest packet that the path to the connected peer takes, IP header included.
pub(crate) fn path_mtu(socket: impl AsFd, is_v4: bool) -> io::Result<u32> {
    let (level, option) = match is_v4 {
        true => (libc::IPPROTO_IP, libc::IP_MTU),
        false => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    super::packet::get_int(socket, level, option).map(|mtu| mtu as u32)
}

/// An address as the kernel takes it.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    storage: libc::sockaddr_in6,
    len: u32,
}

/// Binds to an address and port.
pub(crate) fn bind(socket: impl AsFd, address: SocketAddr) -> io::Result<()> {
    let Address { storage, len } = Address::new(address);
    // SAFETY: `storage` holds an address of `len` bytes.
    check(unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const storage).cast(), len) })?;
    Ok(())
}

/// The address and port that it is bound to.
pub(crate) fn local(socket: impl AsFd) -> io::Result<SocketAddr> {
    let mut address = Address::new(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0));
    let name = (&raw mut address.storage).cast();
    // SAFETY: the kernel writes an address of at most `len` bytes, which `storage` has.
    check(unsafe { libc::getsockname(socket.as_fd().as_raw_fd(), name, &raw mut address.len) })?;
    Ok(address.peer())
}

/// Finds the path there.
///
/// # Errors
/// There is no route.
pub(crate) fn connect(socket: impl AsFd, address: SocketAddr) -> io::Result<()> {
    let Address { storage, len } = Address::new(address);
    // SAFETY: `storage` holds an address of `len` bytes.
    check(unsafe { libc::connect(socket.as_fd().as_raw_fd(), (&raw const storage).cast(), len) })?;
    Ok(())
}

/// Forgets the peer, and the address that the path there gave the socket.
pub(crate) fn disconnect(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: all-zero is a value of `sockaddr`, of the family `AF_UNSPEC`.
    let nowhere: libc::sockaddr = unsafe { zeroed() };
    let (address, len) = (&raw const nowhere, size_of::<libc::sockaddr>() as u32);
    // SAFETY: `address` is one of `len` bytes.
    check(unsafe { libc::connect(socket.as_fd().as_raw_fd(), address, len) })?;
    Ok(())
}

/// Sends the parts as one datagram, or, with a segment length, as datagrams of that length (the last may be shorter), under this DS field.
pub(crate) fn send(
    socket: impl AsFd,
    to: &Address,
    parts: &[Part<'_>],
    segment: Option<u16>,
    ds: u8,
) -> io::Result<()> {
    let mut control = Control([0; CONTROL]);
    let is_v4 = i32::from(to.storage.sin6_family) == libc::AF_INET;
    // SAFETY: all-zero is a value of `msghdr`.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_name = (&raw const to.storage).cast_mut().cast();
    message.msg_namelen = to.len;
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    let (level, kind) = ds_message(is_v4);
    let mut used = put(&mut control, 0, level, kind, &i32::from(ds).to_ne_bytes());
    if let Some(segment) = segment {
        used = put(&mut control, used, libc::SOL_UDP, UDP_SEGMENT, &segment.to_ne_bytes());
    }
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = used as _;
    // SAFETY: the kernel only reads: an address of `len` bytes, parts that their borrows keep mapped, `used` bytes of whole messages.
    let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const message, 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends datagrams of `segment` bytes (the last may be shorter) one by one, up to the first that is refused.
pub(crate) fn send_apart(
    socket: impl AsFd,
    to: &Address,
    bytes: &[u8],
    segment: usize,
    ds: u8,
) -> io::Result<()> {
    let mut datagrams = bytes.chunks(segment.max(1));
    datagrams.try_for_each(|datagram| send(&socket, to, &[Part::private(datagram)], None, ds))
}

/// Receives a run of datagrams.
pub(crate) fn receive(socket: impl AsFd, is_v4: bool, into: &mut [u8]) -> io::Result<Arrived> {
    receive_named(socket, is_v4, into, None)
}

/// The same, and who sent it.
pub(crate) fn receive_from(
    socket: impl AsFd,
    is_v4: bool,
    into: &mut [u8],
) -> io::Result<(Arrived, SocketAddr)> {
    let none: IpAddr =
        if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let mut from = Address::new(SocketAddr::new(none, 0));
    let arrived = receive_named(socket, is_v4, into, Some(&mut from))?;
    Ok((arrived, from.peer()))
}

fn receive_named(
    socket: impl AsFd,
    is_v4: bool,
    into: &mut [u8],
    from: Option<&mut Address>,
) -> io::Result<Arrived> {
    let mut control = Control([0; CONTROL]);
    let mut iovec = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero is a value of `msghdr`.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut iovec;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    if let Some(from) = from {
        message.msg_name = (&raw mut from.storage).cast();
        message.msg_namelen = size_of::<libc::sockaddr_in6>() as u32;
    }
    // SAFETY: the kernel writes at most `into.len()` bytes there, `CONTROL` bytes of messages, and an address into all of `from`'s storage.
    let len = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, 0) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    let mut arrived = Arrived { len, ..Arrived::default() };
    let written = message.msg_controllen as usize;
    let ds = ds_message(is_v4);
    for (level, kind, value) in messages(&control.0[..written.min(CONTROL)]) {
        match (level, kind) {
            (libc::SOL_UDP, UDP_GRO) => arrived.segment = number(value) as usize,
            pair if pair == ds => arrived.ds = number(value) as u8,
            _ => {}
        }
    }
    Ok(arrived)
}

/// Level and type of the message that holds the DS field, both ways.
fn ds_message(is_v4: bool) -> (i32, i32) {
    if is_v4 { (libc::IPPROTO_IP, libc::IP_TOS) } else { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) }
}

/// Appends a control message; returns the bytes used.
fn put(control: &mut Control, at: usize, level: i32, kind: i32, value: &[u8]) -> usize {
    let len = size_of::<libc::cmsghdr>() + value.len();
    let end = at + len.next_multiple_of(size_of::<usize>());
    let mut write =
        |at: usize, bytes: &[u8]| control.0[at..at + bytes.len()].copy_from_slice(bytes);
    write(at, &len.to_ne_bytes());
    write(at + size_of::<usize>(), &level.to_ne_bytes());
    write(at + size_of::<usize>() + 4, &kind.to_ne_bytes());
    write(at + size_of::<libc::cmsghdr>(), value);
    end
}

/// The control messages in these bytes: level, type, value.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    std::iter::from_fn(move || {
        let header = bytes.get(..HEADER)?;
        let len = usize::from_ne_bytes(header[..size_of::<usize>()].try_into().ok()?);
        let int = |at: usize| Some(i32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let (level, kind) = (int(size_of::<usize>())?, int(size_of::<usize>() + 4)?);
        let value = bytes.get(HEADER..len)?;
        bytes = bytes.get(len.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
        Some((level, kind, value))
    })
}

/// A value of 1, 2 or 4 bytes, as the kernel writes them here.
fn number(value: &[u8]) -> u32 {
    match *value {
        [one, ..] if value.len() == 1 => one.into(),
        [low, high] => u16::from_ne_bytes([low, high]).into(),
        [a, b, c, d, ..] => u32::from_ne_bytes([a, b, c, d]),
        _ => 0,
    }
}

impl Address {
    /// Whose it is. In both families' addresses the port is the second word.
    pub(crate) fn peer(&self) -> SocketAddr {
        let ip: IpAddr = match i32::from(self.storage.sin6_family) {
            libc::AF_INET => Ipv4Addr::from(self.storage.sin6_flowinfo.to_ne_bytes()).into(),
            _ => Ipv6Addr::from(self.storage.sin6_addr.s6_addr).into(),
        };
        SocketAddr::new(ip, u16::from_be(self.storage.sin6_port))
    }

    /// Of a peer.
    pub(crate) fn new(address: SocketAddr) -> Self {
        // SAFETY: all-zero is a value of `sockaddr_in6`.
        let mut storage: libc::sockaddr_in6 = unsafe { zeroed() };
        storage.sin6_port = address.port().to_be();
        let len = match address {
            SocketAddr::V6(address) => {
                storage.sin6_family = libc::AF_INET6 as u16;
                storage.sin6_addr.s6_addr = address.ip().octets();
                storage.sin6_scope_id = address.scope_id();
                size_of::<libc::sockaddr_in6>()
            }
            SocketAddr::V4(address) => {
                // `sockaddr_in` lies in the first 16 of the 28 bytes: family, port, and the address where the flow label is.
                storage.sin6_family = libc::AF_INET as u16;
                storage.sin6_flowinfo = u32::from_ne_bytes(address.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
        };
        Self { storage, len: len as u32 }
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
