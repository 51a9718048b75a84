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

/// What a flow came to over all its moves: never less than it was told before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// Of stays on a rung that ended.
    ended: Counts,
    /// The last reading of this stay.
    reading: Counts,
}

impl Told {
    /// Takes a reading of this stay in, and returns what came since the last one. A reading that went back counts for nothing.
    pub fn read(&mut self, reading: Counts) -> Counts {
        let more = reading - self.reading;
        self.reading += more;
        more
    }

    /// Ends the stay; the next one counts from 0.
    pub fn end(&mut self) {
        self.ended += std::mem::take(&mut self.reading);
    }

    /// All of it.
    pub fn sum(&self) -> Counts {
        let mut sum = self.ended;
        sum += self.reading;
        sum
    }
}
