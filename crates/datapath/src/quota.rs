//! How many packet-ins a switch may cause: a rate, and a share of the ring.
//!
//! All workers draw on one quota, so it is atomic; only packet-ins touch it.

use flow::Nanos;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// A switch's packet-in quota.
///
/// The rate is a token bucket kept as one number (GCRA, ITU-T I.371): `due` is when the bucket would be full again. A packet-in is
/// allowed while that lies at most `depth` ahead, and moves it on by `interval`.
pub(crate) struct Quota {
    due: AtomicU64,
    interval: AtomicU64,
    depth: AtomicU64,
    waiting: AtomicU32,
    share: u32,
}

impl Quota {
    /// `share` is how many may wait in the ring.
    pub(crate) fn new(per_s: u32, share: u32) -> Self {
        let quota = Self {
            due: AtomicU64::new(0),
            interval: AtomicU64::new(0),
            depth: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            share,
        };
        quota.set_rate(per_s, per_s / 10);
        quota
    }

    /// At most `per_s` per second in the long run and `burst` (at least 1) at once; a rate of 0 lets nothing through.
    pub(crate) fn set_rate(&self, per_s: u32, burst: u32) {
        let interval = SECOND.checked_div(u64::from(per_s)).unwrap_or(u64::MAX);
        self.interval.store(interval, Relaxed);
        self.depth.store(interval.saturating_mul(u64::from(burst.max(1))), Relaxed);
    }

    /// Takes `places` for one packet-in; false when the rate is used up or so many are not left of the share. A switch of which
    /// nothing waits gets as many as it asks for.
    pub(crate) fn take(&self, now: Nanos, places: u32) -> bool {
        let more = |taken: u32| {
            let after = taken.saturating_add(places);
            (taken == 0 || after <= self.share).then_some(after)
        };
        if self.waiting.fetch_update(Relaxed, Relaxed, more).is_err() {
            return false;
        }
        let allowed = self.within_rate(now.0);
        if !allowed {
            self.give_back(places);
        }
        allowed
    }

    fn within_rate(&self, now: u64) -> bool {
        let (interval, depth) = (self.interval.load(Relaxed), self.depth.load(Relaxed));
        if interval == u64::MAX {
            return false;
        }
        let next = |due: u64| {
            let after = due.max(now) + interval;
            (after - now <= depth).then_some(after)
        };
        self.due.fetch_update(Relaxed, Relaxed, next).is_ok()
    }

    /// The control thread took one from the ring, or it did not fit.
    pub(crate) fn give_back(&self, places: u32) {
        self.waiting.fetch_sub(places, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let quota = Quota::new(1000, u32::MAX);
        let take = |ms: u64| (0..1000).filter(|_| quota.take(Nanos(ms * 1_000_000), 1)).count();
        assert_eq!(take(5), 100, "a tenth of a second's worth at once");
        assert_eq!(take(15), 10, "then one per millisecond");
        assert_eq!(take(2015), 100, "idle time fills the bucket no further than its depth");
    }

    #[test]
    fn a_full_share_stops_a_switch_until_the_control_thread_takes_some() {
        let quota = Quota::new(u32::MAX, 2);
        assert!(quota.take(Nanos(1), 1) && quota.take(Nanos(2), 1) && !quota.take(Nanos(3), 1));
        quota.give_back(1);
        assert!(quota.take(Nanos(4), 1));
    }

    #[test]
    fn a_long_frame_takes_more_of_the_share_but_always_finds_a_place_where_none_waits() {
        let quota = Quota::new(u32::MAX, 4);
        assert!(quota.take(Nanos(1), 3) && !quota.take(Nanos(2), 2) && quota.take(Nanos(3), 1));
        quota.give_back(4);
        assert!(quota.take(Nanos(4), 65) && !quota.take(Nanos(5), 1));
    }

    #[test]
    fn a_rate_of_zero_lets_nothing_through() {
        let quota = Quota::new(0, 10);
        assert!(!quota.take(Nanos(0), 1) && !quota.take(Nanos(u64::MAX), 1));
    }
}
