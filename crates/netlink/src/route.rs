//! The route that the kernel takes to an address.

use crate::codec::{
    NLM_F_DUMP, RTM_GETROUTE, RTM_NEWROUTE, Request, attributes, family, read_address, read_u16,
    read_u32,
};
use crate::link::nested;
use crate::socket::Netlink;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `struct rtmsg` (linux/rtnetlink.h): `family` 0, `dst_len` 1, `src_len` 2, `table` 4, `protocol` 5, `type` 7, `flags` 8..12.
const RTMSG: usize = 12;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTAX_MTU: u16 = 2;
const RTN_UNICAST: u8 = 1;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_KERNEL: u8 = 2;
/// `struct rtnexthop`: `len` 0..2, `flags` 2, `hops` 3, `ifindex` 4..8, then attributes up to `len`.
const RTNEXTHOP: usize = 8;

/// What a lookup answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Route {
    /// `RTN_…`.
    kind: u8,
    /// Index of the interface that packets leave by; 0: none.
    pub interface: u32,
    /// Who takes them there, of either family; `None`: their destination itself.
    pub gateway: Option<IpAddr>,
    /// The source address that the kernel would choose.
    pub source: Option<IpAddr>,
    /// What the route or a router on the way says that the path takes.
    pub mtu: Option<u32>,
    /// Packets get another header on this way (`ip route … encap`).
    pub is_encapsulated: bool,
}

impl Route {
    /// It leads to another host.
    pub fn is_unicast(&self) -> bool {
        self.kind == RTN_UNICAST
    }

    /// The type's name.
    pub fn kind(&self) -> &'static str {
        const NAMES: [&str; 10] = [
            "unspecified",
            "unicast",
            "local",
            "broadcast",
            "anycast",
            "multicast",
            "blackhole",
            "unreachable",
            "prohibit",
            "throw",
        ];
        NAMES.get(usize::from(self.kind)).copied().unwrap_or("unknown")
    }

    /// Reads the body of an `RTM_NEWROUTE`.
    fn parse(body: &[u8]) -> Option<Self> {
        let (header, rest) = body.split_first_chunk::<RTMSG>()?;
        let mut route = Self { kind: header[7], ..Self::default() };
        attributes(rest).for_each(|(kind, value)| route.take(kind, value));
        Some(route)
    }

    fn take(&mut self, kind: u16, value: &[u8]) {
        match kind {
            RTA_OIF => self.interface = read_u32(value).unwrap_or(0),
            RTA_GATEWAY => self.gateway = read_address(value),
            RTA_VIA => self.gateway = via(value),
            RTA_PREFSRC => self.source = read_address(value),
            RTA_METRICS => {
                self.mtu = nested(value, RTAX_MTU).and_then(read_u32).filter(|&mtu| mtu != 0)
            }
            RTA_ENCAP_TYPE => self.is_encapsulated |= read_u16(value) != Some(0),
            RTA_ENCAP => self.is_encapsulated = true,
            _ => {}
        }
    }
}

/// `struct rtvia`: `family` 0..2, then the address.
fn via(value: &[u8]) -> Option<IpAddr> {
    let address = read_address(value.get(2..)?)?;
    (read_u16(value) == Some(family(address).into())).then_some(address)
}

/// A route of a table, as somebody has set it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableRoute {
    /// Its destinations.
    pub to: Prefix,
    /// The first one that takes packets there; `None`: their destination itself.
    pub gateway: Option<IpAddr>,
    /// Indices of the interfaces that packets leave by.
    pub interfaces: Vec<u32>,
}

impl TableRoute {
    /// Reads the body of an `RTM_NEWROUTE`; `None` for one that the kernel made of an address, or that leads to no other host.
    fn parse(body: &[u8]) -> Option<Self> {
        let (header, rest) = body.split_first_chunk::<RTMSG>()?;
        let is_set = header[4] != RT_TABLE_LOCAL && header[5] != RTPROT_KERNEL;
        if !is_set || header[7] != RTN_UNICAST {
            return None;
        }
        let mut route = Self { to: Prefix::parse(body)?, gateway: None, interfaces: Vec::new() };
        for (kind, value) in attributes(rest) {
            match kind {
                RTA_OIF => route.interfaces.extend(read_u32(value)),
                RTA_GATEWAY => route.gateway = read_address(value),
                RTA_VIA => route.gateway = via(value),
                RTA_MULTIPATH => hops(value).for_each(|hop| route.take_hop(hop)),
                _ => {}
            }
        }
        Some(route)
    }

