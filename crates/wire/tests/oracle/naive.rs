//! A parser that reads one field after the other.

use wire::{Field, Key, Layers};

/// Reads big-endian numbers from a slice, moving on.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
    /// Nothing at or past this offset is there.
    pub end: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], at: usize, end: usize) -> Self {
        Self { bytes, at, end: end.min(bytes.len()) }
    }

    pub fn number(&mut self, width: usize) -> Option<u128> {
        let mut value = 0;
        for _ in 0..width {
            if self.at >= self.end {
                return None;
            }
            value = value * 256 + u128::from(self.bytes[self.at]);
            self.at += 1;
        }
        Some(value)
    }

    /// Whether `count` more bytes are there.
    pub fn has(&self, count: usize) -> bool {
        self.at + count <= self.end
    }
}

/// What the naive parser found. `Parsed::ip_end` and `final_dst` are for the checksum oracle.
#[derive(Default)]
pub struct Parsed {
    pub key: Key,
    pub layers: Layers,
    /// Where the IP packet ends by its own account.
    pub ip_end: usize,
    /// A routing header has segments left.
    pub routed: bool,
    /// The destination that the pseudo-header has, if it is not the header's; `None` inside = cannot tell.
    pub final_dst: Option<Option<u128>>,
}

impl Parsed {
    fn set(&mut self, field: Field, value: u128) {
        self.key.set(field, value);
    }

    pub fn get(&self, field: Field) -> u128 {
        self.key.get(field)
    }
}

pub fn parse(bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    ethernet(bytes, &mut parsed);
    parsed
}

fn ethernet(bytes: &[u8], parsed: &mut Parsed) -> Option<()> {
    let mut reader = Reader::new(bytes, 0, bytes.len());
    if !reader.has(14) {
        return None;
    }
    let (dst, src, mut eth_type) = (reader.number(6)?, reader.number(6)?, reader.number(2)?);
    parsed.set(Field::EthDst, dst);
    parsed.set(Field::EthSrc, src);
    while (eth_type == 0x8100 || eth_type == 0x88a8) && reader.has(4) {
        let tci = reader.number(2)?;
        if parsed.layers.vlans == 0 {
            parsed.set(Field::VlanPcp, tci / 8192);
            parsed.set(Field::VlanVid, tci % 4096 + 4096);
        }
        parsed.layers.vlans += 1;
        eth_type = reader.number(2)?;
    }
    if eth_type < 1536 {
        let mut snap = reader;
        let llc = snap.number(3);
        let organisation = snap.number(3);
        let inner = snap.number(2);
        eth_type = 0x5ff;
        if let (Some(0xaaaa03), Some(0), Some(inner @ 1536..)) = (llc, organisation, inner) {
            eth_type = inner;
            reader = snap;
        }
    }
    parsed.set(Field::EthType, eth_type);
    parsed.layers.l3 = reader.at as u16;
    match eth_type {
        0x0800 => ipv4(bytes, reader.at, parsed),
        0x86dd => ipv6(bytes, reader.at, parsed),
        0x0806 => arp(reader, parsed),
        0x8847 | 0x8848 => mpls(bytes, reader, parsed),
        0x88e7 => pbb(reader, parsed),
        _ => Some(()),
    }
}

fn arp(mut reader: Reader<'_>, parsed: &mut Parsed) -> Option<()> {
    if !reader.has(28) {
        return None;
    }
    let fixed = [reader.number(2)?, reader.number(2)?, reader.number(1)?, reader.number(1)?];
    if fixed != [1, 0x0800, 6, 4] {
        return None;
    }
    for (field, width) in [
        (Field::ArpOp, 2),
        (Field::ArpSha, 6),
        (Field::ArpSpa, 4),
        (Field::ArpTha, 6),
        (Field::ArpTpa, 4),
    ] {
        let value = reader.number(width)?;
        parsed.set(field, value);
    }
    parsed.layers.payload = reader.at as u16;
    Some(())
}

fn mpls(bytes: &[u8], mut reader: Reader<'_>, parsed: &mut Parsed) -> Option<()> {
    while reader.has(4) {
        let shim = reader.number(4)?;
        if parsed.layers.labels == 0 {
            parsed.set(Field::MplsLabel, shim >> 12);
            parsed.set(Field::MplsTc, shim >> 9 & 7);
            parsed.set(Field::MplsBos, shim >> 8 & 1);
        }
        parsed.layers.labels += 1;
        if shim >> 8 & 1 == 1 {
            // What follows is looked at with another key, as only the place of the IP header matters.
            let mut below = Parsed::default();
            match bytes.get(reader.at)? >> 4 {
                4 => ipv4(bytes, reader.at, &mut below),
                6 => ipv6(bytes, reader.at, &mut below),
                _ => None,
            };
            parsed.layers.ip = below.layers.ip;
            break;
        }
    }
    Some(())
}

