//! Match fields: the 40 of OpenFlow 1.3.5 (§7.2.3.7, table 12) and the TCP flags of the ONF extension.
//!
//! One table row per field says all there is to know: wire numbers, width, whether a mask is allowed, what else must be
//! matched first, whether set-field may name it, and its name in the ovs-ofctl syntax.

/// `OFPXMC_OPENFLOW_BASIC`.
pub const CLASS_BASIC: u16 = 0x8000;
/// `OFPXMC_EXPERIMENTER`: four bytes of experimenter id precede the value.
pub const CLASS_EXPERIMENTER: u16 = 0xffff;
/// Experimenter id of the Open Networking Foundation's extensions.
pub const ONF: u32 = 0x4f4e_4600;

/// Bit of a VLAN id's value that says "there is a tag" (`OFPVID_PRESENT`).
pub const VLAN_PRESENT: u16 = 0x1000;

/// How a field's value reads in text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A decimal number; hexadecimal with a mask.
    Decimal,
    /// A hexadecimal number.
    Hex,
    /// A port's number or name.
    Port,
    /// Six bytes with colons.
    Mac,
    /// Dotted quad, CIDR or mask.
    Ipv4,
    /// RFC 5952 text, prefix length or mask.
    Ipv6,
    /// TCP flag letters or a number.
    TcpFlags,
}

/// What must be matched before a field may be (§7.2.3.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prerequisite {
    /// Nothing.
    None,
    /// The ingress port.
    InPort,
    /// A VLAN tag: `vlan_vid` with the present bit.
    Vlan,
    /// One of these Ethernet types.
    EthType(&'static [u16]),
    /// IPv4 or IPv6 with this protocol.
    IpProto(u8),
    /// IPv4 with ICMP.
    Icmpv4,
    /// IPv6 with ICMPv6.
    Icmpv6,
    /// ICMPv6 of one of these types.
    NeighbourDiscovery(&'static [u8]),
}

/// All that is known of one field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldSpec {
    /// OXM class.
    pub class: u16,
    /// Field number in the class.
    pub number: u8,
    /// Bits that carry meaning; [`OxmField::bytes`] says how many bytes that takes.
    pub bits: u8,
    /// Whether a mask is allowed.
    pub maskable: bool,
    /// What must be matched too.
    pub prerequisite: Prerequisite,
    /// Whether a set-field action may name it (§7.2.5: all header fields; ports, metadata and pseudo-fields are none).
    pub settable: bool,
    /// How it is written.
    pub format: Format,
    /// Its name in ovs-fields(7).
    pub name: &'static str,
}

const IP: &[u16] = &[0x0800, 0x86dd];
const IPV4: &[u16] = &[0x0800];
const IPV6: &[u16] = &[0x86dd];
const ARP: &[u16] = &[0x0806];
const MPLS: &[u16] = &[0x8847, 0x8848];
const PBB: &[u16] = &[0x88e7];

macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident = $class:ident $number:literal, $bits:literal, $mask:ident, $set:ident, $pre:expr, $format:ident, $name:literal;)*) => {
        /// A match field.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum OxmField { $($(#[$doc])* $variant,)* }

        impl OxmField {
            /// Every field, in order of wire number.
            pub const ALL: &'static [OxmField] = &[$(OxmField::$variant,)*];

            /// The field's row of the table.
            pub const fn spec(self) -> &'static FieldSpec {
                use Prerequisite::{EthType, Icmpv4, Icmpv6, InPort, IpProto, NeighbourDiscovery, None, Vlan};
                match self { $(OxmField::$variant => const { &FieldSpec {
                    class: $class, number: $number, bits: $bits, maskable: fields!(@ $mask), prerequisite: $pre,
                    settable: fields!(@ $set), format: Format::$format, name: $name,
                } },)* }
            }
        }
    };
    (@ mask) => { true }; (@ exact) => { false };
    (@ set) => { true }; (@ fixed) => { false };
}

