//! `ofp_match` (1.0.0 §5.2.3): twelve fields and a word of wildcards ↔ a list of OXM fields.
//!
//! Fields have the meaning that table 3 of §3.3 gives them for the packet's type: `nw_proto` is ARP's opcode in ARP, `tp_src` and
//! `tp_dst` are ICMP's type and code in ICMP. In IPv6, of which the table says nothing, `nw_tos`, `nw_proto` and the ports are what they are
//! in IPv4, as in Open vSwitch. A field whose protocol is not matched means nothing and is ignored, as 1.0.1 says.
//!
//! No packet has an ICMP type or code above 255. A match that wants one matches nothing: it also wants a metadata that no packet
//! has in table 0, [`NO_ICMP`], which keeps the upper bytes.
//!
//! Towards 1.0, what has no word there is left out: other fields; masks of Ethernet addresses; masks of IPv4 addresses beyond
//! their leading ones; "any VLAN tag" unless a priority says it.

use super::Wire;
use super::port::{from_wire, to_wire};
use crate::bytes::{Reader, Writer};
use crate::error::Fault;
use crate::ids::PortNo;
use crate::matching::Match;
use crate::oxm::{OxmField, SUIRO, VLAN_PRESENT};
use crate::wording::Wording;

// `OFPFW_*`: a bit says that its field does not matter.
const IN_PORT: u32 = 1;
const DL_VLAN: u32 = 1 << 1;
const DL_SRC: u32 = 1 << 2;
const DL_DST: u32 = 1 << 3;
const DL_TYPE: u32 = 1 << 4;
const NW_PROTO: u32 = 1 << 5;
const TP_SRC: u32 = 1 << 6;
const TP_DST: u32 = 1 << 7;
const DL_VLAN_PCP: u32 = 1 << 20;
const NW_TOS: u32 = 1 << 21;
/// Six bits each: how many low bits of the address do not matter; 32 and more: none does.
const NW_SRC_SHIFT: u32 = 8;
const NW_DST_SHIFT: u32 = 14;
/// All of them, with 32 for each address.
const ALL: u32 = 0xff | DL_VLAN_PCP | NW_TOS | 32 << NW_SRC_SHIFT | 32 << NW_DST_SHIFT;
/// `OFPFW_ALL`: every bit that is defined.
pub(super) const EVERY_BIT: u32 = (1 << 22) - 1;

/// `OFP_VLAN_NONE`: the packet has no tag.
const VLAN_NONE: u16 = 0xffff;
const PRESENT: u128 = VLAN_PRESENT as u128;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;

/// The upper half of the metadata that goes with an impossible ICMP type or code; the lowest bytes are those that they have too many.
/// Entries of 1.0 are in table 0, where a packet's metadata is 0.
const NO_ICMP: u128 = (SUIRO as u128) << 32;

/// The fields of `ofp_match` as they lie on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Twelve {
    wildcards: u32,
    in_port: u16,
    dl_src: [u8; 6],
    dl_dst: [u8; 6],
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: u32,
    nw_dst: u32,
    tp_src: u16,
    tp_dst: u16,
}

/// Nothing matters.
const ANYTHING: Twelve = Twelve {
    wildcards: ALL,
    in_port: 0,
    dl_src: [0; 6],
    dl_dst: [0; 6],
    dl_vlan: 0,
    dl_vlan_pcp: 0,
    dl_type: 0,
    nw_tos: 0,
    nw_proto: 0,
    nw_src: 0,
    nw_dst: 0,
    tp_src: 0,
    tp_dst: 0,
};

