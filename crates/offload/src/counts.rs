//! What a flow's frames came to on one rung.

use flow::Nanos;
use std::ops::{AddAssign, Sub};

/// Frames of one flow that one rung took, since it was installed there.
///
/// A large segment is one frame of its whole length, as it is on the worker. Bytes are those of the frame as it came in, with its
/// Ethernet header and tags, without FCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames that came, limited ones included.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of those, frames that a limit refused.
    pub limited: u64,
    /// Their bytes.
    pub limited_bytes: u64,
    /// When the last one came, on the monotonic clock; 0 if none did. May be a tick of the kernel's early (4 ms at most).
    pub used: Nanos,
}

impl Sub for Counts {
    type Output = Self;

    /// What came between an earlier reading and this one.
    fn sub(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            bytes: self.bytes.saturating_sub(before.bytes),
            limited: self.limited.saturating_sub(before.limited),
            limited_bytes: self.limited_bytes.saturating_sub(before.limited_bytes),
            used: self.used,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.frames += more.frames;
        self.bytes += more.bytes;
        self.limited += more.limited;
        self.limited_bytes += more.limited_bytes;
        self.used = self.used.max(more.used);
    }
}
