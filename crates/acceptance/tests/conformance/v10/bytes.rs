//! Messages of 1.0 as bytes.

use crate::oracle::Frame;
use openflow::OxmField;

/// A flow-mod that adds (§5.3.3): these fields matter, the rest are wildcards.
pub fn flow_mod(fields: &[Part], actions: &[u8]) -> Vec<u8> {
    let len = (72 + actions.len()) as u16;
    let mut out = vec![1, 14];
    out.extend(len.to_be_bytes());
    out.extend([0; 4]);
    out.extend(matching(fields));
    out.extend([0; 8]); // cookie
    out.extend([0; 6]); // add, no timeouts
    out.extend(100_u16.to_be_bytes());
    out.extend([0xff; 4]); // no buffer
    out.extend([0xff, 0xff, 0, 0]); // no out port, no flags
    out.extend(actions);
    out
}

/// A piece of `ofp_match`: the wildcard bits that it clears, the count of ignored bits that it puts there, and bytes at an offset.
#[derive(Clone, Debug)]
pub struct Part {
    clears: u32,
    ignores: u32,
    at: usize,
    bytes: Vec<u8>,
}

/// Every bit of `OFPFW_ALL`, with 32 ignored bits of each address.
const ALL: u32 = 0x0030_00ff | 32 << 8 | 32 << 14;

fn matching(parts: &[Part]) -> [u8; 40] {
    let mut out = [0; 40];
    let wildcards = parts.iter().fold(ALL, |left, part| left & !part.clears | part.ignores);
    out[..4].copy_from_slice(&wildcards.to_be_bytes());
    for part in parts {
        out[part.at..part.at + part.bytes.len()].copy_from_slice(&part.bytes);
    }
    out
}

/// Actions of 1.0 (§5.2.4).
pub struct Ofp10;

impl Ofp10 {
    pub fn output(port: u16) -> Vec<u8> {
        [&[0, 0, 0, 8][..], &port.to_be_bytes(), &[0, 0]].concat()
    }

    /// The whole packet to the controller.
    pub fn output_up() -> Vec<u8> {
        vec![0, 0, 0, 8, 0xff, 0xfd, 0xff, 0xff]
    }

    pub fn enqueue(port: u16, queue: u32) -> Vec<u8> {
        [&[0, 11, 0, 16][..], &port.to_be_bytes(), &[0; 6], &queue.to_be_bytes()].concat()
    }

    pub fn bare(kind: u8) -> Vec<u8> {
        vec![0, kind, 0, 8, 0, 0, 0, 0]
    }

    pub fn set_8(kind: u8, value: u8) -> Vec<u8> {
        vec![0, kind, 0, 8, value, 0, 0, 0]
    }

    pub fn set_16(kind: u8, value: u16) -> Vec<u8> {
        [&[0, kind, 0, 8][..], &value.to_be_bytes(), &[0, 0]].concat()
    }

    pub fn set_32(kind: u8, value: u32) -> Vec<u8> {
        [&[0, kind, 0, 8][..], &value.to_be_bytes()].concat()
    }

    pub fn set_mac(kind: u8, value: u64) -> Vec<u8> {
        [&[0, kind, 0, 16][..], &value.to_be_bytes()[2..], &[0; 6]].concat()
    }
}

/// A field of the twelve-tuple.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in names of cases.
    pub name: &'static str,
    /// The same in a frame; `None` = the ingress port.
    oxm: Option<OxmField>,
    bits: u32,
    at: usize,
    width: usize,
    /// Bits of an address that do not matter.
    ignored: u32,
}

const fn field(name: &'static str, oxm: OxmField, (bits, at, width): (u32, usize, usize)) -> Field {
    Field { name, oxm: Some(oxm), bits, at, width, ignored: 0 }
}

const SRC: (u32, usize, usize) = (63 << 8, 28, 4);
const DST: (u32, usize, usize) = (63 << 14, 32, 4);
const PROTO: (u32, usize, usize) = (1 << 5, 25, 1);
const TP_SRC: (u32, usize, usize) = (1 << 6, 36, 2);
const TP_DST: (u32, usize, usize) = (1 << 7, 38, 2);