fields! {
    /// Ingress port.
    InPort = CLASS_BASIC 0, 32, exact, fixed, None, Port, "in_port";
    /// Physical port under the ingress port.
    InPhyPort = CLASS_BASIC 1, 32, exact, fixed, InPort, Port, "in_phy_port";
    /// Metadata passed between tables.
    Metadata = CLASS_BASIC 2, 64, mask, fixed, None, Hex, "metadata";
    /// Ethernet destination.
    EthDst = CLASS_BASIC 3, 48, mask, set, None, Mac, "eth_dst";
    /// Ethernet source.
    EthSrc = CLASS_BASIC 4, 48, mask, set, None, Mac, "eth_src";
    /// Ethernet type after VLAN tags.
    EthType = CLASS_BASIC 5, 16, exact, set, None, Hex, "eth_type";
    /// VLAN id with [`VLAN_PRESENT`]; 0 = untagged.
    VlanVid = CLASS_BASIC 6, 13, mask, set, None, Decimal, "vlan_vid";
    /// VLAN priority.
    VlanPcp = CLASS_BASIC 7, 3, exact, set, Vlan, Decimal, "vlan_pcp";
    /// IP DSCP.
    IpDscp = CLASS_BASIC 8, 6, exact, set, EthType(IP), Decimal, "ip_dscp";
    /// IP ECN.
    IpEcn = CLASS_BASIC 9, 2, exact, set, EthType(IP), Decimal, "nw_ecn";
    /// IP protocol.
    IpProto = CLASS_BASIC 10, 8, exact, set, EthType(IP), Decimal, "nw_proto";
    /// IPv4 source.
    Ipv4Src = CLASS_BASIC 11, 32, mask, set, EthType(IPV4), Ipv4, "ip_src";
    /// IPv4 destination.
    Ipv4Dst = CLASS_BASIC 12, 32, mask, set, EthType(IPV4), Ipv4, "ip_dst";
    /// TCP source port.
    TcpSrc = CLASS_BASIC 13, 16, exact, set, IpProto(6), Decimal, "tcp_src";
    /// TCP destination port.
    TcpDst = CLASS_BASIC 14, 16, exact, set, IpProto(6), Decimal, "tcp_dst";
    /// UDP source port.
    UdpSrc = CLASS_BASIC 15, 16, exact, set, IpProto(17), Decimal, "udp_src";
    /// UDP destination port.
    UdpDst = CLASS_BASIC 16, 16, exact, set, IpProto(17), Decimal, "udp_dst";
    /// SCTP source port.
    SctpSrc = CLASS_BASIC 17, 16, exact, set, IpProto(132), Decimal, "sctp_src";
    /// SCTP destination port.
    SctpDst = CLASS_BASIC 18, 16, exact, set, IpProto(132), Decimal, "sctp_dst";
    /// ICMP type.
    Icmpv4Type = CLASS_BASIC 19, 8, exact, set, Icmpv4, Decimal, "icmp_type";
    /// ICMP code.
    Icmpv4Code = CLASS_BASIC 20, 8, exact, set, Icmpv4, Decimal, "icmp_code";
    /// ARP operation.
    ArpOp = CLASS_BASIC 21, 16, exact, set, EthType(ARP), Decimal, "arp_op";
    /// ARP sender protocol address.
    ArpSpa = CLASS_BASIC 22, 32, mask, set, EthType(ARP), Ipv4, "arp_spa";
    /// ARP target protocol address.
    ArpTpa = CLASS_BASIC 23, 32, mask, set, EthType(ARP), Ipv4, "arp_tpa";
    /// ARP sender hardware address.
    ArpSha = CLASS_BASIC 24, 48, mask, set, EthType(ARP), Mac, "arp_sha";
    /// ARP target hardware address.
    ArpTha = CLASS_BASIC 25, 48, mask, set, EthType(ARP), Mac, "arp_tha";
    /// IPv6 source.
    Ipv6Src = CLASS_BASIC 26, 128, mask, set, EthType(IPV6), Ipv6, "ipv6_src";
    /// IPv6 destination.
    Ipv6Dst = CLASS_BASIC 27, 128, mask, set, EthType(IPV6), Ipv6, "ipv6_dst";
    /// IPv6 flow label.
    Ipv6Flabel = CLASS_BASIC 28, 20, mask, set, EthType(IPV6), Hex, "ipv6_label";
    /// ICMPv6 type.
    Icmpv6Type = CLASS_BASIC 29, 8, exact, set, Icmpv6, Decimal, "icmpv6_type";
    /// ICMPv6 code.
    Icmpv6Code = CLASS_BASIC 30, 8, exact, set, Icmpv6, Decimal, "icmpv6_code";
    /// Neighbour discovery target.
    Ipv6NdTarget = CLASS_BASIC 31, 128, exact, set, NeighbourDiscovery(&[135, 136]), Ipv6, "nd_target";
    /// Neighbour discovery source link-layer address.
    Ipv6NdSll = CLASS_BASIC 32, 48, exact, set, NeighbourDiscovery(&[135]), Mac, "nd_sll";
    /// Neighbour discovery target link-layer address.
    Ipv6NdTll = CLASS_BASIC 33, 48, exact, set, NeighbourDiscovery(&[136]), Mac, "nd_tll";
    /// MPLS label.
    MplsLabel = CLASS_BASIC 34, 20, exact, set, EthType(MPLS), Decimal, "mpls_label";
    /// MPLS traffic class.
    MplsTc = CLASS_BASIC 35, 3, exact, set, EthType(MPLS), Decimal, "mpls_tc";
    /// MPLS bottom of stack.
    MplsBos = CLASS_BASIC 36, 1, exact, set, EthType(MPLS), Decimal, "mpls_bos";
    /// PBB service instance id.
    PbbIsid = CLASS_BASIC 37, 24, mask, set, EthType(PBB), Hex, "pbb_isid";
    /// Tunnel id.
    TunnelId = CLASS_BASIC 38, 64, mask, set, None, Hex, "tun_id";
    /// IPv6 extension headers seen (`OFPIEH_*`).
    Ipv6Exthdr = CLASS_BASIC 39, 9, mask, fixed, EthType(IPV6), Hex, "ipv6_exthdr";
    /// TCP flags (ONF extension 109, OpenFlow 1.5).
    TcpFlags = CLASS_EXPERIMENTER 42, 12, mask, fixed, IpProto(6), TcpFlags, "tcp_flags";
}

