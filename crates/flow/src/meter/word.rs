//! One atomic word that limits a rate, and where it lies.
//!
//! The word is the *theoretical arrival time*: when the bucket will be full again (GCRA, ITU-T I.371 annex A). Time runs in 1/1024 ns, modulo
//! 2^64: a 64-byte frame takes 122 units at 4 Tbit/s, so rounding stays below 1 %, and the word wraps every 208 days. A difference that a
//! working bucket cannot have is an idle bucket's.
//!
//! Rungs past the worker take from the same word: it moves into their memory ([`SharedBucket`]) when the first flow leaves that takes from it, and
//! stays there. The move loses nothing and gives nothing twice: whoever finds [`AWAY`] in the word's old place takes from the new one.

use crate::tally::Counted;
use crate::time::Nanos;
use std::fmt::Debug;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};

/// Units of a nanosecond.
pub const UNITS: u64 = 1024;

/// More than any frame can take, and than worker's clocks can lie apart: further ahead is in fact long ago.
const SLACK: u64 = 3600 * 1_000_000_000 * UNITS;

/// In place of a word that has moved. A word that comes to this by chance goes on at the value before it.
const AWAY: u64 = u64::MAX;

/// What a rate counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateUnit {
    /// 1000 bits a second.
    Kilobits,
    /// Frames a second.
    Frames,
    /// Bits a second.
    Bits,
}

/// What others need to know of a bucket to take from it as a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketShape {
    /// How far ahead the word may be, in 1/1024 ns.
    pub burst: u64,
    /// So many a second.
    pub rate: u64,
    /// Of these.
    pub unit: RateUnit,
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

/// The word.
#[derive(Debug, Default)]
pub struct Word {
    own: AtomicU64,
    /// Where rungs take from it, if any does or is about to.
    shared: OnceLock<Arc<dyn SharedBucket>>,
}

impl Word {
    /// Of a bucket that is full at that time.
    pub fn new(full_at: u64) -> Self {
        Self { own: AtomicU64::new(full_at), shared: OnceLock::new() }
    }

    /// Puts what `after` makes of it in its place.
    ///
    /// # Errors
    /// `after` made nothing of it.
    #[inline]
    pub fn update(&self, mut after: impl FnMut(u64) -> Option<u64>) -> Result<Taken<'_>, Refused> {
        // Nothing is read on the strength of the word, but where it went.
        let own = |word| if word == AWAY { None } else { after(word) };
        match self.own.fetch_update(Relaxed, Acquire, own) {
            Ok(before) => Ok(Taken { before, shared: None }),
            Err(AWAY) => self.update_shared(after),
            Err(_) => Err(Refused),
        }
    }

    fn update_shared(&self, after: impl FnMut(u64) -> Option<u64>) -> Result<Taken<'_>, Refused> {
        let shared = self.shared.get().map(|shared| &**shared);
        let word = shared.map_or(&self.own, SharedBucket::full_at);
        if shared.is_none() {
            let _ = word.compare_exchange(AWAY, AWAY - 1, Relaxed, Relaxed);
        }
        let before = word.fetch_update(Relaxed, Relaxed, after).map_err(|_| Refused)?;
        Ok(Taken { before, shared })
    }

    /// What it is.
    pub fn load(&self) -> u64 {
        match (self.own.load(Acquire), self.shared.get()) {
            (AWAY, Some(shared)) => shared.full_at().load(Relaxed),
            (own, _) => own,
        }
    }

    /// Where rungs may take from it: at the place that `find` finds. One thread asks.
    pub fn shared(
        &self,
        shape: &BucketShape,
        find: impl FnOnce(&BucketShape) -> Option<Arc<dyn SharedBucket>>,
    ) -> Option<&dyn SharedBucket> {
        if self.shared.get().is_none() {
            let found = find(shape)?;
            let is_live = found.is_live();
            let _ = self.shared.set(found);
            if is_live {
                self.own.store(AWAY, Release);
            }
        }
        self.shared.get().map(|shared| &**shared)
    }

    /// Moves it there. One thread does.
    pub fn share(&self) {
        let Some(shared) = self.shared.get() else { return };
        let mut word = self.own.load(Acquire);
        while word != AWAY {
            // Nobody takes there before it says so here.
            shared.full_at().store(word, Relaxed);
            match self.own.compare_exchange(word, AWAY, AcqRel, Acquire) {
                Ok(_) => return,
                Err(taken) => word = taken,
            }
        }
    }

    /// What rungs refused.
    pub fn refused(&self) -> Counted {
        self.shared.get().map_or_else(Counted::default, |shared| shared.refused())
    }
}

/// Something was taken.
pub struct Taken<'w> {
    /// The word before.
    pub before: u64,
    shared: Option<&'w dyn SharedBucket>,
}

impl Taken<'_> {
    /// Notes for how long the bucket had been full, where rungs take from it.
    pub fn note_idle(&self, idle: u64) {
        if let Some(shared) = self.shared {
            shared.idle().fetch_add(idle, Relaxed);
        }
    }
}

/// Nothing was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// How far a word is ahead of `now`, for a bucket of that depth; `None`: it has been full for a while.
#[inline]
pub fn ahead(full_at: u64, now: u64, burst: u64) -> Option<u64> {
    let ahead = full_at.wrapping_sub(now);
    (ahead <= burst + SLACK).then_some(ahead)
}

/// A time in units of words.
#[inline]
pub fn units(now: Nanos) -> u64 {
    now.0.wrapping_mul(UNITS)
}
