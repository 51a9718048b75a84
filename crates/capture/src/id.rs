//! One packet, one id: what the switches on its way do not change, hashed with a key.
//!
//! | packet | what counts |
//! |---|---|
//! | IPv4 | version, protocol, identification, fragment offset and MF |
//! | IPv6 | version, last next-header; of a fragment its id, offset, M |
//! | TCP | sequence and acknowledgement numbers, SYN, RST, ACK, URG, window, options unless SYN, 64 bytes of payload |
//! | UDP | 64 bytes of payload |
//! | SCTP | verification tag, 64 bytes of chunks |
//! | ICMP | bytes 4 to 8 and 64 of the rest |
//! | anything else over IP, later fragments | 64 bytes |
//! | anything else | EtherType behind tags, 64 bytes |
//!
//! Addresses, ports, tags, lifetimes, DS fields and checksums may be rewritten. A large segment has the id of its first piece: its length, and PSH,
//! FIN, CWR and ECE, which only one of its pieces has, are left out. A SYN's options are left out, for its MSS may be clamped.
//!
//! Packets of equal bytes have equal ids: in IPv6, which has no identification, repeated pure acknowledgements and empty datagrams.

use std::fmt;
use wire::{Field, HEAD_MAX, eth_type, ip_proto};

/// A packet's number at every point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketId(pub u64);

impl fmt::Display for PacketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What makes the ids of one capture its own: the same at all of its nodes, and unknown to whoever sends packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdKey(pub [u64; 2]);

/// Bytes of a packet's payload that count.
const PAYLOAD: usize = 64;
/// SYN, RST, ACK, URG.
const FLAGS: u8 = 0x36;
const SYN: u8 = 0x02;
/// Fragment offset and MF.
const FRAGMENT: u16 = 0x3fff;

impl IdKey {
    /// The id of a packet, of which at least the first 256 bytes are here, or all.
    pub fn id(&self, frame: &[u8]) -> PacketId {
        let mut hash = Hash { state: self.0[0], key: self.0[1] };
        collect(frame, &mut hash);
        PacketId(hash.finish())
    }
}

fn collect(frame: &[u8], hash: &mut Hash) {
    let bytes = up_to(frame, HEAD_MAX);
    let (key, layers) = wire::parse_bytes(bytes);
    let (ip, l3) = (usize::from(layers.ip), usize::from(layers.l3));
    let outer = eth_type_before(bytes, l3);
    // A parser of OpenFlow's fields does not look below labels.
    if outer.is_some_and(eth_type::is_mpls)
        && let Some(inner) = below_labels(bytes, l3)
    {
        return collect(&inner, hash);
    }
    if ip == 0 {
        return match (l3, outer) {
            // Behind its service tag a backbone's frame has another one.
            (1.., Some(eth_type::PBB)) => collect(tail(bytes, l3 + 4), hash),
            (_, eth_type) => {
                hash.add(&eth_type.unwrap_or_default().to_be_bytes());
                hash.add(up_to(tail(bytes, l3), PAYLOAD));
            }
        };
    }
    let protocol = key.get(Field::IpProto) as u8;
    let end = end_of_packet(bytes, ip);
    let bytes = &bytes[..end];
    hash.add(&[bytes[ip] >> 4, protocol]);
    let after = match bytes[ip] >> 4 {
        4 => ipv4(bytes, ip, hash),
        _ => ipv6(bytes, ip, hash),
    };
    let at = usize::from(layers.l4);
    match (at, protocol) {
        (1.., ip_proto::TCP) => tcp(tail(bytes, at), hash),
        (1.., ip_proto::UDP) => hash.add(up_to(tail(bytes, at + 8), PAYLOAD)),
        (1.., ip_proto::SCTP) => {
            hash.add(up_to(tail(bytes, at + 4), 4));
            hash.add(up_to(tail(bytes, at + 12), PAYLOAD));
        }
        (1.., ip_proto::ICMP | ip_proto::ICMPV6) => {
            hash.add(up_to(tail(bytes, at + 4), 4 + PAYLOAD));
        }
        _ => hash.add(up_to(tail(bytes, after), PAYLOAD)),
    }
}

