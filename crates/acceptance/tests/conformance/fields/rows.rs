//! OpenFlow 1.3.5 tables 11 and 12, copied by hand: width, mask, prerequisite; and whether §7.2.5 lets set-field name the field.

use crate::oracle::{Frame, Framing, Sample};
use openflow::{Match, OxmField};

/// One field.
#[derive(Clone, Copy)]
pub struct Row {
    /// The field.
    pub field: OxmField,
    /// Its name in names of cases: that of `OXM_OF_*` in lower case.
    pub name: &'static str,
    /// Width.
    pub bits: u32,
    /// Whether a mask is allowed.
    pub maskable: bool,
    /// Whether set-field may name it.
    pub settable: bool,
}

impl Row {
    /// Every bit of the field.
    pub fn full(self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }

    /// Some bits of the field and not others. A VLAN id's present bit is always among them: without it the value would say "untagged".
    pub fn some_bits(self) -> u128 {
        let odd = 0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa & self.full();
        if self.field == OxmField::VlanVid { odd | 0x1000 } else { odd }
    }

    /// A different value: the bits of `mask` flipped, but for a VLAN id's present bit.
    pub fn flipped(self, value: u128, mask: u128) -> u128 {
        let present = if self.field == OxmField::VlanVid { 0x1000 } else { 0 };
        match self.field {
            // A value that no header after it has: what follows must not be read as something else.
            OxmField::EthType => 0x88b6,
            OxmField::IpProto => 253,
            _ => value ^ (mask & self.full() & !present),
        }
    }

    /// The frames that have the field, in every framing that leaves it visible.
    pub fn frames(self) -> impl Iterator<Item = (Sample, Framing, Frame)> {
        let all = Sample::ALL.into_iter().flat_map(|sample| Framing::ALL.map(|f| (sample, f)));
        all.map(|(sample, framing)| (sample, framing, framing.around(sample))).filter(
            move |(sample, _, frame)| frame.get(self.field).is_some() && self.is_worth(*sample),
        )
    }

    /// For a field that does not look at the transport, one sample of each kind of network header.
    fn is_worth(self, sample: Sample) -> bool {
        match self.field {
            OxmField::EthDst | OxmField::EthSrc | OxmField::EthType => {
                matches!(sample, Sample::Arp | Sample::Ipv4Udp | Sample::Ipv6Udp)
            }
            OxmField::VlanVid
            | OxmField::VlanPcp
            | OxmField::MplsLabel
            | OxmField::MplsTc
            | OxmField::MplsBos
            | OxmField::PbbIsid => Sample::IP.contains(&sample),
            _ => !matches!(sample, Sample::Ipv4InIpv4 | Sample::Ipv6InIpv6),
        }
    }
}

const fn row(
    name: &'static str,
    field: OxmField,
    bits: u32,
    maskable: bool,
    settable: bool,
) -> Row {
    Row { field, name, bits, maskable, settable }
}

use OxmField as F;
const M: bool = true; // maskable
const X: bool = false; // exact only
const S: bool = true; // settable
const N: bool = false; // not settable

