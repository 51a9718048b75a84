//! A token bucket in one atomic word.
//!
//! The word is the *theoretical arrival time*: when the bucket will be full again (GCRA, ITU-T I.371 annex A). A
//! packet conforms if that is at most one burst ahead, and pushes it ahead by what the packet takes at the band's
//! rate. So the last packet of a burst may overdraw the bucket, which keeps large frames from starving at small
//! bursts and is paid back before the next one.
//!
//! Time runs in 1/1024 ns, modulo 2^64: a 64-byte frame takes 122 units at 4 Tbit/s, so rounding stays below 1 %, and
//! the word wraps every 208 days. A difference that a working bucket cannot have is an idle bucket's.
//!
//! Rungs past the worker take from the same word: it moves into their memory ([`SharedBucket`]) when the first flow leaves that passes the
//! meter, and stays there. The move loses nothing and gives nothing twice: whoever finds [`AWAY`] in the word's old place takes from the new one.

use super::{Band, MeterConfig, MeterUnit};
use crate::tally::Counted;
use crate::time::Nanos;
use std::fmt::Debug;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};

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

/// In place of a word that has moved. A bucket whose own word comes to this by chance goes on at the value before it.
const AWAY: u64 = u64::MAX;

/// What others need to know of a bucket to take from it as a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketShape {
    /// How far ahead the word may be, in 1/1024 ns.
    pub burst: u64,
    /// Kbit/s, or frames a second.
    pub rate: u64,
    /// Frames are counted, not bits.
    pub is_frames: bool,
}

/// A bucket whose word lies in the memory of rungs past the worker. Dropping it gives its place back.
pub trait SharedBucket: Debug + Send + Sync {
    /// Its place there.
    fn place(&self) -> u32;
    /// Whether rungs took from it before: flows that a dead node left do.
    fn is_live(&self) -> bool;
    /// When it is full again, in 1/1024 ns.
    fn full_at(&self) -> &AtomicU64;
    /// For how long it was full, up to when it was last taken from.
    fn idle(&self) -> &AtomicU64;
    /// What rungs refused.
    fn refused(&self) -> Counted;
}

/// One band's bucket.
#[derive(Debug)]
pub(super) struct TokenBucket {
    /// When it is full again.
    full_at: AtomicU64,
    /// How far ahead that may be for a packet that conforms.
    burst: u64,
    unit: MeterUnit,
    rate: u64,
    /// Where rungs take from it, if any does or is about to.
    shared: OnceLock<Arc<dyn SharedBucket>>,
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
        let (full_at, shared) = (AtomicU64::new(units(now)), OnceLock::new());
        Self { full_at, burst, unit: config.unit, rate, shared }
    }

    /// Takes one packet's tokens; false, and nothing taken, when it exceeds the rate.
    pub fn take(&self, bytes: u32, now: Nanos) -> bool {
        let (cost, now) = (self.cost(bytes), units(now));
        let take = |full_at| if full_at == AWAY { None } else { self.after(full_at, cost, now) };
        // Nothing is read on the strength of the word, but where it went.
        match self.full_at.fetch_update(Relaxed, Acquire, take) {
            Ok(_) => true,
            Err(AWAY) => self.take_shared(cost, now),
            Err(_) => false,
        }
    }

    /// The word when a packet of that cost has passed; `None` if it exceeds the rate.
    fn after(&self, full_at: u64, cost: u64, now: u64) -> Option<u64> {
        let ahead = if self.is_idle(full_at, now) { 0 } else { full_at.wrapping_sub(now) };
        (ahead <= self.burst).then(|| now.wrapping_add(ahead + cost))
    }

    /// Whether it has been full for a while.
    fn is_idle(&self, full_at: u64, now: u64) -> bool {
        full_at.wrapping_sub(now) > self.burst + SLACK
    }

    /// Takes from the word where rungs take from it.
    fn take_shared(&self, cost: u64, now: u64) -> bool {
        let Some(shared) = self.shared.get() else {
            let _ = self.full_at.compare_exchange(AWAY, AWAY - 1, Relaxed, Relaxed);
            return true;
        };
        let take = |full_at| self.after(full_at, cost, now);
        let Ok(full_at) = shared.full_at().fetch_update(Relaxed, Relaxed, take) else {
            return false;
        };
        if self.is_idle(full_at, now) {
            shared.idle().fetch_add(now.wrapping_sub(full_at), Relaxed);
        }
        true
    }

    /// Where rungs may take from it: at the place that `find` finds. One thread asks.
    pub fn shared(
        &self,
        find: impl FnOnce(&BucketShape) -> Option<Arc<dyn SharedBucket>>,
    ) -> Option<&dyn SharedBucket> {
        if self.shared.get().is_none() {
            let is_frames = self.unit == MeterUnit::Pktps;
            let found = find(&BucketShape { burst: self.burst, rate: self.rate, is_frames })?;
            let is_live = found.is_live();
            let _ = self.shared.set(found);
            if is_live {
                self.full_at.store(AWAY, Release);
            }
        }
        self.shared.get().map(|shared| &**shared)
    }

    /// Moves the word there. One thread does.
    pub fn share(&self) {
        let Some(shared) = self.shared.get() else { return };
        let mut full_at = self.full_at.load(Acquire);
        while full_at != AWAY {
            // Nobody takes there before it says so here.
            shared.full_at().store(full_at, Relaxed);
            match self.full_at.compare_exchange(full_at, AWAY, AcqRel, Acquire) {
                Ok(_) => return,
                Err(taken) => full_at = taken,
            }
        }
    }

    /// What rungs refused.
    pub fn refused(&self) -> Counted {
        self.shared.get().map_or_else(Counted::default, |shared| shared.refused())
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