impl OxmField {
    /// Bytes of the value on the wire. The 20-bit labels travel in four (openflow.h: `OXM_OF_MPLS_LABEL`, `OXM_OF_IPV6_FLABEL`).
    pub const fn bytes(self) -> usize {
        match self.spec().bits {
            20 => 4,
            bits => (bits as usize).div_ceil(8),
        }
    }

    /// All of the field's bits set.
    pub const fn full(self) -> u128 {
        u128::MAX >> (128 - self.spec().bits)
    }

    /// Every bit that the wire has room for.
    const fn room(self) -> u128 {
        u128::MAX >> (128 - 8 * self.bytes())
    }

    /// The field with these wire numbers; `experimenter` counts only in the experimenter class.
    pub fn from_wire(class: u16, number: u8, experimenter: u32) -> Option<Self> {
        let row = |f: &OxmField| f.spec().class == class && f.spec().number == number;
        // The basic class is numbered as the table is ordered; a flood of flow-mods asks a million times.
        if class == CLASS_BASIC {
            return Self::ALL.get(usize::from(number)).copied().filter(row);
        }
        let known = class == CLASS_EXPERIMENTER && experimenter == ONF;
        Self::ALL.iter().copied().find(|f| known && row(f))
    }

    /// Bytes of an OXM TLV's body (after its 4-byte header).
    pub(crate) const fn body_len(self, masked: bool) -> usize {
        let id = if self.spec().class == CLASS_EXPERIMENTER { 4 } else { 0 };
        id + self.bytes() * if masked { 2 } else { 1 }
    }
}