/// Every field of table 11, and the TCP flags of the ONF's extension 109.
pub const ROWS: [Row; 41] = [
    row("in_port", F::InPort, 32, X, N),
    row("in_phy_port", F::InPhyPort, 32, X, N),
    row("metadata", F::Metadata, 64, M, N),
    row("eth_dst", F::EthDst, 48, M, S),
    row("eth_src", F::EthSrc, 48, M, S),
    row("eth_type", F::EthType, 16, X, S),
    row("vlan_vid", F::VlanVid, 13, M, S),
    row("vlan_pcp", F::VlanPcp, 3, X, S),
    row("ip_dscp", F::IpDscp, 6, X, S),
    row("ip_ecn", F::IpEcn, 2, X, S),
    row("ip_proto", F::IpProto, 8, X, S),
    row("ipv4_src", F::Ipv4Src, 32, M, S),
    row("ipv4_dst", F::Ipv4Dst, 32, M, S),
    row("tcp_src", F::TcpSrc, 16, X, S),
    row("tcp_dst", F::TcpDst, 16, X, S),
    row("udp_src", F::UdpSrc, 16, X, S),
    row("udp_dst", F::UdpDst, 16, X, S),
    row("sctp_src", F::SctpSrc, 16, X, S),
    row("sctp_dst", F::SctpDst, 16, X, S),
    row("icmpv4_type", F::Icmpv4Type, 8, X, S),
    row("icmpv4_code", F::Icmpv4Code, 8, X, S),
    row("arp_op", F::ArpOp, 16, X, S),
    row("arp_spa", F::ArpSpa, 32, M, S),
    row("arp_tpa", F::ArpTpa, 32, M, S),
    row("arp_sha", F::ArpSha, 48, M, S),
    row("arp_tha", F::ArpTha, 48, M, S),
    row("ipv6_src", F::Ipv6Src, 128, M, S),
    row("ipv6_dst", F::Ipv6Dst, 128, M, S),
    row("ipv6_flabel", F::Ipv6Flabel, 20, M, S),
    row("icmpv6_type", F::Icmpv6Type, 8, X, S),
    row("icmpv6_code", F::Icmpv6Code, 8, X, S),
    row("ipv6_nd_target", F::Ipv6NdTarget, 128, X, S),
    row("ipv6_nd_sll", F::Ipv6NdSll, 48, X, S),
    row("ipv6_nd_tll", F::Ipv6NdTll, 48, X, S),
    row("mpls_label", F::MplsLabel, 20, X, S),
    row("mpls_tc", F::MplsTc, 3, X, S),
    row("mpls_bos", F::MplsBos, 1, X, S),
    row("pbb_isid", F::PbbIsid, 24, M, S),
    row("tunnel_id", F::TunnelId, 64, M, S),
    row("ipv6_exthdr", F::Ipv6Exthdr, 9, M, N),
    row("tcp_flags", F::TcpFlags, 12, M, N),
];

/// What must be matched before `field` may be, in a frame that has it (table 12).
pub fn needs(field: OxmField, frame: &Frame) -> Match {
    let value = |field| frame.get(field).expect("the frame has what the field needs");
    let with = |fields: Match, field| {
        let value = value(field);
        fields.with(field, value)
    };
    let none = Match::default;
    match field {
        F::InPhyPort => none().with(F::InPort, 1),
        F::VlanPcp => with(none(), F::VlanVid),
        F::IpDscp | F::IpEcn | F::IpProto | F::Ipv4Src | F::Ipv4Dst => with(none(), F::EthType),
        F::Ipv6Src | F::Ipv6Dst | F::Ipv6Flabel | F::Ipv6Exthdr => with(none(), F::EthType),
        F::ArpOp | F::ArpSpa | F::ArpTpa | F::ArpSha | F::ArpTha => with(none(), F::EthType),
        F::MplsLabel | F::MplsTc | F::MplsBos | F::PbbIsid => with(none(), F::EthType),
        F::TcpSrc | F::TcpDst | F::TcpFlags | F::UdpSrc | F::UdpDst | F::SctpSrc | F::SctpDst => {
            with(with(none(), F::EthType), F::IpProto)
        }
        F::Icmpv4Type | F::Icmpv4Code | F::Icmpv6Type | F::Icmpv6Code => {
            with(with(none(), F::EthType), F::IpProto)
        }
        F::Ipv6NdTarget | F::Ipv6NdSll | F::Ipv6NdTll => {
            with(with(with(none(), F::EthType), F::IpProto), F::Icmpv6Type)
        }
        F::InPort | F::Metadata | F::EthDst | F::EthSrc | F::EthType | F::VlanVid | F::TunnelId => {
            none()
        }
        F::Fcf => with(none(), F::EthType),
        // Not of the specification: no row has them.
        F::VmId | F::IpFrag | F::TunIpv4Src | F::TunIpv4Dst | F::TunIpv6Src | F::TunIpv6Dst => {
            none()
        }
    }
}