impl Twelve {
    fn put(&self, out: &mut Writer) {
        out.u32(self.wildcards);
        out.u16(self.in_port);
        out.bytes(&self.dl_src);
        out.bytes(&self.dl_dst);
        out.u16(self.dl_vlan);
        out.u8(self.dl_vlan_pcp);
        out.zeros(1);
        out.u16(self.dl_type);
        out.u8(self.nw_tos);
        out.u8(self.nw_proto);
        out.zeros(2);
        out.u32(self.nw_src);
        out.u32(self.nw_dst);
        out.u16(self.tp_src);
        out.u16(self.tp_dst);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (wildcards, in_port) = (input.u32()?, input.u16()?);
        let (dl_src, dl_dst) = (input.array()?, input.array()?);
        let (dl_vlan, dl_vlan_pcp) = (input.u16()?, input.u8()?);
        input.skip(1)?;
        let (dl_type, nw_tos, nw_proto) = (input.u16()?, input.u8()?, input.u8()?);
        input.skip(2)?;
        Ok(Self {
            wildcards,
            in_port,
            dl_src,
            dl_dst,
            dl_vlan,
            dl_vlan_pcp,
            dl_type,
            nw_tos,
            nw_proto,
            nw_src: input.u32()?,
            nw_dst: input.u32()?,
            tp_src: input.u16()?,
            tp_dst: input.u16()?,
        })
    }

    fn matters(&self, wildcard: u32) -> bool {
        self.wildcards & wildcard == 0
    }

    /// The mask of an address whose six wildcard bits begin at `shift`.
    fn prefix(&self, shift: u32) -> u32 {
        let ignored = self.wildcards >> shift & 0x3f;
        u32::MAX.checked_shl(ignored).unwrap_or(0)
    }

    fn fields(&self) -> Match {
        let mut fields = Match::default();
        if self.matters(IN_PORT) {
            fields = fields.with(OxmField::InPort, from_wire(self.in_port).0.into());
        }
        if self.matters(DL_DST) {
            fields = fields.with(OxmField::EthDst, mac(self.dl_dst));
        }
        if self.matters(DL_SRC) {
            fields = fields.with(OxmField::EthSrc, mac(self.dl_src));
        }
        if self.matters(DL_TYPE) {
            fields = fields.with(OxmField::EthType, self.dl_type.into());
        }
        let fields = self.network(self.vlan(fields));
        self.transport(fields)
    }

    /// No tag has no priority, and a priority without an id means any tag.
    fn vlan(&self, fields: Match) -> Match {
        let fields = match (self.matters(DL_VLAN), self.dl_vlan, self.matters(DL_VLAN_PCP)) {
            (true, VLAN_NONE, _) => return fields.with(OxmField::VlanVid, 0),
            (true, id, _) => fields.with(OxmField::VlanVid, PRESENT | u128::from(id & 0xfff)),
            (false, _, true) => fields.with_masked(OxmField::VlanVid, PRESENT, PRESENT),
            (false, _, false) => return fields,
        };
        match self.matters(DL_VLAN_PCP) {
            true => fields.with(OxmField::VlanPcp, (self.dl_vlan_pcp & 7).into()),
            false => fields,
        }
    }

    /// The Ethernet type, if it is matched and of a network layer that the other fields are about.
    fn network_type(&self) -> Option<u16> {
        let found = self.matters(DL_TYPE).then_some(self.dl_type);
        found.filter(|ether| [IPV4, ARP, IPV6].contains(ether))
    }

    fn network(&self, mut fields: Match) -> Match {
        let Some(ether) = self.network_type() else { return fields };
        if ether != ARP && self.matters(NW_TOS) {
            fields = fields.with(OxmField::IpDscp, (self.nw_tos >> 2).into());
        }
        if self.matters(NW_PROTO) {
            fields = fields.with(protocol(ether), self.nw_proto.into());
        }
        let Some((src, dst)) = addresses(ether) else { return fields };
        let addresses = [
            (src, self.nw_src, self.prefix(NW_SRC_SHIFT)),
            (dst, self.nw_dst, self.prefix(NW_DST_SHIFT)),
        ];
        for (field, value, mask) in addresses.into_iter().filter(|(_, _, mask)| *mask != 0) {
            fields = fields.with_masked(field, (value & mask).into(), mask.into());
        }
        fields
    }

