//! IPv6 (RFC 8200) and its extension headers.

use super::ipv4::fragment_bits;
use super::transport::{self, Family};
use super::{be, chunk};
use crate::{Key, Layers, ip_proto};

/// Bytes of the fixed header.
pub(super) const HEADER: usize = 40;

/// Bits of [`crate::Field::Ipv6Exthdr`] (`OFPIEH_*`, OpenFlow 1.3.5 §7.2.3.8).
mod seen {
    pub const NO_NEXT: u16 = 1 << 0;
    pub const ESP: u16 = 1 << 1;
    pub const AUTH: u16 = 1 << 2;
    pub const DESTINATION: u16 = 1 << 3;
    pub const FRAGMENT: u16 = 1 << 4;
    pub const ROUTING: u16 = 1 << 5;
    pub const HOP_BY_HOP: u16 = 1 << 6;
    /// A header came twice that should not.
    pub const REPEATED: u16 = 1 << 7;
    /// The order is not RFC 8200 §4.1's.
    pub const DISORDERED: u16 = 1 << 8;
}

#[inline]
pub(super) fn parse(bytes: &[u8], at: usize, key: &mut Key, layers: Layers) -> Layers {
    let Some(header) = chunk::<HEADER>(bytes, at) else { return layers };
    let first = be!(u64, header, 0);
    if first >> 60 != 6 {
        return layers;
    }
    let chain = walk(bytes, at, header);
    let traffic_class = first >> 52 & 0xff;
    key.0[2] = key.0[2] & !0xffff_ffff
        | u64::from(chain.proto) << 24
        | traffic_class << 16
        | chain.frag << 8;
    key.0[3] = first >> 32 & 0xf_ffff;
    key.0[4] = u64::from(chain.seen);
    (key.0[5], key.0[6]) = (be!(u64, header, 8), be!(u64, header, 16));
    (key.0[7], key.0[8]) = (be!(u64, header, 24), be!(u64, header, 32));
    let layers = Layers { ip: at as u16, ..layers };
    match chain.upper {
        Some(l4) if chain.frag & 2 == 0 => {
            transport::parse(&bytes[..chain.end], l4, chain.proto, Family::V6, key, layers)
        }
        upper => Layers { payload: upper.unwrap_or(0) as u16, ..layers },
    }
}

/// What the extension headers of one packet say.
pub(crate) struct Chain {
    /// The last next-header value: the upper layer's, or that of a header which the head cuts off.
    pub proto: u8,
    /// Offset of the byte that holds it.
    pub proto_at: usize,
    /// Offset of the upper layer, or of what ESP hides; `None` when the head or the packet ends before.
    pub upper: Option<usize>,
    /// Where the packet ends: inside the head and inside the payload length.
    pub end: usize,
    /// A routing header has segments left: the transport checksum covers the last address and not this header's (RFC 8200 §8.1).
    pub routed: bool,
    seen: u16,
    /// [`crate::Field::IpFrag`].
    pub frag: u64,
}

/// The extension headers of the IPv6 packet at `at`, for edits; `None` if no header fits there.
pub(crate) fn chain(bytes: &[u8], at: usize) -> Option<Chain> {
    Some(walk(bytes, at, chunk(bytes, at)?))
}

/// Walks the extension headers of the packet whose `header` lies at `at`. At most one step for each 8 bytes of the head.
#[inline]
fn walk(bytes: &[u8], at: usize, header: &[u8; HEADER]) -> Chain {
    let (proto, payload) = (header[6], usize::from(be!(u16, header, 4)));
    // A jumbogram (RFC 2675) has payload length 0 and its true length in a hop-by-hop option: larger than any head.
    let jumbo = payload == 0 && proto == ip_proto::HOP_BY_HOP;
    let end = if jumbo { bytes.len() } else { bytes.len().min(at + HEADER + payload) };
    let mut walk = Walk {
        chain: Chain {
            proto,
            proto_at: at + 6,
            upper: Some(at + HEADER),
            end,
            routed: false,
            seen: 0,
            frag: 0,
        },
        rank: 0,
        met: 0,
        destinations: 0,
    };
    while is_extension(walk.chain.proto) {
        if !walk.step(&bytes[..end]) {
            break;
        }
    }
    walk.chain
}

