//! A network interface as rtnetlink tells it.

use crate::codec::{attributes, read_u16, read_u32, text};

/// `struct ifinfomsg`: `family` 0, `type` 2..4, `index` 4..8, `flags` 8..12, `change` 12..16.
pub(crate) const IFINFOMSG: usize = 16;

// `IFLA_…` (linux/if_link.h).
pub(crate) const ADDRESS: u16 = 1;
pub(crate) const NAME: u16 = 3;
pub(crate) const MTU: u16 = 4;
pub(crate) const LINK: u16 = 5;
pub(crate) const QDISC: u16 = 6;
pub(crate) const MASTER: u16 = 10;
pub(crate) const LINKINFO: u16 = 18;
pub(crate) const AF_SPEC: u16 = 26;
pub(crate) const NUM_RX_QUEUES: u16 = 32;
pub(crate) const CARRIER: u16 = 33;
pub(crate) const LINK_NETNSID: u16 = 37;
pub(crate) const XDP: u16 = 43;
pub(crate) const MIN_MTU: u16 = 50;
pub(crate) const MAX_MTU: u16 = 51;
const INFO_KIND: u16 = 1;
const XDP_ATTACHED: u16 = 2;
const XDP_PROG_ID: u16 = 4;
const INET6_CONF: u16 = 2;
/// Where it is among the numbers of `INET6_CONF` (`DEVCONF_MTU6`, linux/ipv6.h).
const MTU6: usize = 2;
const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 8;
/// `ARPHRD_ETHER` (linux/if_arp.h).
const ETHERNET: u16 = 1;

/// An interface's state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Index in its namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// `veth`, `tun`, `bridge` …; empty for a physical interface.
    pub kind: String,
    /// Frames have an Ethernet header, which those of a tun, a tunnel of IP or a serial line do not.
    pub is_ethernet: bool,
    /// What it sends it receives.
    pub is_loopback: bool,
    /// MAC address.
    pub mac: [u8; 6],
    /// MTU.
    pub mtu: u32,
    /// IPv6's own MTU, which a router may have advertised as less than the interface's; `None` without IPv6.
    pub ipv6_mtu: Option<u32>,
    /// Least and greatest MTU that the driver takes; a greatest of 0 means that it does not say.
    pub mtu_range: (u32, u32),
    /// Administratively up.
    pub up: bool,
    /// The driver sees a peer.
    pub carrier: bool,
    /// Rx queues.
    pub rx_queues: u32,
    /// `noqueue`, `fq_codel` …
    pub qdisc: String,
    /// The XDP program attached, 0 for none.
    pub xdp_program: u32,
    /// Where it runs.
    pub xdp_attached: XdpAttached,
    /// A veth's other end.
    pub peer: Option<Peer>,
    /// The interface of this namespace that it stands on: a VLAN's, a macvlan's, a tunnel's.
    pub lower: Option<u32>,
    /// The bridge, bond or other interface that it is a member of.
    pub master: Option<u32>,
}

/// Where an interface's XDP program runs (`XDP_ATTACHED_…`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum XdpAttached {
    /// There is none.
    #[default]
    Nowhere,
    /// In the driver.
    Native,
    /// Behind the driver.
    Generic,
    /// On the card, or at several places.
    Elsewhere,
}

impl XdpAttached {
    fn of(value: Option<&[u8]>) -> Self {
        match value.and_then(<[u8]>::first) {
            None | Some(0) => Self::Nowhere,
            Some(1) => Self::Native,
            Some(2) => Self::Generic,
            Some(_) => Self::Elsewhere,
        }
    }
}

/// A veth's other end, as the kernel tells it to this end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Index in its own namespace.
    pub index: u32,
    /// That namespace's number in ours; `None`: the same namespace.
    pub netns_id: Option<u32>,
}

impl Link {
    /// True of an interface that the kernel made (veth, TAP …).
    ///
    /// Frames on it were sent on this host, and no device has finished their checksums.
    pub fn is_virtual(&self) -> bool {
        !self.kind.is_empty()
    }

    /// Reads the body of an `RTM_NEWLINK` or `RTM_DELLINK`.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (header, rest) = body.split_first_chunk::<IFINFOMSG>()?;
        let flags = read_u32(&header[8..])?;
        let mut link = Self {
            index: read_u32(&header[4..])?,
            is_ethernet: read_u16(&header[2..])? == ETHERNET,
            is_loopback: flags & IFF_LOOPBACK != 0,
            up: flags & IFF_UP != 0,
            ..Self::default()
        };
        let (mut peer_index, mut netns_id) = (None, None);
        for (kind, value) in attributes(rest) {
            match kind {
                LINK => peer_index = read_u32(value),
                LINK_NETNSID => netns_id = read_u32(value),
                _ => link.take(kind, value),
            }
        }
        let (is_veth, is_here) = (link.kind == "veth", netns_id.is_none());
        link.peer = peer_index.filter(|_| is_veth).map(|index| Peer { index, netns_id });
        link.lower = peer_index.filter(|_| !is_veth && is_here);
        Some(link)
    }

    fn take(&mut self, kind: u16, value: &[u8]) {
        let number = || read_u32(value).unwrap_or(0);
        match kind {
            NAME => self.name = text(value),
            QDISC => self.qdisc = text(value),
            MASTER => self.master = read_u32(value).filter(|&master| master != 0),
            ADDRESS => self.mac = value.try_into().unwrap_or_default(),
            MTU => self.mtu = number(),
            MIN_MTU => self.mtu_range.0 = number(),
            MAX_MTU => self.mtu_range.1 = number(),
            NUM_RX_QUEUES => self.rx_queues = number(),
            CARRIER => self.carrier = value.first() == Some(&1),
            LINKINFO => self.kind = nested(value, INFO_KIND).map(text).unwrap_or_default(),
            AF_SPEC => self.ipv6_mtu = ipv6_mtu(value),
            XDP => {
                self.xdp_program = nested(value, XDP_PROG_ID).and_then(read_u32).unwrap_or(0);
                self.xdp_attached = XdpAttached::of(nested(value, XDP_ATTACHED));
            }
            _ => {}
        }
    }
}

fn ipv6_mtu(families: &[u8]) -> Option<u32> {
    let conf = nested(nested(families, libc::AF_INET6 as u16)?, INET6_CONF)?;
    conf.get(4 * MTU6..).and_then(read_u32)
}

pub(crate) fn nested(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|&(kind, _)| kind == wanted).map(|(_, value)| value)
}
