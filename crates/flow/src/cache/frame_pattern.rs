//! Patterns of frames that lately went one way: the next ones most often have the same, and need no search then.

use super::port_memo::{PLACES, Place};
use crate::action::PortNo;
use crate::store::RecordId;
use wire::Pattern;

/// A pattern of bytes, and what becomes of frames that have it.
pub(crate) struct FramePattern {
    pub(crate) pattern: Pattern,
    /// The entry that each finds.
    pub(crate) entry: RecordId,
    /// The port by which each leaves as it is.
    pub(crate) port: PortNo,
}

/// The pattern of one port at one version, which is never 0.
#[derive(Default)]
struct Slot {
    place: Place,
    version: u64,
    pattern: Option<FramePattern>,
}

/// Patterns by port.
pub(crate) struct FramePatterns(Box<[Slot]>);

impl Default for FramePatterns {
    fn default() -> Self {
        Self((0..PLACES).map(|_| Slot::default()).collect())
    }
}

impl FramePatterns {
    /// The pattern of a port whose tables have this version.
    #[inline]
    pub(crate) fn get(&self, place: Place, version: u64) -> Option<&FramePattern> {
        let slot = &self.0[place.slot()];
        slot.pattern.as_ref().filter(|_| (slot.version, slot.place) == (version, place))
    }

    /// Keeps a pattern in the place of another.
    pub(crate) fn set(&mut self, place: Place, version: u64, pattern: FramePattern) {
        let slot = &mut self.0[place.slot()];
        (slot.place, slot.version, slot.pattern) = (place, version, Some(pattern));
    }
}
