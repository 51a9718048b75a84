//! Storm control: how many copies of flooded frames one port of a bridge may cause.
//!
//! A bridge (`NORMAL`) floods what it has not learned, and broadcasts. A frame that leaves by one port costs what any frame costs; each further copy
//! is paid from a rate of the port where the frame came in. Frames to group addresses and unknown unicast are paid apart, so that a
//! guest whose stream floods still finds its neighbours by ARP. A frame whose copies are not paid goes nowhere (`storm`).

use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SECOND: u64 = 1_000_000_000;

/// How long a port may save, in nanoseconds of its rate. Chosen: as a meter's burst that names none.
const SAVES: u64 = SECOND / 10;

/// Why a bridge floods a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flood {
    /// Its destination is a group's, everybody's too.
    Group,
    /// The bridge has not learned where its destination is.
    Unknown,
}

/// What one port has left, of each kind.
///
/// Each is a token bucket kept as one number (GCRA, ITU-T I.371): when it would be full again. All workers draw on it.
#[derive(Debug, Default)]
pub(crate) struct Storm {
    full_at: [AtomicU64; 2],
    /// Frames that went nowhere.
    cut: AtomicU64,
}

impl Storm {
    /// Takes so many copies; false, and nothing taken, if they are more than `per_s` lets. `None` lets all.
    ///
    /// A port that has saved all it may can always flood once, however many ports there are.
    #[inline]
    pub(crate) fn take(&self, flood: Flood, copies: usize, per_s: Option<u32>, now: Nanos) -> bool {
        let Some(per_s) = per_s.filter(|_| copies > 0) else { return true };
        let next = |full_at| after(full_at, copies, per_s, now);
        let is_paid = self.full_at[flood as usize].fetch_update(Relaxed, Relaxed, next).is_ok();
        if !is_paid {
            self.cut.fetch_add(1, Relaxed);
        }
        is_paid
    }

    /// Frames whose copies were not paid.
    pub(crate) fn cut(&self) -> u64 {
        self.cut.load(Relaxed)
    }

    /// Whether [`Storm::take`] would take them. Takes nothing.
    pub(crate) fn would_take(
        &self,
        flood: Flood,
        copies: usize,
        per_s: Option<u32>,
        now: Nanos,
    ) -> bool {
        let Some(per_s) = per_s.filter(|_| copies > 0) else { return true };
        after(self.full_at[flood as usize].load(Relaxed), copies, per_s, now).is_some()
    }
}

/// When the bucket is full again once these copies are taken; `None` if they are too many.
fn after(full_at: u64, copies: usize, per_s: u32, now: Nanos) -> Option<u64> {
    let cost = (copies as u64 * SECOND).checked_div(per_s.into())?;
    let ahead = full_at.saturating_sub(now.0);
    (ahead == 0 || ahead + cost <= SAVES).then(|| now.0 + ahead + cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<u32> = Some(1000);

    /// How many floods of `copies` pass at a time.
    fn floods(storm: &Storm, flood: Flood, copies: usize, now: u64) -> usize {
        (0..100_000).take_while(|_| storm.take(flood, copies, RATE, Nanos(now))).count()
    }

    #[test]
    fn a_tenth_of_a_second_passes_at_once_and_then_the_rate() {
        let storm = Storm::default();
        assert_eq!(floods(&storm, Flood::Group, 10, SECOND), 10);
        assert_eq!(floods(&storm, Flood::Group, 10, SECOND + SECOND / 20), 5);
        assert_eq!(floods(&storm, Flood::Group, 10, 9 * SECOND), 10, "no more is saved");
    }

    #[test]
    fn kinds_are_paid_apart() {
        let storm = Storm::default();
        assert_eq!(floods(&storm, Flood::Unknown, 1, SECOND), 100);
        assert_eq!(floods(&storm, Flood::Group, 1, SECOND), 100);
    }

    #[test]
    fn one_flood_over_any_number_of_ports_passes_and_is_paid_off() {
        let storm = Storm::default();
        assert!(storm.take(Flood::Group, 5000, RATE, Nanos(SECOND)));
        assert!(!storm.take(Flood::Group, 1, RATE, Nanos(5 * SECOND + SECOND * 9 / 10)));
        assert!(storm.take(Flood::Group, 1, RATE, Nanos(5 * SECOND + SECOND * 901 / 1000)));
    }

    #[test]
    fn a_frame_that_leaves_once_is_free_and_no_rate_lets_all() {
        let storm = Storm::default();
        floods(&storm, Flood::Group, 1, SECOND);
        assert!(storm.take(Flood::Group, 0, RATE, Nanos(SECOND)));
        assert!(storm.take(Flood::Group, 9, None, Nanos(SECOND)));
        assert!(!storm.take(Flood::Unknown, 1, Some(0), Nanos(SECOND)), "a rate of 0 lets none");
    }

    #[test]
    fn asking_takes_nothing_and_says_what_taking_says() {
        let storm = Storm::default();
        for step in 0..10_000 {
            let (now, copies) = (Nanos(SECOND + step * 700_000), step as usize % 7);
            let asked = storm.would_take(Flood::Unknown, copies, RATE, now);
            assert_eq!(asked, storm.would_take(Flood::Unknown, copies, RATE, now));
            assert_eq!(asked, storm.take(Flood::Unknown, copies, RATE, now), "step {step}");
        }
    }
}
