//! The frames that cases start from: what is carried, and what is around it.

use super::frame::{Arp, Extension, Frame, Icmp, Ip, Nd, Payload, Pbb, Shim, Tag, Tcp, Transport};

/// What surrounds a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// Nothing.
    Untagged,
    /// One C-TAG.
    Vlan,
    /// An S-TAG and a C-TAG.
    Qinq,
    /// One shim.
    Mpls,
    /// Two shims.
    MplsMpls,
    /// A C-TAG and a shim.
    VlanMpls,
    /// An I-TAG.
    Pbb,
    /// A B-TAG and an I-TAG.
    VlanPbb,
}

impl Framing {
    /// Every framing.
    pub const ALL: [Self; 8] = [
        Self::Untagged,
        Self::Vlan,
        Self::Qinq,
        Self::Mpls,
        Self::MplsMpls,
        Self::VlanMpls,
        Self::Pbb,
        Self::VlanPbb,
    ];

    /// Its name in names of cases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Untagged => "untagged",
            Self::Vlan => "vlan",
            Self::Qinq => "qinq",
            Self::Mpls => "mpls",
            Self::MplsMpls => "mpls_mpls",
            Self::VlanMpls => "vlan_mpls",
            Self::Pbb => "pbb",
            Self::VlanPbb => "vlan_pbb",
        }
    }

    /// The sample in this framing.
    pub fn around(self, sample: Sample) -> Frame {
        let tags = match self {
            Self::Vlan | Self::VlanMpls => vec![TAG],
            Self::Qinq => vec![OUTER_TAG, TAG],
            Self::VlanPbb => vec![OUTER_TAG],
            _ => vec![],
        };
        let shims = match self {
            Self::Mpls | Self::VlanMpls => vec![SHIM],
            Self::MplsMpls => vec![OUTER_SHIM, SHIM],
            _ => vec![],
        };
        let mut payload = sample.payload();
        if matches!(self, Self::Pbb | Self::VlanPbb) {
            let customer = Box::new(ethernet(0x0200_00c0_00d5, 0x0200_00c0_0052, payload));
            payload = Payload::Pbb(Pbb { pcp: 6, isid: 0x5a_1234, customer });
        }
        Frame { tags, shims, ..ethernet(0x0200_0000_aad5, 0x0200_0000_aa52, payload) }
    }
}

const TAG: Tag = Tag { tpid: 0x8100, pcp: 5, vid: 0x123 };
const OUTER_TAG: Tag = Tag { tpid: 0x88a8, pcp: 3, vid: 0x456 };
const SHIM: Shim = Shim { label: 0x54321, tc: 3, bottom: true, ttl: 70 };
const OUTER_SHIM: Shim = Shim { label: 0x12345, tc: 6, bottom: false, ttl: 90 };

fn ethernet(dst: u64, src: u64, payload: Payload) -> Frame {
    Frame { dst, src, tags: vec![], mpls_type: 0x8847, shims: vec![], payload, named: None }
}

/// What is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sample {
    Arp,
    Ipv4Tcp,
    Ipv4Udp,
    /// Its checksum field is 0.
    Ipv4UdpUnsummed,
    Ipv4Sctp,
    Ipv4Icmp,
    /// Router alert.
    Ipv4Options,
    Ipv4InIpv4,
    Ipv6Tcp,
    Ipv6Udp,
    Ipv6Sctp,
    Ipv6Icmp,
    Ipv6Solicit,
    Ipv6Advert,
    /// Hop-by-hop and destination options before UDP.
    Ipv6Options,
    Ipv6InIpv6,
    /// A routing header with a segment left (RFC 6275 §6.4.1).
    Ipv6Routed,
}

impl Sample {
    /// Every sample.
    pub const ALL: [Self; 17] = [
        Self::Arp,
        Self::Ipv4Tcp,
        Self::Ipv4Udp,
        Self::Ipv4UdpUnsummed,
        Self::Ipv4Sctp,
        Self::Ipv4Icmp,
        Self::Ipv4Options,
        Self::Ipv4InIpv4,
        Self::Ipv6Tcp,
        Self::Ipv6Udp,
        Self::Ipv6Sctp,
        Self::Ipv6Icmp,
        Self::Ipv6Solicit,
        Self::Ipv6Advert,
        Self::Ipv6Options,
        Self::Ipv6InIpv6,
        Self::Ipv6Routed,
    ];

    /// One of IPv4 and one of IPv6, for what does not look at the transport.
    pub const IP: [Self; 2] = [Self::Ipv4Udp, Self::Ipv6Udp];