/// The fields (table 2), under each meaning that table 3 gives them.
const FIELDS: [Field; 24] = [
    Field { name: "in_port", oxm: None, bits: 1, at: 4, width: 2, ignored: 0 },
    field("dl_src", OxmField::EthSrc, (1 << 2, 6, 6)),
    field("dl_dst", OxmField::EthDst, (1 << 3, 12, 6)),
    field("dl_vlan", OxmField::VlanVid, (1 << 1, 18, 2)),
    field("dl_vlan_pcp", OxmField::VlanPcp, (1 << 20, 20, 1)),
    field("dl_type", OxmField::EthType, (1 << 4, 22, 2)),
    field("nw_tos", OxmField::IpDscp, (1 << 21, 24, 1)),
    field("nw_proto", OxmField::IpProto, PROTO),
    field("nw_proto_is_arp_opcode", OxmField::ArpOp, PROTO),
    field("nw_src", OxmField::Ipv4Src, SRC),
    field("nw_dst", OxmField::Ipv4Dst, DST),
    Field { ignored: 8, ..field("nw_src_prefix", OxmField::Ipv4Src, SRC) },
    Field { ignored: 24, ..field("nw_dst_prefix", OxmField::Ipv4Dst, DST) },
    field("nw_src_of_arp", OxmField::ArpSpa, SRC),
    field("nw_dst_of_arp", OxmField::ArpTpa, DST),
    Field { ignored: 16, ..field("nw_src_prefix_of_arp", OxmField::ArpSpa, SRC) },
    Field { ignored: 1, ..field("nw_dst_prefix_of_arp", OxmField::ArpTpa, DST) },
    field("tp_src_of_tcp", OxmField::TcpSrc, TP_SRC),
    field("tp_dst_of_tcp", OxmField::TcpDst, TP_DST),
    field("tp_src_of_udp", OxmField::UdpSrc, TP_SRC),
    field("tp_dst_of_udp", OxmField::UdpDst, TP_DST),
    field("tp_src_is_icmp_type", OxmField::Icmpv4Type, TP_SRC),
    field("tp_dst_is_icmp_code", OxmField::Icmpv4Code, TP_DST),
    // The value says "no tag", and the frame that differs has one.
    Field { width: 0, ..field("dl_vlan_none", OxmField::VlanVid, (1 << 1, 18, 2)) },
];

impl Field {
    /// The fields that the frame has, as 1.0 sees them: of IPv6 nothing but its type.
    pub fn of(frame: &Frame) -> Vec<Field> {
        let is_network = |field: &Field| field.at >= 24 && frame.eth_type() == 0x86dd;
        let has = |field: &Field| match (field.name, field.oxm) {
            ("dl_vlan_none", _) => frame.tags.is_empty(),
            (_, None) => true,
            (_, Some(oxm)) => frame.get(oxm).is_some(),
        };
        FIELDS.into_iter().filter(|field| has(field) && !is_network(field)).collect()
    }

    /// The field's own part of the match, after those of the fields that give it its meaning.
    pub fn needed(self, frame: &Frame) -> Vec<Part> {
        let exact = |name| FIELDS.iter().find(|field| field.name == name).unwrap().part(frame);
        let mut parts = match self.at {
            20 => vec![exact("dl_vlan")],
            24.. => vec![exact("dl_type")],
            _ => vec![],
        };
        if self.at >= 36 {
            parts.push(exact("nw_proto"));
        }
        parts.push(self.part(frame));
        parts
    }

    fn part(self, frame: &Frame) -> Part {
        let value = match (self.name, self.oxm) {
            ("dl_vlan_none", _) => 0xffff, // `OFP_VLAN_NONE`
            (_, None) => 1,
            (_, Some(oxm)) => frame.get(oxm).unwrap(),
        };
        let value = match self.oxm {
            Some(OxmField::VlanVid) if self.name == "dl_vlan" => value & 0xfff,
            Some(OxmField::IpDscp) => value << 2,
            _ => value,
        };
        let width = if self.width == 0 { 2 } else { self.width };
        let ignores = self.ignored << self.bits.trailing_zeros();
        let bytes = value.to_be_bytes()[16 - width..].to_vec();
        Part { clears: self.bits, ignores, at: self.at, bytes }
    }

    /// A frame that differs in the field, at the lowest bit that matters; `None` for the ingress port.
    pub fn other(self, frame: &Frame) -> Option<Frame> {
        let oxm = self.oxm?;
        if self.name == "dl_vlan_none" {
            let mut tagged = frame.clone();
            crate::oracle::act(&mut tagged, &openflow::Action::PushVlan(0x8100)).unwrap();
            return Some(tagged);
        }
        let value = match oxm {
            OxmField::EthType => 0x88b6,
            OxmField::IpProto => 253,
            _ => frame.get(oxm).unwrap() ^ 1 << self.ignored,
        };
        Some(frame.with(oxm, value))
    }
}