/// The headers that OpenFlow's pseudo-field knows.
const fn is_extension(proto: u8) -> bool {
    matches!(
        proto,
        ip_proto::HOP_BY_HOP
            | ip_proto::ROUTING
            | ip_proto::FRAGMENT
            | ip_proto::ESP
            | ip_proto::AUTH
            | ip_proto::NO_NEXT
            | ip_proto::DESTINATION
    )
}

struct Walk {
    chain: Chain,
    /// Place of the last header in RFC 8200 §4.1's order, see [`Walk::note`].
    rank: u8,
    /// Headers met, also those that do not count as present; not the destination options.
    met: u16,
    destinations: u8,
}

impl Walk {
    /// Notes the header that `proto` announces and steps over it; `false` when nothing follows that can be read.
    fn step(&mut self, packet: &[u8]) -> bool {
        let proto = self.chain.proto;
        let at = self.chain.upper.unwrap_or(packet.len());
        self.note(proto);
        if matches!(proto, ip_proto::ESP | ip_proto::NO_NEXT) {
            return false;
        }
        let Some(header) = chunk::<8>(packet, at) else {
            self.chain.upper = None;
            return false;
        };
        let len = match proto {
            ip_proto::FRAGMENT => 8,
            ip_proto::AUTH => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        if at + len > packet.len() {
            self.chain.upper = None;
            return false;
        }
        (self.chain.proto, self.chain.proto_at, self.chain.upper) = (header[0], at, Some(at + len));
        match proto {
            ip_proto::ROUTING => self.chain.routed |= header[3] != 0,
            ip_proto::FRAGMENT => return self.fragment(be!(u16, header, 2)),
            _ => {}
        }
        true
    }

    /// Reads offset and flags; what follows in a later fragment is data. An atomic fragment (RFC 6946) is none.
    fn fragment(&mut self, offset: u16) -> bool {
        let later = offset & 0xfff8 != 0;
        self.chain.frag |= fragment_bits(later, offset & 0xfff9 != 0);
        !later
    }

    /// Keeps the pseudo-field (OpenFlow 1.3.5 §7.2.3.8): presence, unexpected repeats, and order.
    ///
    /// RFC 8200 §4.1 has the destination options in two places: rank 2 before a routing header, rank 7 before the upper layer.
    fn note(&mut self, proto: u8) {
        let chain = &mut self.chain;
        let (bit, rank) = match proto {
            ip_proto::HOP_BY_HOP => (seen::HOP_BY_HOP, 1),
            ip_proto::ROUTING => (seen::ROUTING, 3),
            ip_proto::FRAGMENT => (seen::FRAGMENT, 4),
            ip_proto::AUTH => (seen::AUTH, 5),
            ip_proto::ESP => (seen::ESP, 6),
            ip_proto::DESTINATION => return self.note_destination(),
            _ => (seen::NO_NEXT, 8),
        };
        if self.met & bit != 0 {
            chain.seen |= seen::REPEATED;
        }
        self.met |= bit;
        if rank < self.rank {
            chain.seen |= seen::DISORDERED;
        }
        // Hop-by-hop options count only as the first header; elsewhere they are out of order.
        if proto == ip_proto::HOP_BY_HOP && self.rank != 0 {
            chain.seen |= seen::DISORDERED;
        } else {
            chain.seen |= bit;
        }
        self.rank = self.rank.max(rank);
    }

    fn note_destination(&mut self) {
        let rank = if self.rank < 2 { 2 } else { 7 };
        self.destinations = self.destinations.saturating_add(1);
        self.chain.seen |= seen::DESTINATION;
        if self.destinations > 2 {
            self.chain.seen |= seen::REPEATED;
        }
        if self.rank == 7 {
            self.chain.seen |= seen::DISORDERED;
        }
        self.rank = self.rank.max(rank);
    }
}
