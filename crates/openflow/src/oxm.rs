//! Match fields: the 40 of OpenFlow 1.3.5 (§7.2.3.7, table 12), the TCP flags of the ONF extension, the addresses of tunnels as Nicira
//! numbered them, and those of steering (`docs/reference/openflow-extension.md`): suiro's own two, and one of Nicira's.
//!
//! One table row per field says all there is to know: wire numbers, width, whether a mask is allowed, what else must be
//! matched first, whether set-field may name it, and its name in the ovs-ofctl syntax.

/// `OFPXMC_OPENFLOW_BASIC`.
pub const CLASS_BASIC: u16 = 0x8000;
/// `OFPXMC_EXPERIMENTER`: four bytes of experimenter id precede the value.
pub const CLASS_EXPERIMENTER: u16 = 0xffff;
/// `NXM_NX_*`: Nicira's extended fields, which have a class and no experimenter id.
pub const CLASS_NXM_1: u16 = 0x0001;
/// Experimenter id of the Open Networking Foundation's extensions.
pub const ONF: u32 = 0x4f4e_4600;
/// suiro's experimenter id: an OUI out of the part of the number space that IEEE 802c leaves to whoever runs a network
/// (`02`), then "SU". `docs/reference/openflow-extension.md` says why.
pub const SUIRO: u32 = 0x0002_5355;

