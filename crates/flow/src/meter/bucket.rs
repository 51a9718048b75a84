//! A token bucket in one atomic word.
//!
//! The word is the *theoretical arrival time*: when the bucket will be full again (GCRA, ITU-T I.371 annex A). A
//! packet conforms if that is at most one burst ahead, and pushes it ahead by what the packet takes at the band's
//! rate. So the last packet of a burst may overdraw the bucket, which keeps large frames from starving at small
//! bursts and is paid back before the next one.
//!
//! Time runs in 1/1024 ns, modulo 2^64: a 64-byte frame takes 122 units at 4 Tbit/s, so rounding stays below 1 %, and
//! the word wraps every 208 days. A difference that a working bucket cannot have is an idle bucket's.

use super::{Band, MeterConfig, MeterUnit};
use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Units of a nanosecond.
const UNITS: u64 = 1024;

/// Units of a second.
const SECOND: u64 = 1_000_000_000 * UNITS;

/// The burst of a band that names none, as a share of a second of its rate. Chosen: several round trips in a data
/// centre, so that TCP gets through; a tenth of the default of Open vSwitch.
const DEFAULT_BURST: u64 = SECOND / 10;

/// Longest burst: far below the half of the range that differences need.
const MAX_BURST: u64 = 30 * 24 * 3600 * SECOND;

/// More than any frame can take, and than worker's clocks can lie apart: further ahead is in fact long ago.
const SLACK: u64 = 3600 * SECOND;

/// One band's bucket.
#[derive(Debug)]
pub(super) struct TokenBucket {
    /// When it is full again.
    full_at: AtomicU64,
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
        Self { full_at: AtomicU64::new(units(now)), burst, unit: config.unit, rate }
    }

    /// Takes one packet's tokens; false, and nothing taken, when it exceeds the rate.
    pub fn take(&self, bytes: u32, now: Nanos) -> bool {
        let (cost, now) = (self.cost(bytes), units(now));
        // Nothing is read on the strength of the word but the word: relaxed is enough.
        let take = |full_at: u64| {
            let ahead = match full_at.wrapping_sub(now) {
                ahead if ahead <= self.burst + SLACK => ahead,
                _ => 0, // it has been full for a while
            };
            (ahead <= self.burst).then(|| now.wrapping_add(ahead + cost))
        };
        self.full_at.fetch_update(Relaxed, Relaxed, take).is_ok()
    }

    /// Time that the rate needs to give what the packet takes.
    fn cost(&self, bytes: u32) -> u64 {
        match self.unit {
            MeterUnit::Kbps => u64::from(bytes) * 8 * (SECOND / 1000) / self.rate,
            MeterUnit::Pktps => SECOND / self.rate,
        }
    }
}

fn units(now: Nanos) -> u64 {
    now.0.wrapping_mul(UNITS)
}
