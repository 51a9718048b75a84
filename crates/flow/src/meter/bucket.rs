//! A band's token bucket.
//!
//! A packet conforms if the bucket's [`Word`] is at most one burst ahead, and pushes it ahead by what the packet takes at the band's
//! rate. So the last packet of a burst may overdraw the bucket, which keeps large frames from starving at small
//! bursts and is paid back before the next one.

use super::word::{BucketShape, RateUnit, SharedBucket, UNITS, Word, ahead, units};
use super::{Band, MeterConfig, MeterUnit};
use crate::tally::Counted;
use crate::time::Nanos;
use std::sync::Arc;

/// Units of a second.
const SECOND: u64 = 1_000_000_000 * UNITS;

/// The burst of a band that names none, as a share of a second of its rate. Chosen: several round trips in a data
/// centre, so that TCP gets through; a tenth of the default of Open vSwitch.
const DEFAULT_BURST: u64 = SECOND / 10;

/// Longest burst: far below the half of the range that differences need.
const MAX_BURST: u64 = 30 * 24 * 3600 * SECOND;

/// One band's bucket.
#[derive(Debug)]
pub(super) struct TokenBucket {
    word: Word,
    /// How far ahead that may be for a packet that conforms.
    burst: u64,
    unit: MeterUnit,
    rate: u64,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(config: &MeterConfig, band: &Band, now: Nanos) -> Self {
        let rate = u64::from(band.rate);
        let burst = match (config.burst, band.burst) {
            (false, _) | (_, 0) => DEFAULT_BURST,
            // A burst of n is what the rate gives in n / rate seconds, in either unit.
            (true, burst) => (u128::from(burst) * u128::from(SECOND) / u128::from(rate))
                .min(MAX_BURST.into()) as u64,
        };
        Self { word: Word::new(units(now)), burst, unit: config.unit, rate }
    }

    /// Takes one packet's tokens; false, and nothing taken, when it exceeds the rate.
    pub fn take(&self, bytes: u32, now: Nanos) -> bool {
        let (cost, now) = (self.cost(bytes), units(now));
        let Ok(taken) = self.word.update(|full_at| self.after(full_at, cost, now)) else {
            return false;
        };
        if ahead(taken.before, now, self.burst).is_none() {
            taken.note_idle(now.wrapping_sub(taken.before));
        }
        true
    }

    /// Whether a packet would get its tokens after packets of these lengths had asked for theirs now. Takes nothing.
    pub fn would_take(&self, before: impl Iterator<Item = u32>, bytes: u32, now: Nanos) -> bool {
        let now = units(now);
        let after = |word, bytes| self.after(word, self.cost(bytes), now);
        let word = before.fold(self.word.load(), |word, bytes| after(word, bytes).unwrap_or(word));
        after(word, bytes).is_some()
    }

    /// The word when a packet of that cost has passed; `None` if it exceeds the rate.
    fn after(&self, full_at: u64, cost: u64, now: u64) -> Option<u64> {
        let ahead = ahead(full_at, now, self.burst).unwrap_or(0);
        (ahead <= self.burst).then(|| now.wrapping_add(ahead + cost))
    }

    /// Where rungs may take from it: at the place that `find` finds. One thread asks.
    pub fn shared(
        &self,
        find: impl FnOnce(&BucketShape) -> Option<Arc<dyn SharedBucket>>,
    ) -> Option<&dyn SharedBucket> {
        let unit = match self.unit {
            MeterUnit::Kbps => RateUnit::Kilobits,
            MeterUnit::Pktps => RateUnit::Frames,
        };
        self.word.shared(&BucketShape { burst: self.burst, rate: self.rate, unit }, find)
    }

    /// Moves the word there. One thread does.
    pub fn share(&self) {
        self.word.share();
    }

    /// What rungs refused.
    pub fn refused(&self) -> Counted {
        self.word.refused()
    }

    /// Time that the rate needs to give what the packet takes.
    fn cost(&self, bytes: u32) -> u64 {
        match self.unit {
            MeterUnit::Kbps => u64::from(bytes) * 8 * (SECOND / 1000) / self.rate,
            MeterUnit::Pktps => SECOND / self.rate,
        }
    }
}
