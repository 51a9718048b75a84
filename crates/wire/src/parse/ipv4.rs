//! IPv4 (RFC 791): options, fragments.

use super::transport::{self, Family};
use super::{be, chunk};
use crate::{Key, Layers};

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