/// One match field with its value: an OXM TLV (§7.2.3.2).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Oxm {
    /// A field of the table. Value and mask are right-aligned and may use every byte that the wire has for the field:
    /// [`crate::Match::check`] judges them.
    Known {
        /// Which field.
        field: OxmField,
        /// Its value.
        value: u128,
        /// Bits that count; `None` = all.
        mask: Option<u128>,
    },
    /// A TLV of a class or field that this crate does not know, kept as it came.
    Unknown(UnknownOxm),
}

/// An OXM TLV that the table does not know.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UnknownOxm {
    /// OXM class.
    pub class: u16,
    /// Field number, 7 bits.
    pub number: u8,
    /// Whether the second half of the value is a mask.
    pub masked: bool,
    /// At most 255 bytes after the header, an experimenter id included.
    pub body: Vec<u8>,
}

impl Oxm {
    /// An exact match; bits of `value` beyond the field's bytes are dropped.
    pub fn exact(field: OxmField, value: u128) -> Self {
        Oxm::Known { field, value: value & field.room(), mask: None }
    }

    /// A masked match; a mask of all the field's bits makes it exact.
    pub fn masked(field: OxmField, value: u128, mask: u128) -> Self {
        let mask = mask & field.room();
        Oxm::Known {
            field,
            value: value & field.room(),
            mask: (mask != field.full()).then_some(mask),
        }
    }

    /// The field, if the table knows it.
    pub fn field(&self) -> Option<OxmField> {
        match self {
            Oxm::Known { field, .. } => Some(*field),
            Oxm::Unknown(_) => None,
        }
    }
}

/// The identity of a match field without a value, as table features list them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OxmId {
    /// Class, field, has-mask bit and length: the TLV's header.
    pub header: u32,
    /// Experimenter id, in the experimenter class only.
    pub experimenter: Option<u32>,
}

impl OxmId {
    /// The id of a field; `masked` = an arbitrary mask is supported.
    pub fn of(field: OxmField, masked: bool) -> Self {
        let spec = field.spec();
        let len = field.body_len(masked) as u32;
        let header = u32::from(spec.class) << 16
            | u32::from(spec.number) << 9
            | u32::from(masked) << 8
            | len;
        Self { header, experimenter: (spec.class == CLASS_EXPERIMENTER).then_some(ONF) }
    }

    /// The field, if the table knows it.
    pub fn field(self) -> Option<OxmField> {
        OxmField::from_wire(
            (self.header >> 16) as u16,
            (self.header >> 9 & 0x7f) as u8,
            self.experimenter.unwrap_or(0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_the_40_fields_of_the_specification_in_order() {
        let basic: Vec<u8> = OxmField::ALL
            .iter()
            .map(|f| f.spec())
            .filter(|s| s.class == CLASS_BASIC)
            .map(|s| s.number)
            .collect();
        assert_eq!(basic, (0..40).collect::<Vec<u8>>());
    }

    #[test]
    fn a_field_is_found_by_its_id() {
        for &field in OxmField::ALL {
            assert_eq!(OxmId::of(field, true).field(), Some(field));
            assert_eq!(OxmId::of(field, false).header & 0xff, field.body_len(false) as u32);
        }
        assert_eq!(OxmId::of(OxmField::Ipv4Src, true).header, 0x8000_1708);
        assert_eq!(OxmField::from_wire(CLASS_EXPERIMENTER, 42, 1), None);
    }

    #[test]
    fn a_full_mask_is_no_mask() {
        assert_eq!(Oxm::masked(OxmField::VlanVid, 5, 0x1fff), Oxm::exact(OxmField::VlanVid, 5));
    }
}
