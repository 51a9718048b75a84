//! Whether a frame's checksums are right, computed over all its bytes, one at a time.

use super::naive::{self, Parsed};
use wire::{Field, PartialChecksum};

/// The state of one checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Right,
    Wrong,
    /// The field holds the pseudo-header's sum, as the offload state says.
    Partial,
    /// UDP without a checksum.
    Unused,
    /// There is none, or the frame does not say.
    Unknown,
}

/// State of the IPv4 header checksum and of the transport's.
pub fn check(frame: &[u8], partial: Option<PartialChecksum>) -> [State; 2] {
    let parsed = naive::parse(frame);
    if parsed.layers.ip == 0 || parsed.layers.labels > 0 {
        return [State::Unknown; 2];
    }
    [ipv4_header(frame, &parsed), transport(frame, &parsed, partial)]
}

fn ipv4_header(frame: &[u8], parsed: &Parsed) -> State {
    let ip = usize::from(parsed.layers.ip);
    if parsed.get(Field::EthType) != 0x0800 {
        return State::Unknown;
    }
    let header = &frame[ip..ip + usize::from(frame[ip] % 16) * 4];
    right_if(ones_complement(&[header]) == 0xffff)
}

fn right_if(is_right: bool) -> State {
    if is_right { State::Right } else { State::Wrong }
}

fn transport(frame: &[u8], parsed: &Parsed, partial: Option<PartialChecksum>) -> State {
    let l4 = usize::from(parsed.layers.l4);
    if l4 == 0 || parsed.get(Field::IpFrag) != 0 || parsed.ip_end > frame.len() {
        return State::Unknown;
    }
    let segment = &frame[l4..parsed.ip_end];
    let proto = parsed.get(Field::IpProto) as u8;
    let offset = match proto {
        6 => 16,
        17 => 6,
        132 => 8,
        _ => 2,
    };
    let is_partial = partial == Some(PartialChecksum { start: l4 as u16, offset: offset as u16 });
    if proto == 132 {
        return if is_partial { State::Partial } else { sctp(segment) };
    }
    let Some(pseudo) = pseudo_header(parsed, proto, segment.len()) else { return State::Unknown };
    let field = &segment[offset..offset + 2];
    if is_partial {
        // The field equals the pseudo-header's sum: with the complement of one added, all bits are set.
        let complement = [!field[0], !field[1]];
        let agrees = ones_complement(&[&pseudo, &complement]) == 0xffff;
        return if agrees { State::Partial } else { State::Wrong };
    }
    if proto == 17 && field == [0, 0] {
        return State::Unused;
    }
    right_if(ones_complement(&[&pseudo, segment]) == 0xffff)
}

/// The pseudo-header's bytes; empty for ICMP, `None` when the last destination is not known.
fn pseudo_header(parsed: &Parsed, proto: u8, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    match (proto, parsed.get(Field::EthType)) {
        (1, _) => return Some(bytes),
        (_, 0x0800) => {
            bytes.extend((parsed.get(Field::Ipv4Src) as u32).to_be_bytes());
            bytes.extend((parsed.get(Field::Ipv4Dst) as u32).to_be_bytes());
        }
        _ => {
            let dst = match parsed.final_dst {
                None => parsed.get(Field::Ipv6Dst),
                Some(last) => last?,
            };
            bytes.extend(parsed.get(Field::Ipv6Src).to_be_bytes());
            bytes.extend(dst.to_be_bytes());
        }
    }
    bytes.extend((len as u32).to_be_bytes());
    bytes.extend([0, 0, 0, proto]);
    Some(bytes)
}

/// The one's-complement sum of parts of which all but the last have an even length.
pub fn ones_complement(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for (index, &byte) in part.iter().enumerate() {
            sum += u32::from(byte) << if index % 2 == 0 { 8 } else { 0 };
            sum = sum % 0x10000 + sum / 0x10000;
        }
    }
    sum as u16
}

fn sctp(segment: &[u8]) -> State {
    let mut zeroed = segment.to_vec();
    zeroed[8..12].fill(0);
    right_if(crc32c(&zeroed).to_le_bytes() == segment[8..12])
}

/// CRC32c, one bit at a time.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut register = u32::MAX;
    for &byte in bytes {
        register ^= u32::from(byte);
        for _ in 0..8 {
            register = register >> 1 ^ if register & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    !register
}
