//! A rate that several workers share, without a lock.
//!
//! A token bucket seen as a line of time: a rate of R hands out each nanosecond once, and a nanosecond is worth R/10⁹ bits. What was not
//! taken within [`DEPTH`] is lost, which is the bucket's depth. A worker takes some nanoseconds at a time (a lease) and spends them frame by
//! frame on its own; it counts in 10⁻⁹ bit, so nothing is ever rounded.
//!
//! A frame may leave while there is any credit; what it costs beyond that is taken from the time ahead, in which nobody sends. So no frame
//! is too long for a bucket, and a worker may sleep until that time has passed. Bound: within any time T, W workers send at most R × (T + `DEPTH` + W × `LEASE`) and one frame each.

use flow::{BucketShape, Nanos, RateUnit, SharedBucket, Taken, UNITS, Word, ahead, units};
use std::sync::Arc;

/// How long a rate that nobody uses can be saved up. Chosen: a worker that comes late by less (the kernel's timers, a long round) loses
/// nothing of the rate, and at 10 Mbit/s the burst is still only eight full frames.
pub(crate) const DEPTH: u64 = 10_000_000;

/// What a worker takes beyond its need, in nanoseconds: one atomic operation for about 400 frames of 1500 bytes at 100 Gbit/s. A
/// worker that falls silent keeps this much from the others, once.
const LEASE: u64 = 50_000;

/// [`DEPTH`] in units of words.
const BURST: u64 = DEPTH * UNITS;

/// 10⁻⁹ bit in a byte.
const BYTE: i64 = 8_000_000_000;

/// When all of [`DEPTH`] is there again: up to [`DEPTH`] before that the time was handed out. Rungs past the worker take from the same word.
#[derive(Default)]
pub(crate) struct Timeline(Word);

impl Timeline {
    /// Takes up to `wanted` nanoseconds that lie before `now` and were not handed out yet.
    fn lease(&self, now: Nanos, wanted: u64) -> u64 {
        let (now, mut taken) = (units(now), 0);
        let take = |full_at: u64| {
            let ahead = ahead(full_at, now, BURST).unwrap_or(0);
            taken = (BURST.saturating_sub(ahead) / UNITS).min(wanted);
            (taken > 0).then_some(now.wrapping_add(ahead + taken * UNITS))
        };
        // The closure runs again after another worker's change, so `taken` belongs to the change that succeeded.
        let Ok(took) = self.0.update(take) else { return 0 };
        note_idle(&took, now);
        taken
    }

    /// Takes `wanted` nanoseconds though they may lie ahead: others wait until they have passed.
    fn overdraw(&self, now: Nanos, wanted: u64) {
        let now = units(now);
        let ahead = |full_at| ahead(full_at, now, BURST).unwrap_or(0);
        let after = |full_at| Some(now.wrapping_add(ahead(full_at) + wanted * UNITS));
        // The closure never refuses.
        if let Ok(took) = self.0.update(after) {
            note_idle(&took, now);
        }
    }

    /// When the next nanosecond can be had, if nobody else takes it.
    fn ready(&self, now: Nanos) -> Nanos {
        let ahead = ahead(self.0.load(), units(now), BURST).unwrap_or(0);
        Nanos((now.0 + ahead.div_ceil(UNITS) + 1).saturating_sub(DEPTH))
    }

    /// Where rungs take from it at this rate; `find` finds a place if it has none.
    pub(crate) fn shared(
        &self,
        rate: api::BitRate,
        find: &mut dyn FnMut(&BucketShape) -> Option<Arc<dyn SharedBucket>>,
    ) -> Option<u32> {
        let shape = BucketShape { burst: BURST, rate: rate.get(), unit: RateUnit::Bits };
        self.0.shared(&shape, find).map(SharedBucket::place)
    }

    /// From here on workers take from it where rungs do.
    pub(crate) fn share(&self) {
        self.0.share();
    }
}

/// Notes for how long the bucket had been full: what was handed out is what the word moved by beyond that.
fn note_idle(took: &Taken<'_>, now: u64) {
    if ahead(took.before, now, BURST).is_none() {
        took.note_idle(now.wrapping_sub(took.before));
    }
}

/// A worker's part of a rate.
pub(crate) struct Credit {
    /// Bits per second = 10⁻⁹ bit per nanosecond.
    rate: i64,
    /// What may be spent, in 10⁻⁹ bit; below zero by less than a nanosecond's worth.
    left: i64,
}

impl Credit {
    pub(crate) fn new(rate: api::BitRate) -> Self {
        Self { rate: rate.get() as i64, left: 0 }
    }