    fn take_hop(&mut self, (interface, rest): (u32, &[u8])) {
        self.interfaces.push(interface);
        let gateway = nested(rest, RTA_GATEWAY).and_then(read_address);
        self.gateway = self.gateway.or(gateway);
    }
}

/// Interface and attributes of each next hop; stops at the first one that does not fit.
fn hops(mut bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(read_u16(bytes)?);
        let (header, rest) = bytes.get(..len)?.split_at_checked(RTNEXTHOP)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((read_u32(&header[4..])?, rest))
    })
}

/// Addresses that begin alike: those that a change of a route can concern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

impl Prefix {
    /// The destinations of the route in the body of an `RTM_NEWROUTE` or `RTM_DELROUTE`.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (header, rest) = body.split_first_chunk::<RTMSG>()?;
        // A default route has no `RTA_DST`.
        let any: IpAddr = match i32::from(header[0]) {
            libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
            libc::AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
            _ => return None,
        };
        let address = attributes(rest).find(|(kind, _)| *kind == RTA_DST);
        let address = address.map_or(Some(any), |(_, value)| read_address(value))?;
        Some(Self { address, len: header[1] })
    }

    /// True of the prefix that has every address of its family.
    pub fn is_default(&self) -> bool {
        self.len == 0
    }

    /// Whether the address is among them.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let alike = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        alike >= self.len.into()
    }
}

