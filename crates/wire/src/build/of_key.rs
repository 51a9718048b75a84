//! A frame from its key: the shortest that has all headers that the key names.

use super::{Arp, Frame, Ipv4, Ipv6, Tcp};
use crate::{Field, Key, VLAN_PRESENT, eth_type, ip_proto};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The fragment offset of a later fragment, in 8 bytes. Chosen: that of a second fragment of Ethernet's usual MTU.
const LATER: u16 = 185;

impl Frame {
    /// A frame with this key, whose IP header or first MPLS shim has this TTL. What no header says (the ingress port, metadata, tunnels) is left
    /// out, and so is what lies behind an MPLS shim or an I-TAG.
    pub fn of_key(key: &Key, ttl: u8) -> Self {
        let mac = |field| mac(key.get(field) as u64);
        let frame = Self::ethernet(mac(Field::EthDst), mac(Field::EthSrc));
        let tag = key.get(Field::VlanVid) as u16;
        let frame = match tag & VLAN_PRESENT {
            0 => frame,
            _ => frame.vlan(eth_type::VLAN, (key.get(Field::VlanPcp) as u16) << 13 | tag & 0xfff),
        };
        match key.get(Field::EthType) as u16 {
            eth_type::ARP => frame.arp(arp(key)),
            eth_type::IPV4 => transport(frame.ipv4(ipv4(key, ttl)), key),
            eth_type::IPV6 => ipv6(frame, key, ttl),
            shim @ (eth_type::MPLS | eth_type::MPLS_UPSTREAM) => {
                frame.eth_type(shim).payload(&mpls(key, ttl).to_be_bytes())
            }
            eth_type::PBB => {
                let uca = (key.get(Field::PbbUca) as u32) << 27;
                let control = uca | key.get(Field::PbbIsid) as u32;
                frame.eth_type(eth_type::PBB).payload(&control.to_be_bytes()).payload(&[0; 14])
            }
            other => frame.eth_type(other),
        }
    }
}

fn mac(value: u64) -> [u8; 6] {
    let [_, _, mac @ ..] = value.to_be_bytes();
    mac
}

fn tos(key: &Key) -> u8 {
    (key.get(Field::IpDscp) << 2 | key.get(Field::IpEcn)) as u8
}

fn arp(key: &Key) -> Arp {
    let ip = |field| Ipv4Addr::from(key.get(field) as u32);
    let mac = |field| mac(key.get(field) as u64);
    Arp {
        op: key.get(Field::ArpOp) as u16,
        sha: mac(Field::ArpSha),
        spa: ip(Field::ArpSpa),
        tha: mac(Field::ArpTha),
        tpa: ip(Field::ArpTpa),
    }
}

fn ipv4(key: &Key, ttl: u8) -> Ipv4<'static> {
    let ip = |field| Ipv4Addr::from(key.get(field) as u32);
    let (src, dst) = (ip(Field::Ipv4Src), ip(Field::Ipv4Dst));
    let fragment = match key.get(Field::IpFrag) {
        0 => 0,
        1 => 0x2000,
        _ => LATER,
    };
    Ipv4 { src, dst, tos: tos(key), fragment, ttl, ..Ipv4::default() }
}

fn ipv6(frame: Frame, key: &Key, ttl: u8) -> Frame {
    let ip = |field| Ipv6Addr::from(key.get(field));
    let frame = frame.ipv6(Ipv6 {
        src: ip(Field::Ipv6Src),
        dst: ip(Field::Ipv6Dst),
        traffic_class: tos(key),
        flow_label: key.get(Field::Ipv6Flabel) as u32,
        hop_limit: ttl,
    });
    let frame = match key.get(Field::IpFrag) {
        0 => frame,
        1 => frame.fragment(1, 0),
        _ => frame.fragment(LATER << 3, 0),
    };
    transport(frame, key)
}

