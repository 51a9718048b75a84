//! One blocking netlink socket: requests, answers, and changes of interfaces.

use crate::codec::{
    self, Message, NLM_F_DUMP, NLMSG_DONE, NLMSG_ERROR, RTM_GETLINK, RTM_GETNSID, RTM_NEWLINK,
    Request, messages, read_u32, terminated,
};
use crate::link::{self, Link};
use rustix::io::retry_on_intr;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// One message with all attributes of an interface with many virtual functions stays below this.
pub(crate) const DATAGRAM: usize = 64 * 1024;
/// The kernel answers at once; a bound so that a bug cannot hang the control thread.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request socket.
pub struct Netlink {
    socket: OwnedFd,
    sequence: Cell<u32>,
}

/// What to change on an interface.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// Administratively up or down.
    Up(bool),
    /// Its MTU.
    Mtu(u32),
    /// Its MAC address.
    Mac([u8; 6]),
}

impl Netlink {
    /// A socket in the calling thread's namespace.
    pub fn new() -> io::Result<Self> {
        Self::of(None)
    }

    /// A socket of another protocol than `NETLINK_ROUTE`.
    pub(crate) fn of(protocol: Option<Protocol>) -> io::Result<Self> {
        let socket = socket(protocol, SocketFlags::CLOEXEC, 0)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: Cell::new(1) })
    }

    /// The interface of that name, or `None`.
    pub fn link(&self, name: &str) -> io::Result<Option<Link>> {
        self.find(
            Request::new(RTM_GETLINK, &ifinfomsg(0, 0, 0)).attribute(link::NAME, &terminated(name)),
        )
    }

    /// The index of a zone (RFC 4007 §11): of the interface of that name or, if there is none, that number.
    ///
    /// # Errors
    /// There is no such interface, or the kernel does not answer.
    pub fn zone(&self, zone: &str) -> io::Result<u32> {
        let named = self.link(zone)?.map(|link| link.index).or_else(|| zone.parse().ok());
        named.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }

    /// The interface of that index, or `None`.
    pub fn link_at(&self, index: u32) -> io::Result<Option<Link>> {
        self.find(Request::new(RTM_GETLINK, &ifinfomsg(index, 0, 0)))
    }

    /// All interfaces of the namespace.
    pub fn links(&self) -> io::Result<Vec<Link>> {
        let mut found = Vec::new();
        let request = Request::new(RTM_GETLINK, &ifinfomsg(0, 0, 0)).flagged(NLM_F_DUMP);
        self.ask(request, |message| {
            if message.kind == RTM_NEWLINK {
                found.extend(Link::parse(message.body));
            }
        })?;
        Ok(found)
    }

    fn find(&self, request: Request) -> io::Result<Option<Link>> {
        let mut found = None;
        let answered = self.ask(request, |message| {
            if message.kind == RTM_NEWLINK {
                found = Link::parse(message.body);
            }
        });
        match answered {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            answered => answered.map(|()| found),
        }
    }

    /// Changes an interface.
    pub fn change(&self, index: u32, change: Change) -> io::Result<()> {
        let plain = || Request::new(RTM_NEWLINK, &ifinfomsg(index, 0, 0));
        let request = match change {
            Change::Up(up) => Request::new(RTM_NEWLINK, &ifinfomsg(index, u32::from(up), 1)),
            Change::Mtu(mtu) => plain().attribute(link::MTU, &mtu.to_ne_bytes()),
            Change::Mac(mac) => plain().attribute(link::ADDRESS, &mac),
        };
        self.ask(request, |_| ())
    }

    /// The number that this socket's namespace gives to the namespace `file`, or `None`.
    pub fn netns_id(&self, file: &impl AsRawFd) -> io::Result<Option<u32>> {
        let mut id = None;
        let request = Request::new(RTM_GETNSID, &[0; 4])
            .attribute(NETNSA_FD, &file.as_raw_fd().to_ne_bytes());
        self.ask(request, |message| {
            let value = codec::attributes(message.body.get(4..).unwrap_or_default());
            id = value
                .filter(|&(kind, _)| kind == NETNSA_NSID)
                .find_map(|(_, value)| read_u32(value));
        })?;
        Ok(id.filter(|&id| id as i32 >= 0))
    }

    /// Sends a request, hands every answer to `take`, and waits for the acknowledgement, or for the end of a dump.
    pub(crate) fn ask(
        &self,
        request: Request,
        mut take: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        let sequence = self.sequence.replace(self.sequence.get().wrapping_add(1));
        rustix::net::send(&self.socket, &request.finish(sequence), SendFlags::empty())?;
        let mut datagram = vec![0; DATAGRAM];
        loop {
            let (len, _) = retry_on_intr(|| {
                rustix::net::recv(&self.socket, &mut datagram[..], RecvFlags::empty())
            })?;
            for message in messages(&datagram[..len]).filter(|message| message.sequence == sequence)
            {
                match message.kind {
                    NLMSG_ERROR | NLMSG_DONE => return acknowledged(message.body),
                    _ => take(message),
                }
            }
        }
    }
}

/// `NLMSG_ERROR` and `NLMSG_DONE` carry 0 or a negative errno.
fn acknowledged(body: &[u8]) -> io::Result<()> {
    match read_u32(body).map(|code| code as i32) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// No protocol is `NETLINK_ROUTE`, whose number is 0.
pub(crate) fn socket(
    protocol: Option<Protocol>,
    flags: SocketFlags,
    groups: u32,
) -> io::Result<OwnedFd> {
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

fn ifinfomsg(index: u32, flags: u32, change: u32) -> [u8; link::IFINFOMSG] {
    let mut bytes = [0; link::IFINFOMSG];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..16].copy_from_slice(&change.to_ne_bytes());
    bytes
}
