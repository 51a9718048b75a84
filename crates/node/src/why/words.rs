//! Fields and values, as users write them.

use crate::switch::translate::{self, KeyMask};
use openflow::text;
use port::Ends;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::{Field, Key, VLAN_PRESENT, eth_type, ip_proto};

/// The field's name, as flows have it.
pub fn name(field: Field) -> &'static str {
    match field {
        Field::EthDst => "dl_dst",
        Field::EthSrc => "dl_src",
        Field::EthType => "dl_type",
        Field::VlanVid => "dl_vlan",
        Field::VlanPcp => "dl_vlan_pcp",
        Field::IpProto => "nw_proto",
        Field::IpDscp => "nw_tos",
        Field::IpEcn => "nw_ecn",
        Field::Ipv4Src => "nw_src",
        Field::Ipv4Dst => "nw_dst",
        Field::TpSrc => "tp_src",
        Field::TpDst => "tp_dst",
        Field::TunnelId => "tun_id",
        Field::Ipv6Flabel => "ipv6_label",
        Field::Ipv6NdTarget => "nd_target",
        Field::Ipv6NdSll => "nd_sll",
        Field::Ipv6NdTll => "nd_tll",
        other => other.name(),
    }
}

/// An example of how a field is said.
pub fn say(field: Field) -> String {
    let example = match field {
        Field::EthDst | Field::EthSrc | Field::ArpSha | Field::ArpTha => "02:00:00:00:00:01",
        Field::EthType => {
            return "a protocol (arp, ip, tcp, udp, icmp, ipv6) or dl_type=0x…".into();
        }
        Field::IpProto => return "a protocol (tcp, udp, icmp, sctp) or nw_proto=…".into(),
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => "10.0.0.1",
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => "fd00::1",
        Field::TpSrc | Field::TpDst => "80",
        Field::TcpFlags => "+syn-ack",
        Field::IcmpType => "8",
        _ => "0",
    };
    format!("{}={example}", name(field))
}

/// A value of a field, or its bits under a mask; `port` names ports.
pub fn value(field: Field, value: u128, mask: u128, port: impl Fn(u32) -> String) -> String {
    let is_whole = mask == field.full();
    match field {
        Field::InPort => port(value as u32),
        Field::VlanVid if value & mask & u128::from(VLAN_PRESENT) == 0 => "no tag".into(),
        Field::VlanVid if mask & 0xfff == 0 => "any tag".into(),
        Field::VlanVid if mask & 0xfff == 0xfff => (value & 0xfff).to_string(),
        Field::IpDscp => (value << 2).to_string(),
        Field::IpProto => proto(value as u8),
        Field::EthType => ether(value as u16),
        Field::IpFrag => frag(value & mask).into(),
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => {
            prefixed(Ipv4Addr::from(value as u32).to_string(), mask, 32)
        }
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => {
            prefixed(Ipv6Addr::from(value).to_string(), mask, 128)
        }
        Field::EthDst | Field::EthSrc | Field::ArpSha | Field::ArpTha if is_whole => mac(value),
        Field::EthDst | Field::EthSrc | Field::ArpSha | Field::ArpTha => {
            format!("{}/{}", mac(value), mac(mask))
        }
        Field::Ipv6NdSll | Field::Ipv6NdTll => mac(value),
        Field::TcpFlags | Field::Metadata | Field::TunnelId if !is_whole => {
            format!("{value:#x}/{mask:#x}")
        }
        Field::TcpFlags => format!("{value:#x}"),
        _ if is_whole => value.to_string(),
        _ => format!("{value:#x}/{mask:#x}"),
    }
}

fn mac(value: u128) -> String {
    let [_, _, bytes @ ..] = (value as u64).to_be_bytes();
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

fn prefixed(address: String, mask: u128, bits: u32) -> String {
    let full = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    let ones = mask.count_ones();
    let prefix = full.checked_shl(bits - ones).unwrap_or(0) & full;
    match () {
        () if mask == full => address,
        () if mask == prefix => format!("{address}/{ones}"),
        () => format!("{address}/{mask:#x}"),
    }
}

fn proto(value: u8) -> String {
    match value {
        ip_proto::ICMP => "icmp".into(),
        ip_proto::TCP => "tcp".into(),
        ip_proto::UDP => "udp".into(),
        ip_proto::SCTP => "sctp".into(),
        ip_proto::ICMPV6 => "icmp6".into(),
        other => other.to_string(),
    }
}

fn ether(value: u16) -> String {
    match value {
        eth_type::IPV4 => "ip".into(),
        eth_type::IPV6 => "ipv6".into(),
        eth_type::ARP => "arp".into(),
        eth_type::MPLS => "mpls".into(),
        other => format!("{other:#06x}"),
    }
}

fn frag(value: u128) -> &'static str {
    match value {
        0 => "no",
        1 => "first",
        _ => "later",
    }
}

/// A packet as a match of what is known of it, without what is 0 anyway.
pub fn packet(key: &Key, known: &Key, ends: &Ends, name: text::Name<'_>) -> String {
    let mut mask = Key::default();
    for &field in Field::ALL {
        let is_known = known.get(field) == field.full();
        let is_port = matches!(field, Field::TpSrc | Field::TpDst | Field::IcmpType);
        if is_known && (key.get(field) != 0 || is_port) {
            mask.set(field, field.full());
        }
    }
    let matched = KeyMask { key: key.masked(&mask), mask, in_phy_port: 0 };
    text::print_match(&translate::oxm_match(&matched, ends), name)
}