fn transport(mut frame: Frame, key: &Key) -> Frame {
    let number = |field| key.get(field) as u16;
    let (src, dst) = (number(Field::TpSrc), number(Field::TpDst));
    let (icmp_type, code) = (number(Field::IcmpType) as u8, number(Field::IcmpCode) as u8);
    let is_v6 = number(Field::EthType) == eth_type::IPV6;
    match number(Field::IpProto) as u8 {
        proto if number(Field::IpFrag) & 2 != 0 => {
            frame.announce(0, proto);
            frame
        }
        ip_proto::TCP => {
            frame.tcp(Tcp { src, dst, flags: number(Field::TcpFlags), ..Tcp::default() })
        }
        ip_proto::UDP => frame.udp(src, dst),
        ip_proto::SCTP => frame.sctp(src, dst),
        ip_proto::ICMP if !is_v6 => frame.icmp(icmp_type, code),
        ip_proto::ICMPV6 if is_v6 && matches!(icmp_type, 135 | 136) => {
            let address = if icmp_type == 135 { Field::Ipv6NdSll } else { Field::Ipv6NdTll };
            let address = Some(key.get(address) as u64).filter(|&address| address != 0).map(mac);
            frame.neighbor(icmp_type, Ipv6Addr::from(key.get(Field::Ipv6NdTarget)), address)
        }
        ip_proto::ICMPV6 if is_v6 => frame.icmpv6(icmp_type, code).payload(&[0; 4]),
        proto => {
            frame.announce(0, proto);
            frame
        }
    }
}

fn mpls(key: &Key, ttl: u8) -> u32 {
    let field = |field| key.get(field) as u32;
    field(Field::MplsLabel) << 12
        | field(Field::MplsTc) << 9
        | field(Field::MplsBos) << 8
        | u32::from(ttl)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Head, parse};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_of_a_key_has_that_key(
            link in (any::<u64>(), any::<u64>(), prop_oneof![Just(0), 0x1000u16..0x2000], 0u8..8),
            kind in (0usize..8, 0usize..7),
            numbers in any::<[u16; 5]>(),
            addresses in any::<(u128, u128)>(),
        ) {
            const TYPES: [u16; 8] = [0x0800, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x0806, 0x8847, 0x9000];
            const PROTOS: [u8; 7] = [6, 17, 132, 1, 58, 47, 99];
            let (mut key, (dst, src, tag, pcp)) = (Key::default(), link);
            let eth_type = TYPES[kind.0];
            let mut proto = PROTOS[kind.1];
            if eth_type == 0x86dd && proto == 1 { proto = 58 }
            if eth_type == 0x0800 && proto == 58 { proto = 1 }
            key.set(Field::InPort, 3);
            key.set(Field::EthDst, dst.into());
            key.set(Field::EthSrc, src.into());
            key.set(Field::EthType, eth_type.into());
            key.set(Field::VlanVid, tag.into());
            if tag != 0 { key.set(Field::VlanPcp, pcp.into()) }
            let [a, b, c, d, e] = numbers.map(u128::from);
            if matches!(eth_type, 0x0800 | 0x86dd) {
                key.set(Field::IpProto, proto.into());
                key.set(Field::IpDscp, d);
                key.set(Field::IpEcn, e);
                match (proto, a & 0xff) {
                    (6 | 17 | 132, _) => { key.set(Field::TpSrc, a); key.set(Field::TpDst, b); }
                    // Neighbour discovery needs its target.
                    (1 | 58, kind) if kind != 135 && kind != 136 => {
                        key.set(Field::IcmpType, a);
                        key.set(Field::IcmpCode, b);
                    }
                    _ => {}
                }
                if proto == 6 { key.set(Field::TcpFlags, c) }
            }
            match eth_type {
                0x0800 => { key.set(Field::Ipv4Src, addresses.0); key.set(Field::Ipv4Dst, addresses.1); }
                0x86dd => {
                    key.set(Field::Ipv6Src, addresses.0);
                    key.set(Field::Ipv6Dst, addresses.1);
                    key.set(Field::Ipv6Flabel, c);
                }
                0x0806 => {
                    key.set(Field::ArpOp, a);
                    key.set(Field::ArpSpa, addresses.0);
                    key.set(Field::ArpTpa, addresses.1);
                    key.set(Field::ArpSha, src.into());
                    key.set(Field::ArpTha, dst.into());
                }
                0x8847 => {
                    key.set(Field::MplsLabel, addresses.0);
                    key.set(Field::MplsTc, b);
                    key.set(Field::MplsBos, 1);
                }
                _ => {}
            }
            let frame = Frame::of_key(&key, 64).finish();
            prop_assert_eq!(parse(&Head::copy_of(&frame), 3).0, key);
        }
    }
}