    /// What `tp_src` and `tp_dst` are here.
    fn transport_fields(&self) -> Option<(OxmField, OxmField)> {
        let ether = self.network_type().filter(|_| self.matters(NW_PROTO))?;
        ports(ether, self.nw_proto)
    }

    fn transport(&self, mut fields: Match) -> Match {
        let Some((src, dst)) = self.transport_fields() else { return fields };
        let mut beyond = 0;
        for (field, value, wildcard) in [(src, self.tp_src, TP_SRC), (dst, self.tp_dst, TP_DST)] {
            beyond <<= 8;
            if self.matters(wildcard) {
                let value = u128::from(value);
                fields = fields.with(field, value & field.full());
                beyond |= value & !field.full();
            }
        }
        // Of a port nothing is beyond; of a type or code it is the upper byte.
        if beyond == 0 { fields } else { fields.with(OxmField::Metadata, NO_ICMP | beyond) }
    }

    /// What is said of the match that changes no packet.
    fn wording(&self) -> Wording {
        let ignored = |shift| self.wildcards >> shift & 0x3f;
        let wording = Wording::default().with_ignored(ignored(NW_SRC_SHIFT), ignored(NW_DST_SHIFT));
        match self.is_untagged() && self.matters(DL_VLAN_PCP) {
            true => wording.with_untagged_pcp(self.dl_vlan_pcp),
            false => wording,
        }
    }

    /// Says it again.
    fn say(&mut self, wording: Wording) {
        if self.is_untagged() {
            let pcp = wording.untagged_pcp();
            self.set(pcp, DL_VLAN_PCP, |twelve| &mut twelve.dl_vlan_pcp);
        }
        let (src, dst) = wording.ignored_beyond();
        for (beyond, shift) in [(src, NW_SRC_SHIFT), (dst, NW_DST_SHIFT)] {
            if self.prefix(shift) == 0 {
                self.wildcards |= beyond << shift;
            }
        }
    }

    fn is_untagged(&self) -> bool {
        self.matters(DL_VLAN) && self.dl_vlan == VLAN_NONE
    }

    fn of(fields: &Match) -> Self {
        let mut twelve = ANYTHING;
        twelve.set_link(fields);
        twelve.set_vlan(fields);
        twelve.set_network(fields);
        twelve.set_transport(fields);
        twelve
    }

    fn set_link(&mut self, fields: &Match) {
        let port = fields.exact(OxmField::InPort).and_then(|port| to_wire(PortNo(port as u32)));
        self.set(port, IN_PORT, |twelve| &mut twelve.in_port);
        self.set(fields.exact(OxmField::EthSrc).map(bytes), DL_SRC, |twelve| &mut twelve.dl_src);
        self.set(fields.exact(OxmField::EthDst).map(bytes), DL_DST, |twelve| &mut twelve.dl_dst);
        self.set_u16(fields, OxmField::EthType, DL_TYPE, |twelve| &mut twelve.dl_type);
    }

    fn set_vlan(&mut self, fields: &Match) {
        let id = match fields.exact(OxmField::VlanVid) {
            Some(0) => Some(VLAN_NONE),
            Some(id) if id & PRESENT != 0 => Some((id & 0xfff) as u16),
            _ => None,
        };
        self.set(id, DL_VLAN, |twelve| &mut twelve.dl_vlan);
        self.set_u8(fields, OxmField::VlanPcp, DL_VLAN_PCP, |twelve| &mut twelve.dl_vlan_pcp);
    }

    fn set_network(&mut self, fields: &Match) {
        let Some(ether) = self.network_type() else { return };
        let proto = protocol(ether);
        let tos = fields.exact(OxmField::IpDscp).map(|dscp| (dscp << 2) as u8);
        self.set(tos, NW_TOS, |twelve| &mut twelve.nw_tos);
        let fits = fields.exact(proto).is_some_and(|value| value <= 0xff);
        if fits {
            self.set_u8(fields, proto, NW_PROTO, |twelve| &mut twelve.nw_proto);
        }
        if let Some((src, dst)) = addresses(ether) {
            self.nw_src = self.set_address(fields, src, NW_SRC_SHIFT);
            self.nw_dst = self.set_address(fields, dst, NW_DST_SHIFT);
        }
    }