fn pbb(mut reader: Reader<'_>, parsed: &mut Parsed) -> Option<()> {
    if !reader.has(16) {
        return None;
    }
    let control = reader.number(4)?;
    parsed.set(Field::PbbIsid, control % (1 << 24));
    parsed.set(Field::PbbUca, control >> 27 & 1);
    Some(())
}

fn ipv4(bytes: &[u8], at: usize, parsed: &mut Parsed) -> Option<()> {
    let mut reader = Reader::new(bytes, at, bytes.len());
    if !reader.has(20) {
        return None;
    }
    let first = reader.number(1)?;
    let tos = reader.number(1)?;
    let total = reader.number(2)? as usize;
    let _id = reader.number(2)?;
    let fragment = reader.number(2)?;
    let _ttl = reader.number(1)?;
    let proto = reader.number(1)?;
    let _checksum = reader.number(2)?;
    let (src, dst) = (reader.number(4)?, reader.number(4)?);
    let len = (first % 16) as usize * 4;
    if first / 16 != 4 || len < 20 || total < len || at + len > bytes.len() {
        return None;
    }
    parsed.set(Field::IpDscp, tos / 4);
    parsed.set(Field::IpEcn, tos % 4);
    parsed.set(Field::IpProto, proto);
    parsed.set(Field::Ipv4Src, src);
    parsed.set(Field::Ipv4Dst, dst);
    parsed.layers.ip = at as u16;
    parsed.ip_end = at + total;
    let (offset, more) = (fragment % 8192, fragment / 8192 % 2 == 1);
    if offset != 0 || more {
        parsed.set(Field::IpFrag, if offset != 0 { 3 } else { 1 });
    }
    if offset != 0 {
        parsed.layers.payload = (at + len) as u16;
        return Some(());
    }
    transport(Reader::new(bytes, at + len, at + total), proto, 1, parsed)
}

fn ipv6(bytes: &[u8], at: usize, parsed: &mut Parsed) -> Option<()> {
    let mut reader = Reader::new(bytes, at, bytes.len());
    if !reader.has(40) {
        return None;
    }
    let first = reader.number(4)?;
    let payload = reader.number(2)? as usize;
    let next = reader.number(1)?;
    let _hop_limit = reader.number(1)?;
    let (src, dst) = (reader.number(16)?, reader.number(16)?);
    if first >> 28 != 6 {
        return None;
    }
    parsed.set(Field::IpDscp, first >> 22 & 63);
    parsed.set(Field::IpEcn, first >> 20 & 3);
    parsed.set(Field::Ipv6Flabel, first % (1 << 20));
    parsed.set(Field::Ipv6Src, src);
    parsed.set(Field::Ipv6Dst, dst);
    parsed.layers.ip = at as u16;
    parsed.ip_end = if payload == 0 && next == 0 { usize::MAX } else { at + 40 + payload };
    let reader = Reader::new(bytes, at + 40, parsed.ip_end);
    let (proto, rest) = extensions(reader, next, parsed);
    parsed.set(Field::IpProto, proto);
    let later = parsed.get(Field::IpFrag) == 3;
    match rest {
        None => None,
        Some(reader) if later => {
            parsed.layers.payload = reader.at as u16;
            Some(())
        }
        Some(reader) => transport(reader, proto, 58, parsed),
    }
}

/// Lists the extension headers; returns the last next-header value and what follows, if that can be read.
fn extensions<'a>(
    mut reader: Reader<'a>,
    mut next: u128,
    parsed: &mut Parsed,
) -> (u128, Option<Reader<'a>>) {
    let mut list = vec![];
    let rest = loop {
        if ![0, 43, 44, 50, 51, 59, 60].contains(&next) {
            break Some(reader);
        }
        list.push(next);
        if next == 50 || next == 59 {
            break Some(reader);
        }
        let Some((after, data, following)) = extension(reader, next) else { break None };
        if next == 43 && data[2] != 0 {
            parsed.routed = true;
            parsed.final_dst = Some(last_address(reader, data[1], following.at - reader.at));
        }
        if next == 44 {
            let offset = data[1] * 32 + data[2] / 8;
            let more = data[2] % 2;
            if offset != 0 {
                parsed.set(Field::IpFrag, 3);
            } else if more != 0 {
                parsed.set(Field::IpFrag, 1);
            }
            if offset != 0 {
                (next, reader) = (after, following);
                break Some(reader);
            }
        }
        (next, reader) = (after, following);
    };
    parsed.set(Field::Ipv6Exthdr, pseudo_field(&list));
    (next, rest)
}

