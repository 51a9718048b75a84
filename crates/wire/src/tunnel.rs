//! GRE and VXLAN headers as values, and what a tunnel's ends do to the frame inside. They are not part of the flow key; tunnel ports read
//! and write them.

mod ds;
mod entropy;
mod outer;

pub use ds::{Dscp, Ecn, decapsulate_ds, outer_ds, outer_dscp};
pub use entropy::{entropy, entropy_of};
pub use outer::{Datagram, Outer};

use crate::parse::{chunk, parse_ethernet};
use crate::{Key, Layers};

/// UDP port of VXLAN (RFC 7348 §5).
pub const VXLAN_PORT: u16 = 4789;

/// A VXLAN header (RFC 7348 §5): flags `0x08`, 24 reserved bits, VNI 24, 8 reserved bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vxlan {
    /// VXLAN network identifier, 24 bits.
    pub vni: u32,
}

impl Vxlan {
    /// Bytes of the header.
    pub const LEN: usize = 8;

    /// The header at the beginning of `bytes`; `None` when truncated or without a valid VNI. Reserved bits are ignored, as §5 asks.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; Self::LEN] = chunk(bytes, 0)?;
        let has_vni = header[0] & 0x08 != 0;
        has_vni.then(|| Self { vni: u32::from_be_bytes([0, header[4], header[5], header[6]]) })
    }

    /// The header's bytes; bits of the VNI above 24 are cut off.
    pub fn emit(self) -> [u8; Self::LEN] {
        let [_, high, middle, low] = self.vni.to_be_bytes();
        [0x08, 0, 0, 0, high, middle, low, 0]
    }
}

/// Where the IP header of an Ethernet frame is, behind whatever tags.
pub(crate) fn network(head: &[u8]) -> Option<usize> {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    parse_ethernet(head, &mut key, &mut layers);
    (layers.ip != 0).then_some(usize::from(layers.ip))
}

/// A GRE header (RFC 2784, RFC 2890): flags and version 16, protocol 16, then checksum, key and sequence number if present.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gre {
    /// Ethernet type of the payload; 0x6558 is an Ethernet frame.
    pub protocol: u16,
    /// The checksum over header and payload, as it stands on the wire: neither verified nor computed here.
    pub checksum: Option<u16>,
    /// Tunnel key.
    pub key: Option<u32>,
    /// Sequence number.
    pub sequence: Option<u32>,
}

const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;

impl Gre {
    /// Most bytes of a header.
    pub const MAX_LEN: usize = 16;

    /// The header at the beginning of `bytes`, and its length; `None` when truncated, of another version, or source-routed (RFC 2784 §2.3).
    pub fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let flags = u16::from_be_bytes(*chunk(bytes, 0)?);
        // Bits 1 and 4, 5 (routing and recursion of RFC 1701) and the version must be 0; bits 6 to 12 are ignored.
        if flags & 0x4c07 != 0 {
            return None;
        }
        let mut at = 4;
        let mut word = |flag| {
            if flags & flag == 0 {
                return Some(None);
            }
            let word = chunk(bytes, at).map(|word| u32::from_be_bytes(*word));
            at += 4;
            word.map(Some)
        };
        let checksum = word(CHECKSUM)?.map(|word| (word >> 16) as u16);
        let (key, sequence) = (word(KEY)?, word(SEQUENCE)?);
        let protocol = u16::from_be_bytes(*chunk(bytes, 2)?);
        Some((Self { protocol, checksum, key, sequence }, at))
    }

    /// Bytes of the header.
    pub fn len(&self) -> usize {
        4 + 4
            * (usize::from(self.checksum.is_some())
                + usize::from(self.key.is_some())
                + usize::from(self.sequence.is_some()))
    }

    /// Never: a header has at least four bytes.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes the header to the beginning of `out` and returns its length, or `None` if it does not fit.
    pub fn emit(&self, out: &mut [u8]) -> Option<usize> {
        let len = self.len();
        let out = out.get_mut(..len)?;
        let flag = |present, flag| if present { flag } else { 0 };
        let flags = flag(self.checksum.is_some(), CHECKSUM)
            | flag(self.key.is_some(), KEY)
            | flag(self.sequence.is_some(), SEQUENCE);
        let optional = [self.checksum.map(|sum| u32::from(sum) << 16), self.key, self.sequence];
        let words = std::iter::once(u32::from(flags) << 16 | u32::from(self.protocol))
            .chain(optional.into_iter().flatten());
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

    fn gre() -> impl Strategy<Value = Gre> {
        (any::<u16>(), any::<Option<u16>>(), any::<Option<u32>>(), any::<Option<u32>>()).prop_map(
            |(protocol, checksum, key, sequence)| Gre { protocol, checksum, key, sequence },
        )
    }

    proptest! {
        #[test]
        fn a_gre_header_emitted_is_the_one_parsed(header in gre()) {
            let mut out = [0xff; Gre::MAX_LEN];
            let len = header.emit(&mut out).unwrap();
            prop_assert_eq!(Gre::parse(&out), Some((header, len)));
            prop_assert_eq!(Gre::parse(&out[..len - 1]), None);
            prop_assert_eq!(header.emit(&mut out[..len - 1]), None);
        }

        #[test]
        fn a_vxlan_header_emitted_is_the_one_parsed(vni in 0u32..1 << 24) {
            prop_assert_eq!(Vxlan::parse(&Vxlan { vni }.emit()), Some(Vxlan { vni }));
        }
    }

    #[test]
    fn gre_of_another_version_or_with_source_routes_is_refused() {
        assert_eq!(Gre::parse(&[0x00, 0x01, 0x88, 0x0b]), None);
        assert_eq!(Gre::parse(&[0x40, 0x00, 0x08, 0x00, 0, 0, 0, 0]), None);
        assert_eq!(Gre::parse(&[0x00, 0x00, 0x08, 0x00]).map(|(_, len)| len), Some(4));
    }

    #[test]
    fn vxlan_without_a_valid_vni_is_refused() {
        assert_eq!(Vxlan::parse(&[0, 0, 0, 0, 0, 0, 7, 0]), None);
        assert_eq!(Vxlan::parse(&[8, 0, 0, 0, 0, 0, 7]), None);
    }
}