/// The frame as it would be without its MPLS labels, if IP is below them: the first digit of the packet tells (RFC 4928).
fn below_labels(bytes: &[u8], mut at: usize) -> Option<Vec<u8>> {
    while bytes.get(at + 2)? & 1 == 0 {
        at += 4;
    }
    let eth_type = match bytes.get(at + 4)? >> 4 {
        4 => eth_type::IPV4,
        6 => eth_type::IPV6,
        _ => return None,
    };
    Some([&bytes[..12], &eth_type.to_be_bytes(), &bytes[at + 4..]].concat())
}

/// Hashes what stays of an IPv4 header; returns where it ends.
fn ipv4(bytes: &[u8], ip: usize, hash: &mut Hash) -> usize {
    hash.add(tail(bytes, ip + 4).get(..2).unwrap_or_default());
    hash.add(&(half(bytes, ip + 6) & FRAGMENT).to_be_bytes());
    ip + usize::from(bytes[ip] & 15) * 4
}

/// Hashes what stays of the headers of IPv6; returns where they end.
fn ipv6(bytes: &[u8], ip: usize, hash: &mut Hash) -> usize {
    let (mut next, mut at) = (bytes.get(ip + 6).copied().unwrap_or_default(), ip + 40);
    // Hop by hop, routing, destination options; then a fragment's.
    while let (0 | 43 | 60, Some(&[following, length])) =
        (next, bytes.get(at..).and_then(<[u8]>::first_chunk))
    {
        (next, at) = (following, at + 8 + usize::from(length) * 8);
    }
    if next == 44 {
        hash.add(up_to(tail(bytes, at + 2), 6));
        at += 8;
    }
    at
}

fn tcp(segment: &[u8], hash: &mut Hash) {
    let Some(header) = segment.first_chunk::<20>() else { return hash.add(segment) };
    let flags = header[13] & FLAGS;
    hash.add(&header[4..12]);
    hash.add(&[flags, header[14], header[15]]);
    let payload = usize::from(header[12] >> 4) * 4;
    if flags & SYN == 0 {
        hash.add(up_to(tail(segment, 20), payload.saturating_sub(20)));
    }
    hash.add(up_to(tail(segment, payload), PAYLOAD));
}

/// Where the IP packet ends; a length of 0, or one past the end, says nothing. What is behind it is padding.
fn end_of_packet(bytes: &[u8], ip: usize) -> usize {
    let length = match bytes[ip] >> 4 {
        4 => usize::from(half(bytes, ip + 2)),
        _ => match half(bytes, ip + 4) {
            0 => 0,
            length => usize::from(length) + 40,
        },
    };
    match length {
        0 => bytes.len(),
        length => bytes.len().min(ip + length).max(ip + 1),
    }
}

fn eth_type_before(bytes: &[u8], l3: usize) -> Option<u16> {
    let at = if l3 == 0 { 12 } else { l3 - 2 };
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |half| u16::from_be_bytes(*half))
}

fn tail(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

fn up_to(bytes: &[u8], len: usize) -> &[u8] {
    &bytes[..bytes.len().min(len)]
}

/// Words folded one after the other by a multiplication to twice the width, which mixes each bit into all others.
struct Hash {
    state: u64,
    key: u64,
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.fold(u64::from_le_bytes(word));
        }
        // So that where one piece ends and the next begins counts, too.
        self.fold(bytes.len() as u64);
    }

    fn fold(&mut self, word: u64) {
        // An odd multiplier of balanced bits: the golden ratio's, as in Knuth, TAOCP vol. 3, 6.4.
        let product = u128::from(self.state ^ word) * u128::from(self.key | 0x9e37_79b9_7f4a_7c15);
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.key);
    }

    fn finish(mut self) -> u64 {
        self.fold(self.key);
        self.fold(0);
        self.state
    }
}

#[cfg(test)]
mod tests;
