//! How long frames stayed: histograms, and what is read of them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Frames that stayed for so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LatencyBucket {
    /// From where it begins, in nanoseconds.
    pub from_ns: u64,
    /// Where it ends; absent: it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_ns: Option<u64>,
    /// How many.
    pub frames: u64,
}

/// How long frames stayed somewhere.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Latency {
    /// By time, those that have frames: four of each power of two, from 128 ns to 1.07 s.
    pub buckets: Vec<LatencyBucket>,
    /// All of their times.
    pub sum_ns: u64,
}

/// How long frames stayed at a switch, or at a node, by what they waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Latencies {
    /// Of those that left by the worker that received them: from the beginning of its round until the round's frames had all left, or waited in queues.
    pub received: Latency,
    /// Of those that another worker handed over, or that waited for a move: from the beginning of the round that received them.
    pub handed: Latency,
}

impl Latencies {
    /// Both together.
    pub fn all(&self) -> Latency {
        let mut buckets: BTreeMap<u64, LatencyBucket> = BTreeMap::new();
        for bucket in self.received.buckets.iter().chain(&self.handed.buckets) {
            let both = buckets.entry(bucket.from_ns);
            both.and_modify(|sum| sum.frames += bucket.frames).or_insert(*bucket);
        }
        let sum_ns = self.received.sum_ns + self.handed.sum_ns;
        Latency { buckets: buckets.into_values().collect(), sum_ns }
    }
}

impl Latency {
    /// How many frames.
    pub fn frames(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.frames).sum()
    }

    /// So large a share of the frames stayed no longer: the middle of their bucket, an eighth off at most. `None` without frames.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.frames() as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let bucket = self.buckets.iter().find(|bucket| {
            sum += bucket.frames;
            sum >= wanted
        })?;
        Some(bucket.below_ns.map_or(bucket.from_ns, |below| bucket.from_ns.midpoint(below)))
    }

    /// Frames that stayed for less than so long, which is a power of two from 128 ns to 1.07 s.
    pub fn below(&self, ns: u64) -> u64 {
        let is_below = |bucket: &&LatencyBucket| bucket.below_ns.is_some_and(|below| below <= ns);
        self.buckets.iter().filter(is_below).map(|bucket| bucket.frames).sum()
    }

    /// What came since; all of it if it began anew.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let was = |from_ns: u64| {
            before.buckets.iter().find(|bucket| bucket.from_ns == from_ns).map_or(0, |it| it.frames)
        };
        if self.frames() < before.frames() {
            return self.clone();
        }
        let more = self.buckets.iter().map(|bucket| LatencyBucket {
            frames: bucket.frames.saturating_sub(was(bucket.from_ns)),
            ..*bucket
        });
        let buckets = more.filter(|bucket| bucket.frames > 0).collect();
        Self { buckets, sum_ns: self.sum_ns.saturating_sub(before.sum_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(buckets: &[(u64, Option<u64>, u64)]) -> Latency {
        let bucket = |&(from_ns, below_ns, frames)| LatencyBucket { from_ns, below_ns, frames };
        Latency { buckets: buckets.iter().map(bucket).collect(), sum_ns: 7 }
    }

    #[test]
    fn half_and_the_last_hundredth_are_read_of_a_histogram() {
        let some = latency(&[(0, Some(128), 49), (1024, Some(1280), 50), (1 << 30, None, 1)]);
        let read = [0.0, 0.49, 0.5, 0.99, 1.0].map(|share| some.quantile_ns(share).unwrap());
        assert_eq!(read, [64, 64, 1152, 1152, 1 << 30]);
        assert_eq!(Latency::default().quantile_ns(0.5), None);
        assert_eq!([128, 1024, 2048].map(|ns| some.below(ns)), [49, 49, 99]);
    }

    #[test]
    fn what_was_received_and_what_was_handed_over_are_one_row() {
        let received = latency(&[(0, Some(128), 4), (1024, Some(1280), 5)]);
        let handed = latency(&[(1024, Some(1280), 2), (1280, Some(1536), 1)]);
        let all = Latencies { received, handed }.all();
        let expected = [(0, Some(128), 4), (1024, Some(1280), 7), (1280, Some(1536), 1)];
        assert_eq!((all.buckets, all.sum_ns), (latency(&expected).buckets, 14));
    }

    #[test]
    fn between_two_looks_is_what_came_since() {
        let before = latency(&[(0, Some(128), 49), (1024, Some(1280), 50)]);
        let now = latency(&[(0, Some(128), 49), (1024, Some(1280), 60), (1280, Some(1536), 2)]);
        let more = latency(&[(1024, Some(1280), 10), (1280, Some(1536), 2)]);
        assert_eq!(now.since(&before).buckets, more.buckets);
        assert_eq!(before.since(&now), before, "it was opened again");
    }
}
