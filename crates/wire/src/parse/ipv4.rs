//! IPv4 (RFC 791): options, fragments.

use super::transport::{self, Family};
use super::{be, chunk};
use crate::{Key, Layers, eth_type, ip_proto};

/// Bytes of a header without options.
pub(super) const HEADER: usize = 20;

/// Length of a plausible header at the beginning of `ip`: version, both lengths, and its options lie inside.
#[inline(always)]
pub(crate) fn header_len(ip: &[u8]) -> Option<usize> {
    let header = ip.first_chunk::<HEADER>()?;
    let len = usize::from(header[0] & 0xf) * 4;
    let total = usize::from(be!(u16, header, 2));
    (header[0] >> 4 == 4 && len >= HEADER && total >= len && ip.len() >= len).then_some(len)
}

/// Ethernet without tags, IPv4 without options or fragments, and a UDP header or as many bytes of another.
const PLAIN: usize = 42;

/// The shortest way through what most frames are: untagged, IPv4 without options or fragments, UDP or TCP. All else is left to
/// [`super::ethernet::parse`], which comes to the same for these; nothing is written then. Says whether it was such a frame.
#[inline(always)]
pub(super) fn parse_plain(bytes: &[u8], key: &mut Key, into: &mut Layers) -> bool {
    let Some(header) = bytes.first_chunk::<PLAIN>() else { return false };
    let (first, second) = (be!(u64, header, 14), be!(u64, header, 22));
    let (total, proto) = ((first >> 32 & 0xffff) as usize, (second >> 48) as u8);
    let plain = be!(u16, header, 12) == eth_type::IPV4
        && first >> 56 == 0x45
        && first & 0x3fff == 0
        && total >= PLAIN - 14
        && matches!(proto, ip_proto::UDP | ip_proto::TCP);
    if !plain {
        return false;
    }
    key.0[0] = be!(u64, header, 0) & !0xffff | u64::from(eth_type::IPV4);
    key.0[1] = be!(u64, header, 6) & !0xffff;
    key.0[2] = key.0[2] & !0xffff_ffff | u64::from(proto) << 24 | (first >> 48 & 0xff) << 16;
    key.0[3] = second << 32 | u64::from(be!(u32, header, 30));
    let layers = Layers { l3: 14, ip: 14, ..Layers::default() };
    if proto == ip_proto::UDP {
        key.0[4] = u64::from(be!(u32, header, 34)) << 32;
        *into = Layers { l4: 34, payload: 42, ..layers };
        return true;
    }
    let packet = &bytes[..bytes.len().min(14 + total)];
    *into = transport::parse(packet, 34, proto, Family::V4, key, layers);
    true
}

#[inline]
pub(super) fn parse(bytes: &[u8], at: usize, key: &mut Key, layers: Layers) -> Layers {
    let Some(ip) = bytes.get(at..) else { return layers };
    let (Some(len), Some(header)) = (header_len(ip), chunk::<HEADER>(ip, 0)) else { return layers };
    let (first, second) = (be!(u64, header, 0), be!(u64, header, 8));
    let (tos, fragment, proto) = (first >> 48 & 0xff, first & 0x3fff, second >> 48 & 0xff);
    let frag = fragment_bits(fragment & 0x1fff != 0, fragment != 0);
    key.0[2] = key.0[2] & !0xffff_ffff | proto << 24 | tos << 16 | frag << 8;
    key.0[3] = second << 32 | u64::from(be!(u32, header, 16));
    let layers = Layers { ip: at as u16, ..layers };
    let l4 = at + len;
    if fragment & 0x1fff != 0 {
        return Layers { payload: l4 as u16, ..layers };
    }
    let total = (first >> 32 & 0xffff) as usize;
    let packet = &bytes[..bytes.len().min(at + total)];
    transport::parse(packet, l4, proto as u8, Family::V4, key, layers)
}

/// [`crate::Field::IpFrag`]: bit 0 says fragment, bit 1 not the first one.
#[inline(always)]
pub(super) fn fragment_bits(later: bool, any: bool) -> u64 {
    u64::from(later) << 1 | u64::from(any)
}