/// `10.0.0.0/8`.
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl Netlink {
    /// The routes of all tables, both families, that lead to other hosts and were set by somebody else than the kernel.
    pub fn routes(&self) -> io::Result<Vec<TableRoute>> {
        let mut found = Vec::new();
        let request = Request::new(RTM_GETROUTE, &[0; RTMSG]).flagged(NLM_F_DUMP);
        self.ask(request, |message| {
            if message.kind == RTM_NEWROUTE {
                found.extend(TableRoute::parse(message.body));
            }
        })?;
        Ok(found)
    }

    /// The route that packets to this address take now, from this source if one is given, of the same family.
    ///
    /// # Errors
    /// There is none or, of IPv4, the source is not ours (`ENETUNREACH`); one forbids it (`EHOSTUNREACH`, `EACCES`, `EINVAL`).
    pub fn route(&self, to: IpAddr, source: Option<IpAddr>) -> io::Result<Route> {
        let mut header = [0; RTMSG];
        let bits = if to.is_ipv4() { 32 } else { 128 };
        (header[0], header[1]) = (family(to), bits);
        header[2] = source.map_or(0, |_| bits);
        let request = Request::new(RTM_GETROUTE, &header).address(RTA_DST, to);
        let request = match source {
            Some(source) => request.address(RTA_SRC, source),
            None => request,
        };
        let mut found = None;
        self.ask(request, |message| {
            if message.kind == RTM_NEWROUTE {
                found = Route::parse(message.body);
            }
        })?;
        found.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(family: i32, len: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let header = [family as u8, len, 0, 0, 254, 0, 0, RTN_UNICAST, 0, 0, 0, 0];
        let request = Request::new(RTM_NEWROUTE, &header);
        let request = attributes
            .iter()
            .fold(request, |request, (kind, value)| request.attribute(*kind, value));
        request.finish(1)[16..].to_vec()
    }

    /// `ip route get 198.51.100.7` as Linux 6.18 answered it, where the route is `198.51.100.0/24 via 10.0.0.2 dev eth0 mtu 1400`.
    const RECORDED: &[u8] = &[
        2, 32, 0, 0, 254, 0, 0, 1, 0, 2, 0, 0, 8, 0, 15, 0, 254, 0, 0, 0, 8, 0, 1, 0, 198, 51, 100,
        7, 8, 0, 4, 0, 3, 0, 0, 0, 8, 0, 7, 0, 10, 0, 0, 1, 8, 0, 5, 0, 10, 0, 0, 2, 12, 0, 8, 0,
        8, 0, 2, 0, 120, 5, 0, 0, 8, 0, 25, 0, 0, 0, 0, 0, 36, 0, 12, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    #[cfg(target_endian = "little")]
    fn what_the_kernel_answered_is_read() {
        let (gateway, source) = (Some([10, 0, 0, 2].into()), Some([10, 0, 0, 1].into()));
        let route = Route {
            kind: RTN_UNICAST,
            interface: 3,
            gateway,
            source,
            mtu: Some(1400),
            is_encapsulated: false,
        };
        assert_eq!(Route::parse(RECORDED), Some(route));
        (0..RECORDED.len())
            .for_each(|len| assert_ne!(Route::parse(&RECORDED[..len]).is_some(), len < RTMSG));
    }

    #[test]
    fn a_next_hop_of_the_other_family_and_an_encapsulation_are_seen() {
        let mut via = vec![0; 2];
        via.copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        via.extend([0xfd; 16]);
        let parse = |attributes: &[_]| Route::parse(&body(libc::AF_INET, 32, attributes)).unwrap();
        assert_eq!(parse(&[(RTA_VIA, &via)]).gateway, Some([0xfd; 16].into()));
        assert_eq!(parse(&[(RTA_VIA, &via[..6])]).gateway, None);
        assert!(parse(&[(RTA_ENCAP, &[]), (RTA_ENCAP_TYPE, &[1, 0])]).is_encapsulated);
        assert!(!parse(&[(RTA_OIF, &[1, 0])]).is_encapsulated);
    }

    #[test]
    fn a_prefix_contains_what_begins_alike_in_its_family() {
        let (inside, outside) = (IpAddr::from([198, 51, 100, 7]), IpAddr::from([198, 51, 101, 7]));
        let prefix =
            Prefix::parse(&body(libc::AF_INET, 24, &[(RTA_DST, &[198, 51, 100, 0])])).unwrap();
        assert!(prefix.contains(inside) && !prefix.contains(outside));
        let all = Prefix::parse(&body(libc::AF_INET6, 0, &[])).unwrap();
        assert!(all.contains([0xfd; 16].into()) && !all.contains(inside));
        let host =
            Prefix::parse(&body(libc::AF_INET, 32, &[(RTA_DST, &[198, 51, 100, 7])])).unwrap();
        assert!(host.contains(inside));
        assert_eq!(Prefix::parse(&body(libc::AF_MPLS, 20, &[])), None);
    }

    #[test]
    fn a_route_over_several_hops_names_each_interface_and_one_that_the_kernel_made_is_none() {
        let mut set = body(libc::AF_INET, 0, &[]);
        (set[5], set[7]) = (3, RTN_UNICAST);
        let gateway = Request::new(0, &[]).attribute(RTA_GATEWAY, &[10, 0, 0, 1]).finish(0);
        let hop = |interface: u8| [&[16, 0, 0, 0, interface, 0, 0, 0][..], &gateway[16..]].concat();
        let both = [hop(2), hop(3)].concat();
        let several = Request::new(0, &set).attribute(RTA_MULTIPATH, &both).finish(0);
        let found = TableRoute::parse(&several[16..]).unwrap();
        assert_eq!((found.interfaces, found.gateway), (vec![2, 3], Some([10, 0, 0, 1].into())));
        assert!(found.to.is_default());
        assert_eq!(found.to.to_string(), "0.0.0.0/0");
        set[5] = RTPROT_KERNEL;
        assert_eq!(TableRoute::parse(&set), None);
    }

    proptest! {
        #[test]
        fn any_body_is_read_without_a_panic(
            body in prop::collection::vec(any::<u8>(), 0..80),
            to in any::<[u8; 16]>(),
        ) {
            Route::parse(&body);
            TableRoute::parse(&body);
            let _ = Prefix::parse(&body).map(|prefix| prefix.contains(to.into()));
        }
    }
}
