//! What happens to the interfaces of a namespace, as it happens.

use crate::codec::{RTM_DELLINK, RTM_NEWLINK, messages};
use crate::link::Link;
use crate::socket::{DATAGRAM, socket};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `RTMGRP_LINK`.
const GROUP_LINK: u32 = 1;

/// News of one interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// It appeared or changed: look at its state here, or open the port that waits for it.
    Changed(Link),
    /// It went: removed, or moved to another namespace.
    Gone {
        /// Its index.
        index: u32,
        /// Its name.
        name: String,
    },
    /// The kernel had more news than room: read every port's facts again.
    Missed,
}

/// Listens to one namespace; one for all ports in it.
pub struct LinkMonitor {
    socket: OwnedFd,
    datagram: Vec<u8>,
}

impl LinkMonitor {
    /// Begins to listen to the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel refuses a socket.
    pub fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(Self { socket: socket(None, flags, GROUP_LINK)?, datagram: vec![0; DATAGRAM] })
    }

    /// All news so far, without waiting. Wait for the descriptor ([`AsFd`]) to be readable.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn events(&mut self) -> io::Result<Vec<LinkEvent>> {
        let mut events = Vec::new();
        loop {
            match rustix::net::recv(&self.socket, &mut self.datagram[..], RecvFlags::empty()) {
                Ok((len, _)) => events.extend(read(&self.datagram[..len])),
                Err(Errno::AGAIN) => return Ok(events),
                Err(Errno::NOBUFS) => events.push(LinkEvent::Missed),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for LinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn read(datagram: &[u8]) -> impl Iterator<Item = LinkEvent> + '_ {
    // A family other than AF_UNSPEC speaks of bridge membership: its "removed" is not an interface gone.
    messages(datagram).filter(|message| message.body.first() == Some(&0)).filter_map(|message| {
        match (message.kind, Link::parse(message.body)?) {
            (RTM_NEWLINK, link) => Some(LinkEvent::Changed(link)),
            (RTM_DELLINK, Link { index, name, .. }) => Some(LinkEvent::Gone { index, name }),
            _ => None,
        }
    })
}