    /// The address, and in the wildcards how many of its low bits do not matter: all after the mask's leading ones.
    fn set_address(&mut self, fields: &Match, field: OxmField, shift: u32) -> u32 {
        let (value, mask) = fields.get(field).unwrap_or((0, 0));
        let ignored = 32 - (mask as u32).leading_ones();
        self.wildcards = self.wildcards & !(0x3f << shift) | ignored << shift;
        value as u32 & self.prefix(shift)
    }

    fn set_transport(&mut self, fields: &Match) {
        let Some((src, dst)) = self.transport_fields() else { return };
        self.set_u16(fields, src, TP_SRC, |twelve| &mut twelve.tp_src);
        self.set_u16(fields, dst, TP_DST, |twelve| &mut twelve.tp_dst);
        let marked = fields.exact(OxmField::Metadata).filter(|data| data >> 32 == NO_ICMP >> 32);
        if let Some(beyond) = marked {
            self.tp_src |= (beyond >> 8) as u16 & 0xff00;
            self.tp_dst |= beyond as u16 & 0xff00;
        }
    }

    fn set_u16(
        &mut self,
        fields: &Match,
        field: OxmField,
        wildcard: u32,
        place: impl FnOnce(&mut Self) -> &mut u16,
    ) {
        self.set(fields.exact(field).map(|value| value as u16), wildcard, place);
    }

    fn set_u8(
        &mut self,
        fields: &Match,
        field: OxmField,
        wildcard: u32,
        place: impl FnOnce(&mut Self) -> &mut u8,
    ) {
        self.set(fields.exact(field).map(|value| value as u8), wildcard, place);
    }

    /// Sets a field and clears its wildcard, if there is a value.
    fn set<T>(&mut self, value: Option<T>, wildcard: u32, place: impl FnOnce(&mut Self) -> &mut T) {
        if let Some(value) = value {
            *place(self) = value;
            self.wildcards &= !wildcard;
        }
    }
}

/// What `nw_proto` is under an Ethernet type.
fn protocol(ether: u16) -> OxmField {
    if ether == ARP { OxmField::ArpOp } else { OxmField::IpProto }
}

/// What `nw_src` and `nw_dst` are under an Ethernet type: they have no room for IPv6's.
fn addresses(ether: u16) -> Option<(OxmField, OxmField)> {
    match ether {
        IPV4 => Some((OxmField::Ipv4Src, OxmField::Ipv4Dst)),
        ARP => Some((OxmField::ArpSpa, OxmField::ArpTpa)),
        _ => None,
    }
}

/// What `tp_src` and `tp_dst` are in an IP protocol. 1.0 names TCP, UDP and ICMP; SCTP has ports at the same place.
fn ports(ether: u16, proto: u8) -> Option<(OxmField, OxmField)> {
    match (ether, proto) {
        (IPV4, 1) => Some((OxmField::Icmpv4Type, OxmField::Icmpv4Code)),
        (IPV6, 58) => Some((OxmField::Icmpv6Type, OxmField::Icmpv6Code)),
        (IPV4 | IPV6, 6) => Some((OxmField::TcpSrc, OxmField::TcpDst)),
        (IPV4 | IPV6, 17) => Some((OxmField::UdpSrc, OxmField::UdpDst)),
        (IPV4 | IPV6, 132) => Some((OxmField::SctpSrc, OxmField::SctpDst)),
        _ => None,
    }
}

