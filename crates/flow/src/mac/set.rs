//! Seven entries of the learning table under one sequence lock, on two cache lines: keys on one, values on the other.

use crate::action::PortNo;
use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Places of a set: with the sequence number, keys fill a cache line.
pub(super) const PLACES: usize = 7;

/// No key: keys are below 2^60.
const FREE: u64 = u64::MAX;

/// How often a reader looks again before it takes the set for busy. Chosen: a writer stores two words.
const ATTEMPTS: usize = 4;

/// A set. `sequence` is odd while a writer is at work.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Set {
    sequence: AtomicU64,
    keys: [AtomicU64; PLACES],
    /// Port in the high half, second of the last frame in the low half.
    values: [AtomicU64; PLACES],
}

/// What a look into a set gave.
pub(super) enum Found {
    /// The key is there.
    At { at: usize, value: u64 },
    /// It is not.
    Nowhere,
    /// A writer was at work all the time.
    Busy,
}

/// The port of a value.
pub(super) fn port(value: u64) -> PortNo {
    (value >> 32) as PortNo
}

/// Seconds since a value's last frame; 0 if another worker's clock is ahead.
pub(super) fn age(value: u64, now_s: u32) -> u32 {
    now_s.saturating_sub(value as u32)
}

fn value(port: PortNo, now_s: u32) -> u64 {
    u64::from(port) << 32 | u64::from(now_s)
}

impl Default for Set {
    fn default() -> Self {
        Self {
            sequence: AtomicU64::new(0),
            keys: std::array::from_fn(|_| AtomicU64::new(FREE)),
            values: Default::default(),
        }
    }
}

impl Set {
    /// The value of a key that is at its own place, as nearly all are, if no writer is at work: else [`Set::find`] knows.
    #[inline]
    pub fn find_own(&self, key: u64, own: usize) -> Option<u64> {
        let before = self.sequence.load(Acquire);
        let (place, value) =
            (self.keys.get(own)?.load(Relaxed), self.values.get(own)?.load(Relaxed));
        fence(Acquire); // as in `find`
        let is_whole = !is_locked(before) && self.sequence.load(Relaxed) == before;
        (is_whole && place == key).then_some(value)
    }

    /// Looks for a key, at its own place first.
    #[inline(never)]
    pub fn find(&self, key: u64, own: usize) -> Found {
        for _attempt in 0..ATTEMPTS {
            let before = self.sequence.load(Acquire);
            let is_own = self.keys.get(own).is_some_and(|place| place.load(Relaxed) == key);
            let at = if is_own { own } else { self.position(key) };
            let value = self.values.get(at).map(|value| value.load(Relaxed));
            fence(Acquire); // the words above were read before the sequence number below
            if !is_locked(before) && self.sequence.load(Relaxed) == before {
                return value.map_or(Found::Nowhere, |value| Found::At { at, value });
            }
            spin_loop();
        }
        Found::Busy
    }

    /// Brings the words of a place into the cache: give the result to something that cannot be optimised away.
    #[inline]
    pub fn touch(&self, place: usize) -> u64 {
        let [key, value] = [&self.keys, &self.values]
            .map(|words| words.get(place).map_or(0, |word| word.load(Relaxed)));
        key ^ value
    }

    /// Where the key is, or past the last place. All keys are compared: which of them it is, is anyone's guess, and one wrong guess
    /// costs more than seven comparisons.
    #[inline(never)]
    fn position(&self, key: u64) -> usize {
        let bit = |at: usize| u32::from(self.keys[at].load(Relaxed) == key) << at;
        (0..PLACES).fold(0, |bits, at| bits | bit(at)).trailing_zeros() as usize
    }

    /// Renews an entry, without the lock: if the entry changed since it was found, so did the word and nothing
    /// happens. At worst the word is now that of another station behind the same port, which looks younger by that.
    pub fn refresh(&self, at: usize, before: u64, now_s: u32) {
        if before as u32 != now_s {
            let after = value(port(before), now_s);
            // Failing means that someone else renewed or replaced it.
            let _changed_meanwhile =
                self.values[at].compare_exchange(before, after, Relaxed, Relaxed);
        }
    }

