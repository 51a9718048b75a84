//! Matches, printed in the order and with the names of `ovs-ofctl dump-flows`.

use super::ports::{Name, print_port};
use super::{fields, value, vlan};
use crate::ids::PortNo;
use crate::matching::Match;
use crate::oxm::{Oxm, OxmField};

/// The fields after the protocol's shorthand, with the names that matches print them by. (Set-field prints the field's own name.)
const BEFORE_VLAN: &[(OxmField, &str)] = &[
    (OxmField::TunnelId, "tun_id"),
    (OxmField::TunIpv4Src, "tun_src"),
    (OxmField::TunIpv4Dst, "tun_dst"),
    (OxmField::TunIpv6Src, "tun_ipv6_src"),
    (OxmField::TunIpv6Dst, "tun_ipv6_dst"),
    (OxmField::Metadata, "metadata"),
];
const ETHERNET: &[(OxmField, &str)] = &[(OxmField::EthSrc, "dl_src"), (OxmField::EthDst, "dl_dst")];
const NETWORK: &[(OxmField, &str)] = &[
    (OxmField::Ipv6Src, "ipv6_src"),
    (OxmField::Ipv6Dst, "ipv6_dst"),
    (OxmField::Ipv6Flabel, "ipv6_label"),
    (OxmField::ArpSpa, "arp_spa"),
    (OxmField::ArpTpa, "arp_tpa"),
    (OxmField::Ipv4Src, "nw_src"),
    (OxmField::Ipv4Dst, "nw_dst"),
    (OxmField::IpProto, "nw_proto"),
    (OxmField::ArpOp, "arp_op"),
    (OxmField::ArpSha, "arp_sha"),
    (OxmField::ArpTha, "arp_tha"),
    (OxmField::IpDscp, "nw_tos"),
    (OxmField::IpEcn, "nw_ecn"),
    (OxmField::Fcf, "fcf"),
    (OxmField::VmId, "vm_id"),
    (OxmField::IpFrag, "ip_frag"),
    (OxmField::Ipv6Exthdr, "ipv6_exthdr"),
    (OxmField::PbbIsid, "pbb_isid"),
    (OxmField::MplsLabel, "mpls_label"),
    (OxmField::MplsTc, "mpls_tc"),
    (OxmField::MplsBos, "mpls_bos"),
    (OxmField::Icmpv4Type, "icmp_type"),
    (OxmField::Icmpv4Code, "icmp_code"),
    (OxmField::Icmpv6Type, "icmp_type"),
    (OxmField::Icmpv6Code, "icmp_code"),
    (OxmField::Ipv6NdTarget, "nd_target"),
    (OxmField::Ipv6NdSll, "nd_sll"),
    (OxmField::Ipv6NdTll, "nd_tll"),
    (OxmField::TcpSrc, "tp_src"),
    (OxmField::UdpSrc, "tp_src"),
    (OxmField::SctpSrc, "tp_src"),
    (OxmField::TcpDst, "tp_dst"),
    (OxmField::UdpDst, "tp_dst"),
    (OxmField::SctpDst, "tp_dst"),
    (OxmField::TcpFlags, "tcp_flags"),
];

/// A match as `ovs-ofctl dump-flows` prints it; empty for the match of everything.
///
/// A field that this crate does not know is printed as `oxm_CCCC_NN=BYTES`, which does not read back.
pub fn print_match(fields: &Match, name: Name<'_>) -> String {
    let mut parts = Vec::new();
    let protocol = Protocol::of(fields);
    parts.extend(protocol.shorthand.map(str::to_owned));
    parts.extend(print_all(fields, BEFORE_VLAN));
    parts.extend(print_ports(fields, name));
    parts.extend(Some(vlan::print(fields)).filter(|text| !text.is_empty()));
    parts.extend(print_all(fields, ETHERNET));
    if let (None, Some(ether)) = (protocol.shorthand, fields.exact(OxmField::EthType)) {
        parts.push(format!("dl_type=0x{ether:04x}"));
    }
    let network = NETWORK
        .iter()
        .filter(|(field, _)| !(protocol.names_ip_proto && *field == OxmField::IpProto));
    parts.extend(network.filter_map(|(field, name)| print_field(fields, *field, name)));
    parts.extend(fields.0.iter().filter_map(print_unknown));
    parts.join(",")
}

/// The one-word protocol of a match.
struct Protocol {
    shorthand: Option<&'static str>,
    /// Whether the word says the IP protocol too.
    names_ip_proto: bool,
}

impl Protocol {
    fn of(fields: &Match) -> Self {
        let Some(ether) = fields.exact(OxmField::EthType) else {
            return Self { shorthand: None, names_ip_proto: false };
        };
        let proto = fields.exact(OxmField::IpProto);
        let both = proto.and_then(|_| fields::shorthand(ether, proto));
        Self {
            shorthand: both.or_else(|| fields::shorthand(ether, None)),
            names_ip_proto: both.is_some(),
        }
    }
}

fn print_all(
    fields: &Match,
    list: &'static [(OxmField, &'static str)],
) -> impl Iterator<Item = String> {
    list.iter().filter_map(|(field, name)| print_field(fields, *field, name))
}

fn print_field(fields: &Match, field: OxmField, name: &str) -> Option<String> {
    let (value, mask) = fields.get(field).filter(|(_, mask)| *mask != 0)?;
    let mask = (mask != field.full()).then_some(mask);
    let text = match (field, mask) {
        (OxmField::IpDscp, None) => (value << 2).to_string(),
        (OxmField::Ipv6Flabel, None) => format!("0x{value:05x}"),
        (OxmField::Ipv6Flabel, Some(mask)) => format!("0x{value:05x}/0x{mask:05x}"),
        _ => value::print(field, value, mask),
    };
    Some(format!("{name}={text}"))
}

fn print_ports(fields: &Match, name: Name<'_>) -> impl Iterator<Item = String> {
    let port = fields.exact(OxmField::InPort).map(|port| print_port(PortNo(port as u32), name));
    let physical = fields.exact(OxmField::InPhyPort).map(|port| format!("in_phy_port={port}"));
    port.map(|port| format!("in_port={port}")).into_iter().chain(physical)
}

fn print_unknown(oxm: &Oxm) -> Option<String> {
    let Oxm::Unknown(oxm) = oxm else { return None };
    let bytes: String = oxm.body.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("oxm_{:04x}_{}={bytes}", oxm.class, oxm.number))
}
