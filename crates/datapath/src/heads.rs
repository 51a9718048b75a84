//! Heads of the frames in hand, and what is known of each.
//!
//! Heads 0..64 are the batch's; above them lie spare ones, used for copies: when an output is followed by more edits, and when
//! one frame goes to several switches. Spare heads are a stack: `top` rises within a pass and falls back when everything
//! above a mark has left. The memory is touched only as far as it is used.

use crate::pending::HeadAt;
use port::BATCH;
use wire::{Gso, Head, Key, Layers, Offload};

/// Spare heads: 64 for each of 16 vlinks in a row that all go on to several switches, and 96 for copies on the way.
pub(crate) const SPARE: usize = 16 * BATCH + 96;

/// All heads.
pub(crate) const HEADS: usize = BATCH + SPARE;

const _: () = assert!(HEADS < u16::MAX as usize); // the highest names no head

/// What goes with a head to its destinations.
#[derive(Clone, Copy, Default)]
pub(crate) struct Carried {
    pub(crate) offload: Offload,
    pub(crate) frame_len: u32,
    /// Longest packet after the Ethernet header and tags that will leave: what the MTU limits.
    pub(crate) packet_len: u32,
    /// Places that will still read this head.
    pub(crate) users: u16,
    /// Frame of the batch that it came from: whose body it has.
    pub(crate) origin: u8,
}

/// What a frame that crosses a vlink needs besides, so that it need not be parsed again.
#[derive(Clone, Copy, Default)]
pub(crate) struct Parsed {
    pub(crate) key: Key,
    pub(crate) layers: Layers,
}

/// Bytes after the Ethernet header and tags of the longest frame on the wire.
///
/// For a large frame that is one segment: the headers after the tags, and `gso_size`.
#[inline]
pub(crate) fn packet_len(layers: &Layers, offload: &Offload, frame_len: u32) -> u32 {
    let l3 = u32::from(layers.l3.max(14));
    match offload.gso {
        Gso::None => frame_len.saturating_sub(l3),
        _ => u32::from(layers.payload).saturating_sub(l3) + u32::from(offload.gso_size),
    }
}

/// The spare heads and the notes on all heads.
pub(crate) struct Heads {
    pub(crate) spare: Box<[Head]>,
    pub(crate) top: usize,
    pub(crate) carried: Box<[Carried]>,
    pub(crate) parsed: Box<[Parsed]>,
}

impl Default for Heads {
    fn default() -> Self {
        Self {
            spare: std::iter::repeat_with(Head::default).take(SPARE).collect(),
            top: 0,
            carried: vec![Carried::default(); HEADS].into(),
            parsed: vec![Parsed::default(); HEADS].into(),
        }
    }
}

/// Index of the spare head `at` names; `None` if it is one of the batch's, or none at all.
#[inline]
pub(crate) fn spare_index(at: HeadAt) -> Option<usize> {
    usize::from(at.0).checked_sub(BATCH).filter(|&index| index < SPARE)
}

/// Name of the spare head at `index`.
#[inline]
pub(crate) fn spare_at(index: usize) -> HeadAt {
    HeadAt((BATCH + index) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: Layers = Layers { l3: 18, vlans: 1, labels: 0, ip: 18, l4: 38, payload: 58 };

    #[test]
    fn the_mtu_limits_what_follows_the_tags() {
        assert_eq!(packet_len(&TCP, &Offload::default(), 1518), 1500);
        assert_eq!(packet_len(&Layers::default(), &Offload::default(), 1514), 1500);
        assert_eq!(packet_len(&TCP, &Offload::default(), 10), 0);
    }

    #[test]
    fn a_large_frame_is_as_long_as_its_segments() {
        let offload = Offload { gso: Gso::TcpV4, gso_size: 1460, ..Offload::default() };
        assert_eq!(packet_len(&TCP, &offload, 64_000), 20 + 20 + 1460);
    }
}