/// Next header, bytes 1 to 3, and what follows, if the whole header is there.
fn extension(begin: Reader<'_>, proto: u128) -> Option<(u128, [u128; 3], Reader<'_>)> {
    let mut reader = begin;
    let after = reader.number(1)?;
    let data = [reader.number(1)?, reader.number(1)?, reader.number(1)?];
    let bytes = match proto {
        44 => 8,
        51 => data[0] as usize * 4 + 8,
        _ => data[0] as usize * 8 + 8,
    };
    if !begin.has(bytes) || !begin.has(8) {
        return None;
    }
    reader.at = begin.at + bytes;
    Some((after, data, reader))
}

/// The last address of a routing header of type 0 (RFC 2460 §4.4).
fn last_address(mut begin: Reader<'_>, kind: u128, bytes: usize) -> Option<u128> {
    if kind != 0 || bytes < 24 || bytes % 16 != 8 {
        return None;
    }
    begin.at += bytes - 16;
    begin.number(16)
}

/// OpenFlow 1.3.5 §7.2.3.8, from the list of headers.
fn pseudo_field(list: &[u128]) -> u128 {
    let mut bits = 0;
    let bit_of = |proto| match proto {
        59 => 1,
        50 => 2,
        51 => 4,
        60 => 8,
        44 => 16,
        43 => 32,
        _ => 64,
    };
    for (index, &proto) in list.iter().enumerate() {
        if proto != 0 || index == 0 {
            bits |= bit_of(proto);
        }
        let allowed = if proto == 60 { 2 } else { 1 };
        if list[..index].iter().filter(|&&earlier| earlier == proto).count() >= allowed {
            bits |= 128;
        }
    }
    if list.iter().skip(1).any(|&proto| proto == 0) || !in_order(list) {
        bits |= 256;
    }
    bits
}

/// Whether the list, repeats of one header in a row taken as one, is a part of RFC 8200 §4.1's sequence.
fn in_order(list: &[u128]) -> bool {
    const ORDER: [u128; 8] = [0, 60, 43, 44, 51, 50, 60, 59];
    let mut place = 0;
    for (index, &proto) in list.iter().enumerate() {
        if proto != 60 && index > 0 && list[index - 1] == proto {
            continue;
        }
        match ORDER[place..].iter().position(|&expected| expected == proto) {
            Some(skipped) => place += skipped + 1,
            None => return false,
        }
    }
    true
}

fn transport(begin: Reader<'_>, proto: u128, icmp: u128, parsed: &mut Parsed) -> Option<()> {
    let mut reader = begin;
    let needed = match proto {
        6 => 20,
        17 => 8,
        132 => 12,
        1 if icmp == 1 => 8,
        58 if icmp == 58 => 4,
        _ => {
            parsed.layers.payload = begin.at as u16;
            return Some(());
        }
    };
    if !reader.has(needed) {
        return None;
    }
    let payload = if proto == 6 {
        let mut flags = begin;
        flags.at += 12;
        let word = flags.number(2)?;
        let len = (word / 4096) as usize * 4;
        if len < 20 {
            return None;
        }
        parsed.set(Field::TcpFlags, word % 4096);
        if begin.has(len) { begin.at + len } else { 0 }
    } else {
        begin.at + needed
    };
    (parsed.layers.l4, parsed.layers.payload) = (begin.at as u16, payload as u16);
    if proto == icmp {
        let (icmp_type, code) = (reader.number(1)?, reader.number(1)?);
        parsed.set(Field::IcmpType, icmp_type);
        parsed.set(Field::IcmpCode, code);
        if proto == 58 && code == 0 && (icmp_type == 135 || icmp_type == 136) {
            neighbor(begin, icmp_type, parsed);
        }
        return Some(());
    }
    let (src, dst) = (reader.number(2)?, reader.number(2)?);
    parsed.set(Field::TpSrc, src);
    parsed.set(Field::TpDst, dst);
    Some(())
}

fn neighbor(mut reader: Reader<'_>, icmp_type: u128, parsed: &mut Parsed) -> Option<()> {
    if !reader.has(24) {
        return None;
    }
    reader.number(8)?;
    let target = reader.number(16)?;
    parsed.set(Field::Ipv6NdTarget, target);
    while reader.has(8) {
        let begin = reader;
        let (kind, len) = (reader.number(1)?, reader.number(1)? as usize * 8);
        if len == 0 || !begin.has(len) {
            return None;
        }
        if kind == icmp_type - 134 {
            if len == 8 {
                let field = if kind == 1 { Field::Ipv6NdSll } else { Field::Ipv6NdTll };
                let address = reader.number(6)?;
                parsed.set(field, address);
            }
            return None;
        }
        reader.at = begin.at + len;
    }
    Some(())
}
