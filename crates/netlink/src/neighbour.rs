//! A neighbour as rtnetlink tells it: the MAC behind an address on an interface.

use crate::codec::{
    NLM_F_CREATE, RTM_GETNEIGH, RTM_NEWNEIGH, Request, attributes, family, read_address, read_u16,
    read_u32,
};
use crate::socket::Netlink;
use std::io;
use std::net::IpAddr;

/// `struct ndmsg` (linux/neighbour.h): `family` 0, `index` 4..8, `state` 8..10, `flags` 10, `type` 11.
const NDMSG: usize = 12;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NTF_USE: u8 = 1;
const INCOMPLETE: u16 = 0x01;
const REACHABLE: u16 = 0x02;
const STALE: u16 = 0x04;
const DELAY: u16 = 0x08;
const PROBE: u16 = 0x10;
const FAILED: u16 = 0x20;
const NOARP: u16 = 0x40;
const PERMANENT: u16 = 0x80;
const CONFIRMED: u16 = REACHABLE | NOARP | PERMANENT;

/// Who is asked for: an address on an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Via {
    /// Index of the interface.
    pub interface: u32,
    /// Of either family, whatever the packets' is.
    pub address: IpAddr,
}

/// What the kernel knows of a neighbour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// `NUD_…`.
    state: u16,
    /// Of 6 bytes, or none.
    mac: Option<[u8; 6]>,
}

impl Neighbour {
    /// Where frames to it go, perhaps while the kernel finds out whether it is still there.
    pub fn mac(&self) -> Option<[u8; 6]> {
        self.mac.filter(|_| self.state & (CONFIRMED | STALE | DELAY | PROBE) != 0)
    }

    /// The kernel does not doubt it. It must not be asked to confirm a permanent one, which would no longer be permanent
    /// (`NEIGH_UPDATE_F_USE`, net/core/neighbour.c).
    pub fn is_confirmed(&self) -> bool {
        self.state & CONFIRMED != 0
    }

    /// The state's name.
    pub fn state(&self) -> &'static str {
        match self.state {
            INCOMPLETE => "incomplete",
            REACHABLE => "reachable",
            STALE => "stale",
            DELAY => "delay",
            PROBE => "probe",
            FAILED => "failed",
            NOARP => "noarp",
            PERMANENT => "permanent",
            _ => "none",
        }
    }

    /// Reads the body of an `RTM_NEWNEIGH`.
    fn parse(body: &[u8]) -> Option<Self> {
        let (header, rest) = body.split_first_chunk::<NDMSG>()?;
        let mac = attributes(rest).find(|(kind, _)| *kind == NDA_LLADDR);
        let mac = mac.and_then(|(_, value)| value.try_into().ok());
        Some(Self { state: read_u16(&header[8..])?, mac })
    }
}

impl Via {
    /// Whom an `RTM_NEWNEIGH` or `RTM_DELNEIGH` speaks of; `None`: of a bridge's table, which has no addresses of IP.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (header, rest) = body.split_first_chunk::<NDMSG>()?;
        let interface = read_u32(&header[4..])?;
        let address = attributes(rest).find(|(kind, _)| *kind == NDA_DST);
        let address = address.and_then(|(_, value)| read_address(value))?;
        (family(address) == header[0]).then_some(Self { interface, address })
    }

    /// The request of this type about it.
    fn request(self, kind: u16, flags: u8) -> Request {
        let mut header = [0; NDMSG];
        header[0] = family(self.address);
        header[4..8].copy_from_slice(&self.interface.to_ne_bytes());
        header[10] = flags;
        Request::new(kind, &header).address(NDA_DST, self.address)
    }
}

impl Netlink {
    /// What the kernel knows of it, or `None`. Linux 5.0.
    pub fn neighbour(&self, via: Via) -> io::Result<Option<Neighbour>> {
        let mut found = None;
        let answered = self.ask(via.request(RTM_GETNEIGH, 0), |message| {
            if message.kind == RTM_NEWNEIGH {
                found = Neighbour::parse(message.body);
            }
        });
        match answered {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            answered => answered.map(|()| found),
        }
    }

    /// Has the kernel find or confirm it, as if it had sent it a packet itself (`ip neigh replace … use`). Not for one that is
    /// [confirmed](Neighbour::is_confirmed). Needs `CAP_NET_ADMIN`.
    pub fn use_neighbour(&self, via: Via) -> io::Result<()> {
        self.ask(via.request(RTM_NEWNEIGH, NTF_USE).flagged(NLM_F_CREATE), |_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VIA: Via =
        Via { interface: 7, address: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)) };

    fn body(state: u16, mac: &[u8]) -> Vec<u8> {
        let bytes = VIA.request(RTM_NEWNEIGH, 0).attribute(NDA_LLADDR, mac).finish(1);
        let mut body = bytes[16..].to_vec();
        body[8..10].copy_from_slice(&state.to_ne_bytes());
        body
    }

    #[test]
    fn a_neighbour_has_a_mac_as_long_as_the_kernel_would_send_to_it() {
        for state in [REACHABLE, STALE, DELAY, PROBE, NOARP, PERMANENT] {
            let neighbour = Neighbour::parse(&body(state, &[2; 6])).unwrap();
            assert_eq!(neighbour.mac(), Some([2; 6]), "{}", neighbour.state());
            assert_eq!(neighbour.is_confirmed(), ![STALE, DELAY, PROBE].contains(&state));
        }
        for state in [0, INCOMPLETE, FAILED] {
            let neighbour = Neighbour::parse(&body(state, &[2; 6])).unwrap();
            assert_eq!((neighbour.mac(), neighbour.is_confirmed()), (None, false));
        }
        assert_eq!(Neighbour::parse(&body(REACHABLE, &[2; 20])).unwrap().mac(), None);
    }

    #[test]
    fn news_name_the_neighbour_and_a_bridges_table_is_none() {
        let mut body = body(STALE, &[2; 6]);
        assert_eq!(Via::parse(&body), Some(VIA));
        body[0] = libc::AF_BRIDGE as u8;
        assert_eq!(Via::parse(&body), None);
    }

    proptest! {
        #[test]
        fn any_body_is_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
            Neighbour::parse(&body);
            Via::parse(&body);
        }
    }
}
