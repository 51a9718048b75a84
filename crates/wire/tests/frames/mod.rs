//! Strategies for frames: right ones from the builder, and the same with bytes changed or cut off.

#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part of the frames")]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::build::{Arp, Frame, Ipv4, Ipv6, Tcp};
use wire::ip_proto;

#[derive(Clone, Debug)]
pub struct Recipe {
    vlans: Vec<(bool, u16)>,
    pbb: Option<(u8, u32, [u8; 6], [u8; 6])>,
    mpls: Vec<(u32, u8, u8)>,
    pub network: Network,
    pub transport: Transport,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug)]
pub enum Network {
    None(u16),
    Arp(u16, [u8; 6], [u8; 6], [u8; 4], [u8; 4]),
    V4 { src: [u8; 4], dst: [u8; 4], tos: u8, ttl: u8, options: usize, fragment: u16 },
    V6 { src: [u8; 16], dst: [u8; 16], class: u8, label: u32, hops: u8, extensions: Vec<Extension> },
}

#[derive(Clone, Debug)]
pub enum Extension {
    /// Hop-by-hop or destination options, or authentication, with this many further units.
    Plain(u8, u8),
    Routing(u8, [u8; 16]),
    Fragment(u16),
}

#[derive(Clone, Debug)]
pub enum Transport {
    None,
    Tcp(u16, u16, u16, usize),
    Udp(u16, u16, bool),
    Sctp(u16, u16),
    Icmp(u8, u8),
    Neighbor(bool, [u8; 16], Option<[u8; 6]>),
}

pub fn vlans() -> impl Strategy<Value = Vec<(bool, u16)>> {
    vec(any::<(bool, u16)>(), 0..3)
}

fn fragment_v4() -> impl Strategy<Value = u16> {
    prop_oneof![6 => Just(0), 1 => Just(0x4000), 1 => Just(0x2000), 1 => Just(0x2007), 1 => Just(7)]
}

fn extension() -> impl Strategy<Value = Extension> {
    prop_oneof![
        (
            prop_oneof![
                Just(ip_proto::HOP_BY_HOP),
                Just(ip_proto::DESTINATION),
                Just(ip_proto::AUTH)
            ],
            0u8..3
        )
            .prop_map(|(proto, units)| Extension::Plain(proto, units)),
        (0u8..2, any::<[u8; 16]>()).prop_map(|(left, address)| Extension::Routing(left, address)),
        prop_oneof![3 => Just(0), 1 => Just(1), 1 => Just(0x39)].prop_map(Extension::Fragment),
    ]
}

pub fn network() -> impl Strategy<Value = Network> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<(u8, u8)>(), 0usize..4, fragment_v4())
        .prop_map(|(src, dst, (tos, ttl), options, fragment)| Network::V4 {
            src,
            dst,
            tos,
            ttl,
            options,
            fragment,
        });
    let v6 = (
        any::<[u8; 16]>(),
        any::<[u8; 16]>(),
        any::<(u8, u8)>(),
        any::<u32>(),
        vec(extension(), 0..4),
    )
        .prop_map(|(src, dst, (class, hops), label, extensions)| Network::V6 {
            src,
            dst,
            class,
            label,
            hops,
            extensions,
        });
    let arp = any::<(u16, [u8; 6], [u8; 6], [u8; 4], [u8; 4])>()
        .prop_map(|(op, sha, tha, spa, tpa)| Network::Arp(op, sha, tha, spa, tpa));
    prop_oneof![1 => any::<u16>().prop_map(Network::None), 1 => arp, 5 => v4, 5 => v6]
}

pub fn transport() -> impl Strategy<Value = Transport> {
    prop_oneof![
        1 => Just(Transport::None),
        3 => (any::<(u16, u16, u16)>(), 0usize..4).prop_map(|((src, dst, flags), options)| {
            Transport::Tcp(src, dst, flags, options)
        }),
        3 => any::<(u16, u16, bool)>().prop_map(|(src, dst, sums)| Transport::Udp(src, dst, sums)),
        2 => any::<(u16, u16)>().prop_map(|(src, dst)| Transport::Sctp(src, dst)),
        1 => any::<(u8, u8)>().prop_map(|(kind, code)| Transport::Icmp(kind, code)),
        2 => (any::<bool>(), any::<[u8; 16]>(), option::of(any::<[u8; 6]>()))
            .prop_map(|(ask, target, address)| Transport::Neighbor(ask, target, address)),
    ]
}

pub fn recipe() -> impl Strategy<Value = Recipe> {
    let pbb = option::weighted(0.1, any::<(u8, u32, [u8; 6], [u8; 6])>());
    let mpls = prop_oneof![3 => Just(vec![]), 1 => vec(any::<(u32, u8, u8)>(), 1..4)];
    let payload = prop_oneof![4 => vec(any::<u8>(), 0..40), 1 => vec(any::<u8>(), 200..1400)];
    (vlans(), pbb, mpls, network(), transport(), payload).prop_map(
        |(vlans, pbb, mpls, network, transport, payload)| Recipe {
            vlans,
            pbb,
            mpls,
            network,
            transport,
            payload,
        },
    )
}