/// The classes of the table below: OXM class, and experimenter id in the experimenter class.
const BASIC: (u16, Option<u32>) = (CLASS_BASIC, None);
const OF_ONF: (u16, Option<u32>) = (CLASS_EXPERIMENTER, Some(ONF));
const OF_SUIRO: (u16, Option<u32>) = (CLASS_EXPERIMENTER, Some(SUIRO));
const NXM_1: (u16, Option<u32>) = (CLASS_NXM_1, None);

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
    /// Which fragments: `no`, `yes`, `first`, `later`, `not_later`.
    Fragment,
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
    /// Experimenter id, in the experimenter class only.
    pub experimenter: Option<u32>,
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
    ($($(#[$list_doc:meta])* $list:ident: [
        $($(#[$doc:meta])* $variant:ident = $class:ident $number:literal, $bits:literal, $mask:ident, $set:ident, $pre:expr, $format:ident, $name:literal;)*
    ])*) => {
        /// A match field.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum OxmField { $($($(#[$doc])* $variant,)*)* }

        impl OxmField {
            $($(#[$list_doc])* pub const $list: &'static [OxmField] = &[$(OxmField::$variant,)*];)*

            /// The field's row of the table.
            pub const fn spec(self) -> &'static FieldSpec {
                use Prerequisite::{EthType, Icmpv4, Icmpv6, InPort, IpProto, NeighbourDiscovery, None, Vlan};
                match self { $($(OxmField::$variant => const { &FieldSpec {
                    class: $class.0, experimenter: $class.1, number: $number, bits: $bits, maskable: fields!(@ $mask),
                    prerequisite: $pre, settable: fields!(@ $set), format: Format::$format, name: $name,
                } },)*)* }
            }
        }
    };
    (@ mask) => { true }; (@ exact) => { false };
    (@ set) => { true }; (@ fixed) => { false };
}

fields! {
    /// Every field of OpenFlow that a switch's tables know, in order of wire number.
    ALL: [
        /// Ingress port.
        InPort = BASIC 0, 32, exact, fixed, None, Port, "in_port";
        /// Physical port under the ingress port.
        InPhyPort = BASIC 1, 32, exact, fixed, InPort, Port, "in_phy_port";
        /// Metadata passed between tables.
        Metadata = BASIC 2, 64, mask, fixed, None, Hex, "metadata";
        /// Ethernet destination.
        EthDst = BASIC 3, 48, mask, set, None, Mac, "eth_dst";
        /// Ethernet source.
        EthSrc = BASIC 4, 48, mask, set, None, Mac, "eth_src";
        /// Ethernet type after VLAN tags.
        EthType = BASIC 5, 16, exact, set, None, Hex, "eth_type";
        /// VLAN id with [`VLAN_PRESENT`]; 0 = untagged.
        VlanVid = BASIC 6, 13, mask, set, None, Decimal, "vlan_vid";
        /// VLAN priority.
        VlanPcp = BASIC 7, 3, exact, set, Vlan, Decimal, "vlan_pcp";
        /// IP DSCP.
        IpDscp = BASIC 8, 6, exact, set, EthType(IP), Decimal, "ip_dscp";
        /// IP ECN.
        IpEcn = BASIC 9, 2, exact, set, EthType(IP), Decimal, "nw_ecn";
        /// IP protocol.
        IpProto = BASIC 10, 8, exact, set, EthType(IP), Decimal, "nw_proto";
        /// IPv4 source.
        Ipv4Src = BASIC 11, 32, mask, set, EthType(IPV4), Ipv4, "ip_src";
        /// IPv4 destination.
        Ipv4Dst = BASIC 12, 32, mask, set, EthType(IPV4), Ipv4, "ip_dst";
        /// TCP source port.
        TcpSrc = BASIC 13, 16, exact, set, IpProto(6), Decimal, "tcp_src";
        /// TCP destination port.
        TcpDst = BASIC 14, 16, exact, set, IpProto(6), Decimal, "tcp_dst";
        /// UDP source port.
        UdpSrc = BASIC 15, 16, exact, set, IpProto(17), Decimal, "udp_src";
        /// UDP destination port.
        UdpDst = BASIC 16, 16, exact, set, IpProto(17), Decimal, "udp_dst";
        /// SCTP source port.
        SctpSrc = BASIC 17, 16, exact, set, IpProto(132), Decimal, "sctp_src";
        /// SCTP destination port.
        SctpDst = BASIC 18, 16, exact, set, IpProto(132), Decimal, "sctp_dst";
        /// ICMP type.
        Icmpv4Type = BASIC 19, 8, exact, set, Icmpv4, Decimal, "icmp_type";
        /// ICMP code.
        Icmpv4Code = BASIC 20, 8, exact, set, Icmpv4, Decimal, "icmp_code";
        /// ARP operation.
        ArpOp = BASIC 21, 16, exact, set, EthType(ARP), Decimal, "arp_op";
        /// ARP sender protocol address.
        ArpSpa = BASIC 22, 32, mask, set, EthType(ARP), Ipv4, "arp_spa";
        /// ARP target protocol address.
        ArpTpa = BASIC 23, 32, mask, set, EthType(ARP), Ipv4, "arp_tpa";
        /// ARP sender hardware address.
        ArpSha = BASIC 24, 48, mask, set, EthType(ARP), Mac, "arp_sha";
        /// ARP target hardware address.
        ArpTha = BASIC 25, 48, mask, set, EthType(ARP), Mac, "arp_tha";
        /// IPv6 source.
        Ipv6Src = BASIC 26, 128, mask, set, EthType(IPV6), Ipv6, "ipv6_src";
        /// IPv6 destination.
        Ipv6Dst = BASIC 27, 128, mask, set, EthType(IPV6), Ipv6, "ipv6_dst";
        /// IPv6 flow label.
        Ipv6Flabel = BASIC 28, 20, mask, set, EthType(IPV6), Hex, "ipv6_label";
        /// ICMPv6 type.
        Icmpv6Type = BASIC 29, 8, exact, set, Icmpv6, Decimal, "icmpv6_type";
        /// ICMPv6 code.
        Icmpv6Code = BASIC 30, 8, exact, set, Icmpv6, Decimal, "icmpv6_code";
        /// Neighbour discovery target.
        Ipv6NdTarget = BASIC 31, 128, exact, set, NeighbourDiscovery(&[135, 136]), Ipv6, "nd_target";
        /// Neighbour discovery source link-layer address.
        Ipv6NdSll = BASIC 32, 48, exact, set, NeighbourDiscovery(&[135]), Mac, "nd_sll";
        /// Neighbour discovery target link-layer address.
        Ipv6NdTll = BASIC 33, 48, exact, set, NeighbourDiscovery(&[136]), Mac, "nd_tll";
        /// MPLS label.
        MplsLabel = BASIC 34, 20, exact, set, EthType(MPLS), Decimal, "mpls_label";
        /// MPLS traffic class.
        MplsTc = BASIC 35, 3, exact, set, EthType(MPLS), Decimal, "mpls_tc";
        /// MPLS bottom of stack.
        MplsBos = BASIC 36, 1, exact, set, EthType(MPLS), Decimal, "mpls_bos";
        /// PBB service instance id.
        PbbIsid = BASIC 37, 24, mask, set, EthType(PBB), Hex, "pbb_isid";
        /// Tunnel id.
        TunnelId = BASIC 38, 64, mask, set, None, Hex, "tun_id";
        /// IPv6 extension headers seen (`OFPIEH_*`).
        Ipv6Exthdr = BASIC 39, 9, mask, fixed, EthType(IPV6), Hex, "ipv6_exthdr";
        /// TCP flags (ONF extension 109, OpenFlow 1.5).
        TcpFlags = OF_ONF 42, 12, mask, fixed, IpProto(6), TcpFlags, "tcp_flags";
    ]
    /// The addresses of tunnels, which Nicira numbered. The tables of a switch match them whole ([`crate::Match::check`]), and let a
    /// set-field name where a frame shall go; steering matches them under any mask.
    ENDS: [
        /// IPv4 address that the tunnel's packet came from.
        TunIpv4Src = NXM_1 31, 32, mask, fixed, None, Ipv4, "tun_src";
        /// IPv4 address that it goes to.
        TunIpv4Dst = NXM_1 32, 32, mask, set, None, Ipv4, "tun_dst";
        /// IPv6 address that it came from.
        TunIpv6Src = NXM_1 109, 128, mask, fixed, None, Ipv6, "tun_ipv6_src";
        /// IPv6 address that it goes to.
        TunIpv6Dst = NXM_1 110, 128, mask, set, None, Ipv6, "tun_ipv6_dst";
    ]
    /// The other fields of steering. Of these a switch's tables know [`OxmField::Fcf`] alone, as the
    /// two fields that it consists of ([`Oxm::parts`]).
    STEERING: [
        /// Flow control field: the whole ToS byte of the outermost IP header, read as VM id (7 bits) and priority (the lowest bit).
        Fcf = OF_SUIRO 0, 8, mask, set, EthType(IP), Hex, "fcf";
        /// For which virtual machine, by whatever tells on this host. Not 0.
        VmId = OF_SUIRO 1, 16, exact, fixed, None, Decimal, "vm_id";
        /// Which fragments: bit 0 is set in every fragment, bit 1 in all but the first.
        IpFrag = NXM_1 26, 8, mask, fixed, None, Fragment, "ip_frag";
    ]
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

    /// Every field, those of steering last.
    pub fn every() -> impl Iterator<Item = OxmField> {
        Self::ALL.iter().chain(Self::ENDS).chain(Self::STEERING).copied()
    }

    /// Every field that a switch's tables can tell apart, and whether they take a mask of it.
    pub fn of_tables() -> impl Iterator<Item = (OxmField, bool)> {
        let all = Self::ALL.iter().map(|field| (*field, field.spec().maskable));
        all.chain(Self::ENDS.iter().map(|end| (*end, false)))
    }

    /// Whether it is the address of a tunnel's end.
    pub const fn is_end(self) -> bool {
        use OxmField::{TunIpv4Dst, TunIpv4Src, TunIpv6Dst, TunIpv6Src};
        matches!(self, TunIpv4Src | TunIpv4Dst | TunIpv6Src | TunIpv6Dst)
    }

    /// The field with these wire numbers; `experimenter` counts only in the experimenter class.
    pub fn from_wire(class: u16, number: u8, experimenter: u32) -> Option<Self> {
        // The basic class is numbered as the table is ordered; a flood of flow-mods asks a million times.
        if class == CLASS_BASIC {
            let row = |f: &OxmField| f.spec().class == class;
            return Self::ALL.get(usize::from(number)).copied().filter(row);
        }
        Self::every().find(|field| {
            let spec = field.spec();
            (spec.class, spec.number) == (class, number)
                && spec.experimenter.is_none_or(|id| id == experimenter)
        })
    }

    /// Bytes of an OXM TLV's body (after its 4-byte header).
    pub(crate) const fn body_len(self, masked: bool) -> usize {
        let id = if self.spec().experimenter.is_some() { 4 } else { 0 };
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

    /// The fields that a switch's tables have for this one: the flow control field is DSCP and ECN, any other is itself. A part
    /// of which no bit counts is left out.
    pub fn parts(&self) -> impl Iterator<Item = Oxm> + use<> {
        let [first, second] = match *self {
            Oxm::Known { field: OxmField::Fcf, value, mask } => {
                let mask = mask.unwrap_or(OxmField::Fcf.full());
                let part = |field, shift: u32, bits: u128| {
                    let counts = mask >> shift & bits;
                    (counts != 0).then(|| Oxm::masked(field, value >> shift & counts, counts))
                };
                [part(OxmField::IpDscp, ECN_BITS, 0x3f), part(OxmField::IpEcn, 0, 3)]
            }
            ref other => [Some(other.clone()), None],
        };
        first.into_iter().chain(second)
    }

    /// The flow control field of which these are DSCP and ECN, as (value, mask) pairs: the way back of [`Oxm::parts`].
    pub fn fcf(dscp: (u128, u128), ecn: (u128, u128)) -> Self {
        let whole = |dscp: u128, ecn: u128| dscp << ECN_BITS | ecn;
        Self::masked(OxmField::Fcf, whole(dscp.0, ecn.0), whole(dscp.1, ecn.1))
    }
}

/// Bits of the ToS byte below the DSCP.
const ECN_BITS: u32 = 2;

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
        Self { header, experimenter: spec.experimenter }
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
        for field in OxmField::every() {
            assert_eq!(OxmId::of(field, true).field(), Some(field));
            assert_eq!(OxmId::of(field, false).header & 0xff, field.body_len(false) as u32);
        }
        assert_eq!(OxmId::of(OxmField::Ipv4Src, true).header, 0x8000_1708);
        assert_eq!(OxmField::from_wire(CLASS_EXPERIMENTER, 42, 1), None);
        assert_eq!(OxmField::from_wire(CLASS_EXPERIMENTER, 42, SUIRO), None);
        // As Open vSwitch has them (nicira-ext.h: NXM_NX_IP_FRAG, NXM_NX_TUN_IPV4_SRC and the three after it).
        assert_eq!(OxmId::of(OxmField::IpFrag, false).header, 0x0001_3401);
        let ends = [0x0001_3e04, 0x0001_4004, 0x0001_da10, 0x0001_dc10];
        let headers = OxmField::ENDS.iter().map(|end| OxmId::of(*end, false).header);
        assert_eq!(headers.collect::<Vec<_>>(), ends);
    }

    #[test]
    fn the_flow_control_field_is_dscp_and_ecn() {
        let parts = |oxm: Oxm| oxm.parts().collect::<Vec<_>>();
        let (dscp, ecn) = (OxmField::IpDscp, OxmField::IpEcn);
        let whole = Oxm::exact(OxmField::Fcf, 0xb7);
        assert_eq!(parts(whole.clone()), [Oxm::exact(dscp, 0x2d), Oxm::exact(ecn, 3)]);
        let priority = Oxm::masked(OxmField::Fcf, 1, 1);
        assert_eq!(parts(priority.clone()), [Oxm::masked(ecn, 1, 1)]);
        assert_eq!(parts(Oxm::exact(ecn, 1)), [Oxm::exact(ecn, 1)]);
        assert_eq!(Oxm::fcf((0x2d, 0x3f), (3, 3)), whole);
        assert_eq!(Oxm::fcf((0, 0), (1, 1)), priority);
    }

    #[test]
    fn a_full_mask_is_no_mask() {
        assert_eq!(Oxm::masked(OxmField::VlanVid, 5, 0x1fff), Oxm::exact(OxmField::VlanVid, 5));
    }
}
