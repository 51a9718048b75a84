//! `ofp_match` (1.0.0 §5.2.3): twelve fields and a word of wildcards ↔ a list of OXM fields.
//!
//! Fields have the meaning that table 3 of §3.3 gives them for the packet's type: `nw_proto` is ARP's opcode in ARP, `tp_src` and
//! `tp_dst` are ICMP's type and code in ICMP. A field whose protocol is not matched means nothing and is ignored, as 1.0.1 says.
//!
//! Towards 1.0, what has no word there is left out: other fields; masks of Ethernet addresses; masks of IPv4 addresses beyond
//! their leading ones; "any VLAN tag" unless a priority says it.

use super::Wire;
use super::port::{from_wire, to_wire};
use crate::bytes::{Reader, Writer};
use crate::error::Fault;
use crate::ids::PortNo;
use crate::matching::Match;
use crate::oxm::{OxmField, VLAN_PRESENT};

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

    fn network(&self, mut fields: Match) -> Match {
        let (src, dst, proto) = match self.matters(DL_TYPE).then_some(self.dl_type) {
            Some(IPV4) => (OxmField::Ipv4Src, OxmField::Ipv4Dst, OxmField::IpProto),
            Some(ARP) => (OxmField::ArpSpa, OxmField::ArpTpa, OxmField::ArpOp),
            _ => return fields,
        };
        if self.dl_type == IPV4 && self.matters(NW_TOS) {
            fields = fields.with(OxmField::IpDscp, (self.nw_tos >> 2).into());
        }
        if self.matters(NW_PROTO) {
            fields = fields.with(proto, self.nw_proto.into());
        }
        let addresses = [
            (src, self.nw_src, self.prefix(NW_SRC_SHIFT)),
            (dst, self.nw_dst, self.prefix(NW_DST_SHIFT)),
        ];
        for (field, value, mask) in addresses.into_iter().filter(|(_, _, mask)| *mask != 0) {
            fields = fields.with_masked(field, (value & mask).into(), mask.into());
        }
        fields
    }

    fn transport(&self, mut fields: Match) -> Match {
        let ip = self.matters(DL_TYPE) && self.dl_type == IPV4;
        let Some((src, dst)) = ports(self.nw_proto).filter(|_| ip && self.matters(NW_PROTO)) else {
            return fields;
        };
        // Past a byte no ICMP type or code lies; the check refuses it by the field's width.
        for (field, value, wildcard) in [(src, self.tp_src, TP_SRC), (dst, self.tp_dst, TP_DST)] {
            if self.matters(wildcard) {
                fields = fields.with(field, value.into());
            }
        }
        fields
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
        let (src, dst, proto) = match self.matters(DL_TYPE).then_some(self.dl_type) {
            Some(IPV4) => (OxmField::Ipv4Src, OxmField::Ipv4Dst, OxmField::IpProto),
            Some(ARP) => (OxmField::ArpSpa, OxmField::ArpTpa, OxmField::ArpOp),
            _ => return,
        };
        let tos = fields.exact(OxmField::IpDscp).map(|dscp| (dscp << 2) as u8);
        self.set(tos, NW_TOS, |twelve| &mut twelve.nw_tos);
        let fits = fields.exact(proto).is_some_and(|value| value <= 0xff);
        if fits {
            self.set_u8(fields, proto, NW_PROTO, |twelve| &mut twelve.nw_proto);
        }
        self.nw_src = self.set_address(fields, src, NW_SRC_SHIFT);
        self.nw_dst = self.set_address(fields, dst, NW_DST_SHIFT);
    }

    /// The address, and in the wildcards how many of its low bits do not matter: all after the mask's leading ones.
    fn set_address(&mut self, fields: &Match, field: OxmField, shift: u32) -> u32 {
        let (value, mask) = fields.get(field).unwrap_or((0, 0));
        let ignored = 32 - (mask as u32).leading_ones();
        self.wildcards = self.wildcards & !(0x3f << shift) | ignored << shift;
        value as u32 & self.prefix(shift)
    }

    fn set_transport(&mut self, fields: &Match) {
        let ip = self.matters(DL_TYPE) && self.dl_type == IPV4;
        let Some((src, dst)) = ports(self.nw_proto).filter(|_| ip && self.matters(NW_PROTO)) else {
            return;
        };
        self.set_u16(fields, src, TP_SRC, |twelve| &mut twelve.tp_src);
        self.set_u16(fields, dst, TP_DST, |twelve| &mut twelve.tp_dst);
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

/// What `tp_src` and `tp_dst` are in an IP protocol. 1.0 names TCP, UDP and ICMP; SCTP has ports at the same place.
fn ports(proto: u8) -> Option<(OxmField, OxmField)> {
    match proto {
        1 => Some((OxmField::Icmpv4Type, OxmField::Icmpv4Code)),
        6 => Some((OxmField::TcpSrc, OxmField::TcpDst)),
        17 => Some((OxmField::UdpSrc, OxmField::UdpDst)),
        132 => Some((OxmField::SctpSrc, OxmField::SctpDst)),
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
        let tcp = ipv6.clone().with(OxmField::IpProto, 6).with(OxmField::TcpDst, 80);
        assert_eq!(put(&tcp), put(&ipv6));
    }

    #[test]
    fn an_address_keeps_the_leading_ones_of_its_mask() {
        let ip = Match::default().with(OxmField::EthType, 0x0800);
        let odd = ip.clone().with_masked(OxmField::Ipv4Src, 0x0a00_0001, 0xff00_00ff);
        let prefix = ip.with_masked(OxmField::Ipv4Src, 0x0a00_0000, 0xff00_0000);
        assert_eq!(take(&put(&odd)), prefix);
    }
}