    /// Whether a frame may leave now.
    #[inline]
    pub(crate) fn is_open(&mut self, line: &Timeline, now: Nanos) -> bool {
        if self.left <= 0 {
            self.left += line.lease(now, LEASE) as i64 * self.rate;
        }
        self.left > 0
    }

    /// A frame of so many bytes leaves, whether or not there is credit. What is missing is taken from the time ahead, so that everybody
    /// waits until it has passed; nothing is left over then, for that would open the rate again.
    #[inline]
    pub(crate) fn spend(&mut self, bytes: u64, line: &Timeline, now: Nanos) {
        self.left -= bytes as i64 * BYTE;
        if self.left < 0 {
            let debt = -self.left / self.rate;
            line.overdraw(now, debt as u64);
            self.left += debt * self.rate;
        }
    }

    /// When it opens, if no other worker takes from the line.
    pub(crate) fn ready(&self, line: &Timeline, now: Nanos) -> Nanos {
        if self.left > 0 { now } else { line.ready(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::BitRate;
    use proptest::prelude::*;

    const START: u64 = 1_000_000_000;

    fn credit(rate: u64) -> Credit {
        Credit::new(BitRate::new(rate).unwrap())
    }

    /// Bytes that leave within `end` nanoseconds when there is always a frame and the clock goes by `step`.
    fn sent(rate: u64, bytes: u64, end: u64, step: u64) -> u64 {
        let (line, mut credit) = (Timeline::default(), credit(rate));
        let mut sent = 0;
        for now in (START..START + end).step_by(step as usize) {
            while credit.is_open(&line, Nanos(now)) {
                credit.spend(bytes, &line, Nanos(now));
                sent += bytes;
            }
        }
        sent
    }

    proptest! {
        #[test]
        fn in_the_long_run_exactly_the_rate_leaves(
            rate in 10_000u64..400_000_000_000, bytes in 60u64..70_000, step in 1_000u64..DEPTH,
        ) {
            let end = (200 * bytes * BYTE as u64 / rate).clamp(50 * DEPTH, 5_000_000_000);
            prop_assume!(u128::from(rate) * u128::from(end) / u128::from(bytes * 8) < 200_000_000_000_000);
            let steps = end.div_ceil(step);
            let frames = rate / 8 * (end / 1_000_000) / 1000 / bytes;
            prop_assume!(frames < 200_000 && steps < 500_000);
            let sent = sent(rate, bytes, end, step);
            let during = |nanos: u64| (u128::from(rate) * u128::from(nanos) / 8_000_000_000) as u64;
            prop_assert!(sent <= during(end + DEPTH) + bytes);
            prop_assert!(sent + bytes >= during((steps - 1) * step));
        }
    }

    #[test]
    fn two_workers_share_one_rate_and_keep_no_more_than_a_lease() {
        let line = Timeline::default();
        let (mut one, mut other) = (credit(80_000_000), credit(80_000_000));
        let mut sent = [0u64; 2];
        for now in (START..START + 1_000_000_000).step_by(100_000) {
            for (at, credit) in [&mut one, &mut other].into_iter().enumerate() {
                while credit.is_open(&line, Nanos(now)) {
                    credit.spend(1000, &line, Nanos(now));
                    sent[at] += 1000;
                }
            }
        }
        let sum = sent[0] + sent[1];
        assert!((10_000_000 - 2000..=10_100_000 + 2000).contains(&sum), "{sent:?}");
    }

    #[test]
    fn an_overdraft_is_paid_back_before_anyone_else_sends() {
        let line = Timeline::default();
        let (mut prior, mut rest) = (credit(8_000_000), credit(8_000_000));
        while rest.is_open(&line, Nanos(START)) {
            rest.spend(1000, &line, Nanos(START));
        }
        prior.spend(5000, &line, Nanos(START));
        let ready = rest.ready(&line, Nanos(START)).0;
        assert!(!rest.is_open(&line, Nanos(ready - 1)) && rest.is_open(&line, Nanos(ready)));
        assert!((5_000_000..6_100_000).contains(&(ready - START)), "{ready}");
    }

    #[test]
    fn who_sleeps_until_a_long_debt_is_paid_loses_nothing_of_the_rate() {
        // A 64 KiB segment at 1 Mbit/s takes half a second, fifty times what a bucket saves up.
        let (line, mut credit) = (Timeline::default(), credit(1_000_000));
        let (mut now, mut sent) = (START, 0);
        while now < START + 100_000_000_000 {
            assert!(credit.is_open(&line, Nanos(now)));
            credit.spend(65_000, &line, Nanos(now));
            sent += 65_000;
            now = credit.ready(&line, Nanos(now)).0;
        }
        assert!((12_375_000..12_625_000).contains(&sent), "{sent}");
    }
}