impl Recipe {
    pub fn frame(&self) -> Frame {
        self.transport(self.network(self.link())).payload(&self.payload)
    }

    /// Everything before the network header.
    pub fn link(&self) -> Frame {
        let mut frame = Frame::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
        for &(service, tci) in &self.vlans {
            frame = frame.vlan(if service { 0x88a8 } else { 0x8100 }, tci);
        }
        if let Some((pcp, isid, dst, src)) = self.pbb {
            frame = frame.pbb(pcp & 7, isid, dst, src);
        }
        for &(label, tc, ttl) in &self.mpls {
            frame = frame.mpls(label, tc, ttl);
        }
        frame
    }

    fn network(&self, mut frame: Frame) -> Frame {
        match self.network {
            Network::None(eth_type) => frame.eth_type(eth_type),
            Network::Arp(op, sha, tha, spa, tpa) => {
                frame.arp(Arp { op, sha, spa: Ipv4Addr::from(spa), tha, tpa: Ipv4Addr::from(tpa) })
            }
            Network::V4 { src, dst, tos, ttl, options, fragment } => frame.ipv4(Ipv4 {
                src: Ipv4Addr::from(src),
                dst: Ipv4Addr::from(dst),
                tos,
                ttl,
                fragment,
                options: &[1; 16][..4 * options],
                ..Ipv4::default()
            }),
            Network::V6 { src, dst, class, label, hops, ref extensions } => {
                frame = frame.ipv6(Ipv6 {
                    src: Ipv6Addr::from(src),
                    dst: Ipv6Addr::from(dst),
                    traffic_class: class,
                    flow_label: label,
                    hop_limit: hops,
                });
                extensions.iter().fold(frame, Self::extension)
            }
        }
    }

    fn extension(frame: Frame, extension: &Extension) -> Frame {
        match *extension {
            Extension::Plain(proto, units) => {
                // Authentication counts units of 4 bytes less 2, of which the padding here makes an even number.
                let units = usize::from(units);
                let (len, bytes) = if proto == ip_proto::AUTH {
                    (2 * units, 8 + 8 * units)
                } else {
                    (units, 8 + 8 * units)
                };
                let mut rest = vec![1; bytes - 1];
                rest[0] = len as u8;
                frame.extension(proto, &rest)
            }
            Extension::Routing(left, address) => frame.routing(left, Ipv6Addr::from(address)),
            Extension::Fragment(offset) => frame.fragment(offset, 7),
        }
    }

    fn transport(&self, frame: Frame) -> Frame {
        if matches!(self.network, Network::None(_) | Network::Arp(..)) {
            return frame;
        }
        match self.transport {
            Transport::None => frame,
            Transport::Tcp(src, dst, flags, options) => frame.tcp(Tcp {
                src,
                dst,
                flags,
                options: &[1; 16][..4 * options],
                ..Tcp::default()
            }),
            Transport::Udp(src, dst, _) => frame.udp(src, dst),
            Transport::Sctp(src, dst) => frame.sctp(src, dst),
            Transport::Icmp(kind, code) if matches!(self.network, Network::V4 { .. }) => {
                frame.icmp(kind, code)
            }
            Transport::Icmp(kind, code) => frame.icmpv6(kind, code),
            Transport::Neighbor(ask, target, address) => {
                frame.neighbor(if ask { 135 } else { 136 }, Ipv6Addr::from(target), address)
            }
        }
    }

    /// The frame, with the UDP checksum left out where the recipe says so.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.frame().finish();
        let (key, layers) = wire::parse(&wire::Head::copy_of(&bytes), 0);
        let is_udp = key.get(wire::Field::IpProto) == u128::from(ip_proto::UDP);
        if let (Transport::Udp(_, _, false), true, l4 @ 1..) =
            (&self.transport, is_udp, usize::from(layers.l4))
        {
            bytes[l4 + 6..l4 + 8].fill(0);
        }
        bytes
    }
}

/// A frame whose bytes were changed here and there, cut off, or padded.
pub fn hostile() -> impl Strategy<Value = Vec<u8>> {
    (
        recipe(),
        vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        any::<u8>(),
        any::<u16>(),
    )
        .prop_map(|(recipe, changes, how, len)| {
            let mut bytes = recipe.bytes();
            for (index, value) in changes {
                let at = index.index(bytes.len().min(120));
                bytes[at] = value;
            }
            match how % 4 {
                0 => bytes.truncate(usize::from(len) % 130),
                1 => bytes.extend(std::iter::repeat_n(0, usize::from(len) % 40)),
                _ => {}
            }
            bytes
        })
}
