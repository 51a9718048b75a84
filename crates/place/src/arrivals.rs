//! Which units came to a core so lately that its measured load does not show them.
//!
//! Nobody knows what a unit will cost, and one alone may fill a core. Until its core's load shows it, it counts as a unit ([`Core::placed`](crate::Core::placed)). Who
//! places units counts them, for ever upwards; who measures loads reads the counts at the same moment. So a unit that comes between two
//! readings, or while a core table is exchanged for the next, is in no gap: it is counted until a reading that knew of it is old enough.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::CoreId;

/// A load shows all but a sixteenth of what a unit costs after four half-lives of its measurements ([`Smoothed`](crate::Smoothed)).
const SHOWS_AFTER: Duration = Duration::from_millis(24);

/// Units that came, by core, as counted at the last few measurements.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// The oldest first. The first is the latest that loads show, or the first ever.
    counts: VecDeque<(Duration, BTreeMap<CoreId, u32>)>,
}

impl Arrivals {
    /// Takes how many units ever came to each core, read when loads were measured: at `now`, which never goes back.
    pub fn count(&mut self, now: Duration, so_far: BTreeMap<CoreId, u32>) {
        self.counts.push_back((now, so_far));
        while self.counts.get(1).is_some_and(|&(at, _)| at + SHOWS_AFTER <= now) {
            self.counts.pop_front();
        }
    }

    /// Units that came to `core` until the last reading, and do not show in its load. Who counts anew from 0 has none.
    pub fn unmeasured(&self, core: CoreId) -> u32 {
        let at = |counts: Option<&(Duration, BTreeMap<CoreId, u32>)>| {
            counts.and_then(|(_, by_core)| by_core.get(&core)).copied().unwrap_or(0)
        };
        at(self.counts.back()).saturating_sub(at(self.counts.front()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: CoreId = CoreId(3);

    fn unmeasured(readings: &[(u64, u32)]) -> u32 {
        let mut arrivals = Arrivals::default();
        for &(ms, count) in readings {
            arrivals.count(Duration::from_millis(ms), [(CORE, count)].into());
        }
        arrivals.unmeasured(CORE)
    }

    #[test]
    fn a_unit_counts_until_a_reading_that_knew_of_it_is_old_enough() {
        assert_eq!(unmeasured(&[(0, 7)]), 0, "what was there before anybody looked shows already");
        assert_eq!(unmeasured(&[(0, 7), (2, 8)]), 1);
        assert_eq!(unmeasured(&[(0, 7), (2, 8), (25, 8)]), 1);
        assert_eq!(unmeasured(&[(0, 7), (2, 8), (25, 8), (26, 8)]), 0);
    }

    #[test]
    fn one_that_came_between_two_rare_readings_counts_until_the_next_but_one() {
        assert_eq!(unmeasured(&[(0, 0), (50, 1)]), 1);
        assert_eq!(unmeasured(&[(0, 0), (50, 1), (100, 1)]), 0);
    }

    #[test]
    fn counts_that_begin_anew_are_no_arrivals() {
        assert_eq!(unmeasured(&[(0, 9), (2, 0)]), 0);
        assert_eq!(Arrivals::default().unmeasured(CORE), 0);
    }
}
