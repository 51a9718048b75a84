//! How long frames stayed: histograms that only grow, of a fixed size, written by one worker each.
//!
//! Frames of a round have one time, so a note is two additions a batch, whatever is in it. Buckets are log-linear: [`PARTS`] of each power of two, from
//! 128 ns to 1.07 s, one below and one beyond. So what is read of a bucket's middle is an eighth off at most.

use super::Count;
use api::{Latencies, Latency, LatencyBucket};

/// The powers of two where buckets begin and end. Chosen: 128 ns is less than a round takes; nothing sane waits for a second.
const FIRST: u32 = 7;
const LAST: u32 = 30;
/// Buckets of a power of two, as a power of two.
const PART_BITS: u32 = 2;
const PARTS: usize = 1 << PART_BITS;
const BUCKETS: usize = (LAST - FIRST) as usize * PARTS + 2;

/// One worker's.
pub(crate) struct Histogram {
    frames: [Count; BUCKETS],
    sum_ns: Count,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { frames: std::array::from_fn(|_| Count::default()), sum_ns: Count::default() }
    }
}

impl Histogram {
    /// So many frames stayed for so long each; only the owning worker may call this.
    #[inline]
    pub(crate) fn note(&self, ns: u64, frames: u64) {
        self.frames[bucket_of(ns)].add(frames);
        self.sum_ns.add(ns.wrapping_mul(frames));
    }
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    let power = (ns | 1).ilog2();
    match power {
        ..FIRST => 0,
        LAST.. => BUCKETS - 1,
        _ => {
            let part = (ns >> (power - PART_BITS)) as usize & (PARTS - 1);
            1 + (power - FIRST) as usize * PARTS + part
        }
    }
}

/// Nanoseconds at which a bucket begins.
fn begin_of(bucket: usize) -> u64 {
    let Some(bucket) = bucket.checked_sub(1) else { return 0 };
    let (power, part) = (FIRST + (bucket / PARTS) as u32, (bucket % PARTS) as u64);
    (1 << power) + (part << (power - PART_BITS))
}

/// What workers noted, all together.
pub(crate) fn sum<'h>(all: impl IntoIterator<Item = &'h Histogram>) -> Latency {
    let (mut frames, mut sum_ns) = ([0; BUCKETS], 0_u64);
    for one in all {
        frames.iter_mut().zip(&one.frames).for_each(|(sum, count)| *sum += count.get());
        sum_ns = sum_ns.wrapping_add(one.sum_ns.get());
    }
    let below_ns = |at: usize| (at + 1 < BUCKETS).then(|| begin_of(at + 1));
    let bucket =
        |(at, frames)| LatencyBucket { from_ns: begin_of(at), below_ns: below_ns(at), frames };
    let buckets = frames.into_iter().enumerate().filter(|&(_, frames)| frames > 0);
    Latency { buckets: buckets.map(bucket).collect(), sum_ns }
}

/// How long frames stayed, at one worker, by what they waited for: see [`Latencies`].
#[derive(Default)]
pub(crate) struct Sojourns {
    pub(crate) received: Histogram,
    pub(crate) handed: Histogram,
}

impl Sojourns {
    /// What workers noted, all together.
    pub(crate) fn sum<'s>(all: impl Iterator<Item = &'s Self> + Clone) -> Latencies {
        Latencies {
            received: sum(all.clone().map(|one| &one.received)),
            handed: sum(all.map(|one| &one.handed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_is_in_the_bucket_whose_ends_are_around_it(power in 0..64u32, more in any::<u64>()) {
            let ns = (1 << power) | (more & ((1 << power) - 1));
            let bucket = bucket_of(ns);
            let (begin, end) = (begin_of(bucket), begin_of(bucket + 1));
            prop_assert!(begin <= ns && (ns < end || bucket == BUCKETS - 1), "{ns} {bucket}");
            // A quarter wide at most, between the first and the last.
            prop_assert!(bucket == 0 || bucket == BUCKETS - 1 || 4 * (end - begin) <= begin);
        }
    }

    #[test]
    fn what_workers_noted_is_added_up_in_order() {
        let all = [Histogram::default(), Histogram::default()];
        all[0].note(2_000, 32);
        all[1].note(2_000, 1);
        all[1].note(90, 4);
        all[0].note(5_000_000_000, 2);
        let read = sum(&all);
        let lines = read.buckets.iter().map(|line| (line.from_ns, line.below_ns, line.frames));
        let expected = [(0, Some(128), 4), (1_792, Some(2_048), 33), (1 << 30, None, 2)];
        assert!(lines.eq(expected), "{read:?}");
        assert_eq!(read.sum_ns, 33 * 2_000 + 4 * 90 + 2 * 5_000_000_000);
    }
}
