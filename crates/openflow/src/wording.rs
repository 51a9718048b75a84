//! What a sender said of an entry that neither its match nor its priority holds, kept to be told back to the sender's version.
//!
//! Only OpenFlow 1.0 says such things (1.0.0 §5.2.3, §3.4). They change no packet:
//!
//! | bits | what |
//! |---|---|
//! | 0..16 | the priority that was sent, if bit 16 is set: in force is the highest, for the entry has no wildcard |
//! | 17, 18..21 | the match names a priority of untagged frames, and which |
//! | 21..26, 26..31 | how far the ignored bits of `nw_src` and `nw_dst` are beyond 32, which are all there are |

const SAID_PRIORITY: u32 = 1 << 16;
const UNTAGGED_PCP: u32 = 1 << 17;
const PCP_SHIFT: u32 = 18;
const SRC_SHIFT: u32 = 21;
const DST_SHIFT: u32 = 26;
/// Ignored bits beyond 32 that six bits can say.
const BEYOND: u32 = 31;

/// Parts of a flow-mod that change no packet. All bits 0: there are none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Wording(u32);

impl Wording {
    /// Returns the wording of these bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the bits, in which it can be kept.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Adds the priority that was sent.
    pub(crate) const fn with_priority(self, priority: u16) -> Self {
        Self(self.0 & !0xffff | SAID_PRIORITY | priority as u32)
    }

    /// Returns the priority that was sent, if another is in force.
    pub(crate) const fn priority(self) -> Option<u16> {
        if self.0 & SAID_PRIORITY != 0 { Some(self.0 as u16) } else { None }
    }

    /// Adds a priority of untagged frames, of which 3 bits count.
    pub(crate) const fn with_untagged_pcp(self, pcp: u8) -> Self {
        Self(self.0 & !(7 << PCP_SHIFT) | UNTAGGED_PCP | (pcp as u32 & 7) << PCP_SHIFT)
    }

    /// Returns the priority of untagged frames.
    pub(crate) const fn untagged_pcp(self) -> Option<u8> {
        if self.0 & UNTAGGED_PCP != 0 { Some((self.0 >> PCP_SHIFT & 7) as u8) } else { None }
    }

    /// Adds the counts of ignored address bits; up to 32 they stand in the match.
    pub(crate) const fn with_ignored(self, src: u32, dst: u32) -> Self {
        let (src, dst) = (src.saturating_sub(32) & BEYOND, dst.saturating_sub(32) & BEYOND);
        Self(self.0 | src << SRC_SHIFT | dst << DST_SHIFT)
    }

    /// Returns the counts beyond 32, of source and destination.
    pub(crate) const fn ignored_beyond(self) -> (u32, u32) {
        (self.0 >> SRC_SHIFT & BEYOND, self.0 >> DST_SHIFT & BEYOND)
    }
}
