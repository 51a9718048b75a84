//! What lies between Ethernet and IP: MPLS shims (RFC 3032) and the PBB I-TAG (IEEE 802.1Q §9.7).

use super::{be, chunk, ipv4, ipv6};
use crate::{Key, Layers};

/// Bytes of the I-TAG's control information and the customer addresses after it.
pub(crate) const ITAG: usize = 16;

/// OpenFlow 1.3.5 looks at the first shim only and not below the stack. The stack's end and an IP header after it are found for TTL copies.
pub(super) fn parse_mpls(bytes: &[u8], l3: usize, key: &mut Key, mut layers: Layers) -> Layers {
    let mut at = l3;
    while let Some(shim) = chunk::<4>(bytes, at) {
        let shim = be!(u32, shim, 0);
        if layers.labels == 0 {
            key.0[15] = u64::from(shim >> 8) << 40;
        }
        layers.labels += 1;
        at += 4;
        if shim & 0x100 != 0 {
            layers.ip = ip_at(bytes, at).unwrap_or(0);
            break;
        }
    }
    layers
}

/// `at`, if a plausible IP header begins there. MPLS does not say what it carries; the version nibble is what everyone goes by.
fn ip_at(bytes: &[u8], at: usize) -> Option<u16> {
    let ip = bytes.get(at..)?;
    let plausible = match ip.first()? >> 4 {
        4 => ipv4::header_len(ip).is_some(),
        6 => ip.len() >= ipv6::HEADER,
        _ => false,
    };
    plausible.then_some(at as u16)
}

/// The fields of the I-TAG. The customer's frame inside is not looked at (OpenFlow 1.3.5 §7.2.3.8).
pub(super) fn parse_pbb(bytes: &[u8], l3: usize, key: &mut Key, layers: Layers) -> Layers {
    if let Some(tag) = chunk::<ITAG>(bytes, l3) {
        let control = be!(u32, tag, 0);
        key.0[15] = u64::from(control & 0xff_ffff) << 16 | u64::from(control >> 27 & 1) << 15;
    }
    layers
}