fn mac(bytes: [u8; 6]) -> u128 {
    bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

fn bytes(mac: u128) -> [u8; 6] {
    let [.., a, b, c, d, e, f] = mac.to_be_bytes();
    [a, b, c, d, e, f]
}

impl Wire for Match {
    fn put(&self, out: &mut Writer) {
        Twelve::of(self).put(out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Twelve::take(input)?.fields())
    }
}

/// Writes a match in these words.
pub(super) fn put_match(fields: &Match, wording: Wording, out: &mut Writer) {
    let mut twelve = Twelve::of(fields);
    twelve.say(wording);
    twelve.put(out);
}

/// Reads a match and its wording.
pub(super) fn take_match(input: &mut Reader<'_>) -> Result<(Match, Wording), Fault> {
    let twelve = Twelve::take(input)?;
    Ok((twelve.fields(), twelve.wording()))
}

/// Whether the match ahead has no wildcard at all: such an entry is above all others (§3.4).
pub(super) fn is_exact(input: &Reader<'_>) -> Result<bool, Fault> {
    Ok(input.clone().u32()? & EVERY_BIT == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(fields: &Match) -> Vec<u8> {
        let mut out = Writer::default();
        fields.put(&mut out);
        out.0
    }

    fn take(bytes: &[u8]) -> Match {
        Match::take(&mut Reader::new(bytes, crate::ErrorCode::BadRequestBadLen)).unwrap()
    }

    proptest! {
        #[test]
        fn every_match_comes_back_as_the_value_it_was(
            mut bytes in proptest::collection::vec(any::<u8>(), 40),
            ether in proptest::sample::select(vec![0x0800u16, 0x0806, 0x86dd, 5]),
            proto in proptest::sample::select(vec![1u8, 2, 6, 17, 132]),
        ) {
            bytes[22..24].copy_from_slice(&ether.to_be_bytes());
            bytes[25] = proto;
            let fields = take(&bytes);
            prop_assert_eq!(take(&put(&fields)), fields);
        }
    }

    #[test]
    fn what_1_0_has_no_word_for_is_left_out() {
        let anything = put(&Match::default());
        assert_eq!(anything[..4], [0, 0x38, 0x20, 0xff], "32 ignored bits for each address");
        for fields in [
            Match::default().with(OxmField::Metadata, 7),
            Match::default().with(OxmField::InPort, 70_000),
            Match::default().with_masked(OxmField::EthDst, 1 << 40, 1 << 40),
            Match::default().with_masked(OxmField::VlanVid, PRESENT, PRESENT),
        ] {
            assert_eq!(put(&fields), anything, "{fields:?}");
        }
        let ipv6 = Match::default().with(OxmField::EthType, 0x86dd);
        assert_eq!(put(&ipv6.clone().with(OxmField::Ipv6Src, 1)), put(&ipv6));
    }

    #[test]
    fn protocol_and_ports_of_ipv6_are_what_they_are_in_ipv4() {
        for (proto, ports) in [
            (6, [OxmField::TcpSrc, OxmField::TcpDst]),
            (17, [OxmField::UdpSrc, OxmField::UdpDst]),
            (132, [OxmField::SctpSrc, OxmField::SctpDst]),
            (58, [OxmField::Icmpv6Type, OxmField::Icmpv6Code]),
        ] {
            let ip = |ether| {
                let tos = Match::default().with(OxmField::EthType, ether).with(OxmField::IpDscp, 8);
                tos.with(OxmField::IpProto, proto).with(ports[0], 5).with(ports[1], 80)
            };
            assert_eq!(take(&put(&ip(0x86dd))), ip(0x86dd), "protocol {proto}");
        }
    }

    #[test]
    fn an_icmp_type_that_no_packet_has_is_told_again_and_matches_nothing() {
        for (proto, ether) in [(1u8, 0x0800u16), (58, 0x86dd)] {
            for (src, dst) in [(256u16, 0u16), (8, 511), (0xffff, 0xff00)] {
                let mut bytes = put(&Match::default());
                bytes[..4].copy_from_slice(
                    &(ALL & !(DL_TYPE | NW_PROTO | TP_SRC | TP_DST)).to_be_bytes(),
                );
                bytes[22..24].copy_from_slice(&ether.to_be_bytes());
                bytes[25] = proto;
                bytes[36..38].copy_from_slice(&src.to_be_bytes());
                bytes[38..40].copy_from_slice(&dst.to_be_bytes());
                let fields = take(&bytes);
                assert_ne!(fields.exact(OxmField::Metadata).unwrap_or(0), 0, "as in no packet");
                assert_eq!(fields.check(), Ok(()));
                assert_eq!(put(&fields), bytes);
            }
        }
    }

    proptest! {
        #[test]
        fn what_matters_of_a_match_is_told_again_bit_for_bit(
            mut bytes in proptest::collection::vec(any::<u8>(), 40),
            ether in proptest::sample::select(vec![IPV4, ARP, IPV6, 5]),
            proto in proptest::sample::select(vec![1u8, 2, 6, 17, 58, 132]),
            vlan in proptest::sample::select(vec![VLAN_NONE, 5]),
        ) {
            bytes[18..20].copy_from_slice(&vlan.to_be_bytes());
            bytes[22..24].copy_from_slice(&ether.to_be_bytes());
            bytes[25] = proto;
            let sent = Twelve::take(&mut Reader::new(&bytes, crate::ErrorCode::BadRequestBadLen)).unwrap();
            let mut told = Twelve::of(&sent.fields());
            told.say(sent.wording());
            prop_assert_eq!(told, in_force(sent));
        }
    }

    /// The match with zeros wherever nothing matters, and wildcards where a field means nothing.
    fn in_force(sent: Twelve) -> Twelve {
        let network = sent.network_type();
        let mut wildcards = sent.wildcards & EVERY_BIT;
        let mut ignore = |bits: u32, ignored: bool| wildcards |= if ignored { bits } else { 0 };
        ignore(NW_TOS, network.is_none_or(|ether| ether == ARP));
        ignore(NW_PROTO, network.is_none());
        ignore(TP_SRC | TP_DST, sent.transport_fields().is_none());
        let has_addresses = network.and_then(addresses).is_some();
        let six = |shift: u32| wildcards >> shift & 0x3f;
        let (src, dst) = (six(NW_SRC_SHIFT), six(NW_DST_SHIFT));
        let six = |ignored: u32| if has_addresses || ignored >= 32 { ignored } else { 32 };
        wildcards = wildcards & !(0x3f << NW_SRC_SHIFT | 0x3f << NW_DST_SHIFT)
            | six(src) << NW_SRC_SHIFT
            | six(dst) << NW_DST_SHIFT;
        let told = Twelve { wildcards, ..sent };
        let or_0 = |wildcard, value: u16| if told.matters(wildcard) { value } else { 0 };
        let byte = |wildcard, value: u8| or_0(wildcard, value.into()) as u8;
        let mac = |wildcard, mac: [u8; 6]| if told.matters(wildcard) { mac } else { [0; 6] };
        Twelve {
            wildcards,
            in_port: or_0(IN_PORT, told.in_port),
            dl_src: mac(DL_SRC, told.dl_src),
            dl_dst: mac(DL_DST, told.dl_dst),
            dl_vlan: or_0(DL_VLAN, told.dl_vlan),
            dl_vlan_pcp: byte(DL_VLAN_PCP, told.dl_vlan_pcp & 7),
            dl_type: or_0(DL_TYPE, told.dl_type),
            nw_tos: byte(NW_TOS, told.nw_tos & 0xfc),
            nw_proto: byte(NW_PROTO, told.nw_proto),
            nw_src: told.nw_src & told.prefix(NW_SRC_SHIFT),
            nw_dst: told.nw_dst & told.prefix(NW_DST_SHIFT),
            tp_src: or_0(TP_SRC, told.tp_src),
            tp_dst: or_0(TP_DST, told.tp_dst),
        }
    }

    #[test]
    fn an_address_keeps_the_leading_ones_of_its_mask() {
        let ip = Match::default().with(OxmField::EthType, 0x0800);
        let odd = ip.clone().with_masked(OxmField::Ipv4Src, 0x0a00_0001, 0xff00_00ff);
        let prefix = ip.with_masked(OxmField::Ipv4Src, 0x0a00_0000, 0xff00_0000);
        assert_eq!(take(&put(&odd)), prefix);
    }
}
