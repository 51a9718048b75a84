//! Time as the pipeline sees it: handed in, monotonic, never read here.

/// Nanoseconds on a monotonic clock of the caller's choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

/// Nanoseconds per second.
const SECOND: u64 = 1_000_000_000;

impl Nanos {
    /// `seconds` after this moment.
    #[must_use]
    pub const fn plus_seconds(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(SECOND)))
    }

    /// Nanoseconds from `earlier` to this moment; 0 if it is not earlier.
    pub const fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