    /// Enters a key or moves it to another port, if a place can be had; not if another writer is at work.
    #[cold]
    pub fn put(&self, key: u64, own: usize, port: PortNo, now_s: u32, ageing_s: u32) {
        if !self.try_lock() {
            return;
        }
        if let Some(at) = self.place_for(key, own, port, now_s, ageing_s) {
            self.values[at].store(value(port, now_s), Relaxed);
            self.keys[at].store(key, Relaxed);
        }
        self.unlock();
    }

    /// Frees the places whose value `which` names. Waits for writers, which never wait.
    pub fn forget(&self, which: impl Fn(u64) -> bool) {
        while !self.try_lock() {
            spin_loop();
        }
        for (key, value) in self.keys.iter().zip(&self.values) {
            if which(value.load(Relaxed)) {
                key.store(FREE, Relaxed);
            }
        }
        self.unlock();
    }

    /// The entries: keys and values. Waits for writers, so for the control thread.
    pub fn entries(&self) -> Vec<(u64, u64)> {
        loop {
            let before = self.sequence.load(Acquire);
            let words = self
                .keys
                .iter()
                .zip(&self.values)
                .map(|(key, value)| (key.load(Relaxed), value.load(Relaxed)));
            let entries = words.filter(|&(key, _)| key != FREE).collect();
            fence(Acquire);
            if !is_locked(before) && self.sequence.load(Relaxed) == before {
                return entries;
            }
            spin_loop();
        }
    }

    /// Where it is, its own place or another one that is free, an aged one, or the oldest of the fullest port's, if that port can spare it.
    fn place_for(
        &self,
        key: u64,
        own: usize,
        newcomer: PortNo,
        now_s: u32,
        ageing_s: u32,
    ) -> Option<usize> {
        let keys: [u64; PLACES] = std::array::from_fn(|at| self.keys[at].load(Relaxed));
        let values: [u64; PLACES] = std::array::from_fn(|at| self.values[at].load(Relaxed));
        let known = keys.iter().position(|&other| other == key);
        let own = || (keys.get(own) == Some(&FREE)).then_some(own);
        let free = || keys.iter().position(|&other| other == FREE);
        let aged = || values.iter().position(|&value| age(value, now_s) > ageing_s);
        known.or_else(own).or_else(free).or_else(aged).or_else(|| spare(&values, newcomer, now_s))
    }

    /// Takes the lock; false when another has it.
    fn try_lock(&self) -> bool {
        let before = self.sequence.load(Relaxed);
        let taken = !is_locked(before)
            && self.sequence.compare_exchange(before, before + 1, Acquire, Relaxed).is_ok();
        fence(Release); // a reader that sees a word stored from here on sees an odd sequence number after its fence
        taken
    }

    fn unlock(&self) {
        let locked = self.sequence.load(Relaxed);
        self.sequence.store(locked + 1, Release);
    }
}

/// Whether a writer was at work when the sequence number was read.
fn is_locked(sequence: u64) -> bool {
    sequence & 1 == 1
}

/// In a full set, the oldest entry of the port that holds most; only if that port still holds no less than `newcomer`
/// afterwards, or is `newcomer`.
fn spare(values: &[u64; PLACES], newcomer: PortNo, now_s: u32) -> Option<usize> {
    let held = |by: PortNo| values.iter().filter(|&&value| port(value) == by).count();
    let oldest_of_fullest = |&at: &usize| (held(port(values[at])), age(values[at], now_s));
    let at = (0..PLACES).max_by_key(oldest_of_fullest)?;
    let fullest = port(values[at]);
    if held(fullest) >= held(newcomer) + 2 {
        return Some(at);
    }
    (0..PLACES).filter(|&at| port(values[at]) == newcomer).max_by_key(|&at| age(values[at], now_s))
}
