//! Which of a namespace's tables changed: links, neighbours, routes, rules, addresses.

use crate::codec::{
    Message, RTM_DELADDR, RTM_DELNEIGH, RTM_DELROUTE, RTM_NEWADDR, RTM_NEWNEIGH, RTM_NEWROUTE,
    messages,
};
use crate::neighbour::Via;
use crate::route::Prefix;
use crate::socket::{DATAGRAM, socket};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags};
use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `RTNLGRP_…` (linux/rtnetlink.h): links, neighbours, IPv4 addresses, routes and rules, the same of IPv6, and next hops of their own,
/// which kernels before 5.3 ignore.
const GROUPS: [u32; 9] = [1, 3, 5, 7, 8, 9, 11, 19, 32];
/// Prefixes of changed routes kept apart; more are as if all had changed. Chosen.
const PREFIXES: usize = 64;

/// What changed since the last look.
#[derive(Default, Debug)]
pub struct News {
    /// Something that any route may depend on, or more than there was room for.
    everything: bool,
    /// Addresses of the namespace.
    addresses: bool,
    neighbours: HashSet<Via>,
    prefixes: Vec<Prefix>,
}

impl News {
    /// An address came or went.
    pub fn has_addresses(&self) -> bool {
        self.addresses
    }

    /// There is some.
    pub fn is_some(&self) -> bool {
        self.everything || !self.neighbours.is_empty() || !self.prefixes.is_empty()
    }

    /// The way to `to`, by the neighbour `via` when last looked at, may be another now.
    pub fn concerns(&self, to: IpAddr, via: Option<Via>) -> bool {
        self.everything
            || via.is_some_and(|via| self.neighbours.contains(&via))
            || self.prefixes.iter().any(|prefix| prefix.contains(to))
    }

    fn missed() -> Self {
        Self { everything: true, addresses: true, ..Self::default() }
    }

    fn take(&mut self, message: Message<'_>) {
        match message.kind {
            RTM_NEWNEIGH | RTM_DELNEIGH => self.neighbours.extend(Via::parse(message.body)),
            RTM_NEWROUTE | RTM_DELROUTE if self.prefixes.len() < PREFIXES => {
                self.prefixes.extend(Prefix::parse(message.body));
            }
            kind => {
                self.addresses |= matches!(kind, RTM_NEWADDR | RTM_DELADDR);
                self.everything = true;
            }
        }
    }
}

/// Listens to one namespace.
pub struct TableMonitor {
    socket: OwnedFd,
    datagram: Vec<u8>,
}

impl TableMonitor {
    /// Begins to listen to the calling thread's namespace.
    pub fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let groups = GROUPS.iter().fold(0, |groups, group| groups | 1 << (group - 1));
        Ok(Self { socket: socket(None, flags, groups)?, datagram: vec![0; DATAGRAM] })
    }

    /// All news so far, without waiting. Wait for the descriptor ([`AsFd`]) to be readable.
    ///
    /// The kernel tells some before it is done (a route that goes is announced and then removed): look again a little later.
    pub fn news(&mut self) -> News {
        let mut news = News::default();
        loop {
            match rustix::net::recv(&self.socket, &mut self.datagram[..], RecvFlags::empty()) {
                Ok((len, _)) => {
                    messages(&self.datagram[..len]).for_each(|message| news.take(message))
                }
                Err(Errno::AGAIN) => return news,
                Err(Errno::NOBUFS) => news = News::missed(),
                Err(Errno::INTR) => {}
                // Nothing else is known to happen; whatever it is, look at everything.
                Err(_) => return News::missed(),
            }
        }
    }
}

impl AsFd for TableMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{RTM_NEWLINK, Request};
    use proptest::prelude::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 7));

    fn news(kind: u16, header: &[u8], address: IpAddr) -> News {
        let bytes = Request::new(kind, header).address(1, address).finish(0);
        let mut news = News::default();
        messages(&bytes).for_each(|message| news.take(message));
        news
    }

    #[test]
    fn news_of_a_neighbour_concern_who_goes_by_it() {
        let via = |interface, address| Some(Via { interface, address });
        let news = news(RTM_DELNEIGH, &[2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0], HERE);
        assert!(news.is_some() && news.concerns(THERE, via(7, HERE)));
        assert!(!news.concerns(THERE, via(8, HERE)) && !news.concerns(HERE, None));
    }

    #[test]
    fn news_of_a_route_concern_its_destinations() {
        let news = news(RTM_DELROUTE, &[2, 24, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0], THERE);
        assert!(news.is_some() && news.concerns(THERE, None) && !news.concerns(HERE, None));
        assert!(!news.has_addresses());
    }

    #[test]
    fn other_news_and_a_flood_concern_everybody() {
        let address = news(RTM_NEWADDR, &[2, 24, 0, 0, 7, 0, 0, 0], HERE);
        assert!(address.has_addresses() && address.concerns(THERE, None));
        let link = news(RTM_NEWLINK, &[0; 16], HERE);
        assert!(!link.has_addresses() && link.concerns(THERE, None));
        let mut flood = News::default();
        let bytes = Request::new(RTM_NEWROUTE, &[2, 32, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0]);
        let bytes = bytes.address(1, HERE).finish(0);
        (0..=PREFIXES).for_each(|_| messages(&bytes).for_each(|message| flood.take(message)));
        assert!(flood.concerns(THERE, None));
        assert!(!News::default().is_some() && !News::default().concerns(THERE, None));
    }

    proptest! {
        #[test]
        fn any_message_is_taken_without_a_panic(
            kind in 16..110u16,
            body in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut news = News::default();
            news.take(Message { kind, sequence: 0, body: &body });
            news.concerns(HERE, None);
        }
    }
}
