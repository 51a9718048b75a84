//! TCP, UDP, SCTP, ICMP and ICMPv6.

use super::{be, chunk, nd};
use crate::{Key, Layers, ip_proto};

/// Which IP carries the transport: ICMP belongs to one, ICMPv6 to the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

/// Parses the header at `at`; `packet` ends where the IP packet or the head ends.
#[inline]
pub(super) fn parse(
    packet: &[u8],
    at: usize,
    proto: u8,
    family: Family,
    key: &mut Key,
    layers: Layers,
) -> Layers {
    match (proto, family) {
        (ip_proto::TCP, _) => tcp(packet, at, key, layers),
        (ip_proto::UDP, _) => ports::<8>(packet, at, key, layers),
        (ip_proto::SCTP, _) => ports::<12>(packet, at, key, layers),
        (ip_proto::ICMP, Family::V4) => icmp::<8>(packet, at, key, layers),
        (ip_proto::ICMPV6, Family::V6) => {
            let layers = icmp::<4>(packet, at, key, layers);
            nd::parse(packet, key, layers)
        }
        _ => Layers { payload: at as u16, ..layers },
    }
}

/// RFC 9293 §3.1. A data offset below the header's size is malformed: no receiver would take the ports for ports.
#[inline(always)]
fn tcp(packet: &[u8], at: usize, key: &mut Key, layers: Layers) -> Layers {
    let Some(header) = chunk::<20>(packet, at) else { return layers };
    let offset_flags = be!(u16, header, 12);
    let len = usize::from(offset_flags >> 12) * 4;
    if len < 20 {
        return layers;
    }
    key.0[4] |= u64::from(be!(u32, header, 0)) << 32 | u64::from(offset_flags & 0xfff) << 16;
    let payload = at + len;
    // The ports stand even if the head ends inside the options; then nobody learns where the payload begins.
    Layers {
        l4: at as u16,
        payload: if payload <= packet.len() { payload as u16 } else { 0 },
        ..layers
    }
}

#[inline(always)]
fn ports<const HEADER: usize>(packet: &[u8], at: usize, key: &mut Key, layers: Layers) -> Layers {
    let Some(header) = chunk::<HEADER>(packet, at) else { return layers };
    key.0[4] |= u64::from(be!(u32, header, 0)) << 32;
    Layers { l4: at as u16, payload: (at + HEADER) as u16, ..layers }
}

#[inline(always)]
fn icmp<const HEADER: usize>(packet: &[u8], at: usize, key: &mut Key, layers: Layers) -> Layers {
    let Some(header) = chunk::<HEADER>(packet, at) else { return layers };
    key.0[4] |= u64::from(header[0]) << 48 | u64::from(header[1]) << 32;
    Layers { l4: at as u16, payload: (at + HEADER) as u16, ..layers }
}
