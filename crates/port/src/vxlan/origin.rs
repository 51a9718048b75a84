//! Who sent what a port receives.

use crate::ends::Ends;
use crate::sys::datagram::{self, Arrived};
use crate::vxlan::tunnel::Tunnel;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;

/// A sender, and its number.
#[derive(Clone, Copy, Default)]
pub(super) struct Sender {
    /// If it was asked for.
    pub(super) address: Option<IpAddr>,
    /// Its UDP port, likewise; else 0.
    pub(super) port: u16,
    pub(super) number: u16,
}

impl Sender {
    /// Where it sends from, if it was asked for.
    pub(super) fn outside(&self) -> Option<SocketAddr> {
        self.address.map(|address| SocketAddr::new(address, self.port))
    }
}

/// Finds the numbers of one queue's senders.
pub(super) struct Origin {
    ends: Arc<Ends>,
    /// The other end, of a port that has one.
    remote: Option<IpAddr>,
    /// Whether others send too: the socket is asked.
    has_others: bool,
    /// Whose number was found last, and how often ends had been given one by then.
    last: Option<(IpAddr, u16, u32)>,
}

impl Origin {
    /// Of a port of this tunnel.
    pub(super) fn new(ends: Arc<Ends>, tunnel: &Tunnel) -> Self {
        let remote = (!tunnel.is_flow_based()).then_some(tunnel.remote);
        let has_others = remote.is_none() || !tunnel.from.is_empty();
        Self { ends, remote, has_others, last: None }
    }

    /// Receives a run of datagrams, and says who sent it; the socket is asked only where there are several, or if `asks`.
    pub(super) fn receive(
        &mut self,
        socket: impl AsFd,
        is_v4: bool,
        into: &mut [u8],
        asks: bool,
    ) -> io::Result<(Arrived, Sender)> {
        if !self.has_others && !asks {
            return Ok((datagram::receive(socket, is_v4, into)?, self.of(None)));
        }
        let (arrived, from) = datagram::receive_from(socket, is_v4, into)?;
        let sender = self.of(Some(from.ip()));
        Ok((arrived, Sender { port: from.port(), ..sender }))
    }

    /// The end of this number, which the port itself speaks for; 0: the one that it has.
    pub(super) fn end(&mut self, number: u16) -> Sender {
        match self.ends.address(number) {
            Some(address) => Sender { address: Some(address), port: 0, number },
            None => self.of(None),
        }
    }

    /// The sender that the socket told, or the other end.
    pub(super) fn of(&mut self, told: Option<IpAddr>) -> Sender {
        let Some(address) = told.or(self.remote) else { return Sender::default() };
        let given = self.ends.given();
        let number = match self.last {
            Some((last, number, then)) if last == address && then == given => number,
            _ => self.ends.number(address).unwrap_or(Ends::NONE),
        };
        self.last = Some((address, number, given));
        Sender { address: Some(address), port: 0, number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::Share;
    use std::net::Ipv4Addr;

    #[test]
    fn an_unknown_sender_is_number_0_until_it_has_one() {
        let ends = Arc::new(Ends::default());
        let share = Share::new(ends.clone());
        let [one, two]: [IpAddr; 2] = ["192.0.2.1", "2001:db8::2"].map(|end| end.parse().unwrap());
        let any = Ipv4Addr::UNSPECIFIED.into();
        let [mut all, mut only] =
            [any, one].map(|remote| Origin::new(ends.clone(), &Tunnel::new(remote, 7)));
        assert_eq!((all.has_others, only.has_others), (true, false));
        assert_eq!((all.of(Some(one)).number, only.of(None).number), (0, 0));
        assert_eq!(share.name(two), Ok(1));
        assert_eq!((all.of(Some(one)).number, all.of(Some(two)).number), (0, 1));
        assert_eq!(share.name(one), Ok(2));
        assert_eq!((all.of(Some(one)).number, only.of(None).number), (2, 2));
        assert_eq!(only.of(None).address, Some(one));
    }
}