    /// Its name in names of cases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arp => "arp",
            Self::Ipv4Tcp => "ipv4_tcp",
            Self::Ipv4Udp => "ipv4_udp",
            Self::Ipv4UdpUnsummed => "ipv4_udp_without_checksum",
            Self::Ipv4Sctp => "ipv4_sctp",
            Self::Ipv4Icmp => "ipv4_icmp",
            Self::Ipv4Options => "ipv4_with_options",
            Self::Ipv4InIpv4 => "ipv4_in_ipv4",
            Self::Ipv6Tcp => "ipv6_tcp",
            Self::Ipv6Udp => "ipv6_udp",
            Self::Ipv6Sctp => "ipv6_sctp",
            Self::Ipv6Icmp => "ipv6_icmp",
            Self::Ipv6Solicit => "ipv6_neighbour_solicitation",
            Self::Ipv6Advert => "ipv6_neighbour_advertisement",
            Self::Ipv6Options => "ipv6_with_extension_headers",
            Self::Ipv6InIpv6 => "ipv6_in_ipv6",
            Self::Ipv6Routed => "ipv6_with_routing_header",
        }
    }

    fn payload(self) -> Payload {
        let (tcp, udp) = (Tcp { src: 4001, dst: 80, flags: 0x018 }, Transport::Udp(4002, 53, true));
        let echo = Icmp { kind: 8, code: 0 };
        let echo6 = Icmp { kind: 128, code: 0 };
        let nd = |kind, option| {
            let icmp = Icmp { kind, code: 0 };
            Transport::Nd(Nd {
                icmp,
                target: 0xfe80 << 112 | 0x99,
                option,
                address: 0x0200_0000_0077,
            })
        };
        Payload::Ip(match self {
            Self::Arp => return Payload::Arp(ARP),
            Self::Ipv4Tcp => ipv4(Transport::Tcp(tcp)),
            Self::Ipv4Udp => ipv4(udp),
            Self::Ipv4UdpUnsummed => ipv4(Transport::Udp(4002, 53, false)),
            Self::Ipv4Sctp => ipv4(Transport::Sctp(4003, 36412)),
            Self::Ipv4Icmp => ipv4(Transport::Icmpv4(echo)),
            Self::Ipv4Options => Ip { options: vec![0x94, 4, 0, 0], ..ipv4(udp) },
            Self::Ipv4InIpv4 => ipv4(Transport::Ip(Box::new(Ip { ttl: 33, ..ipv4(udp) }))),
            Self::Ipv6Tcp => ipv6(Transport::Tcp(tcp)),
            Self::Ipv6Udp => ipv6(udp),
            Self::Ipv6Sctp => ipv6(Transport::Sctp(4003, 36412)),
            Self::Ipv6Icmp => ipv6(Transport::Icmpv6(echo6)),
            Self::Ipv6Solicit => ipv6(nd(135, 1)),
            Self::Ipv6Advert => ipv6(nd(136, 2)),
            Self::Ipv6Options => {
                // Six bytes of padding each (RFC 8200 §4.2: PadN).
                let extensions = [0, 60].map(|kind| Extension(kind, vec![1, 4, 0, 0, 0, 0]));
                Ip { extensions: extensions.to_vec(), ..ipv6(udp) }
            }
            Self::Ipv6Routed => {
                let home = (0x2001_0db8_u128 << 96 | 0x77).to_be_bytes();
                let extensions = vec![Extension(43, [&[2, 1, 0, 0, 0, 0][..], &home].concat())];
                Ip { extensions, ..ipv6(Transport::Tcp(tcp)) }
            }
            Self::Ipv6InIpv6 => ipv6(Transport::Ip(Box::new(Ip { ttl: 33, ..ipv6(udp) }))),
        })
    }
}

const ARP: Arp =
    Arp { op: 1, sha: 0x0200_0000_aa52, spa: 0x0a01_0203, tha: 0x0200_0000_aad5, tpa: 0x0a01_0207 };

fn ipv4(transport: Transport) -> Ip {
    Ip {
        version: 4,
        dscp: 10,
        ecn: 1,
        flow_label: 0,
        fragment: None,
        ttl: 64,
        src: 0x0a01_0203,
        dst: 0x0a01_0207,
        options: vec![],
        extensions: vec![],
        transport,
        named: None,
    }
}

fn ipv6(transport: Transport) -> Ip {
    let net = 0x2001_0db8 << 96;
    let (src, dst) = (net | 0x10_0000_0203, net | 0x20_0000_0407);
    Ip { version: 6, flow_label: 0x6_789a, src, dst, ..ipv4(transport) }
}
