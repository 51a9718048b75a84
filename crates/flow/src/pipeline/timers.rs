//! When entries may have to go: a calendar of ticks, so that expiry looks only at entries whose time has come.
//!
//! An entry is on the calendar once per record, at the earliest moment it could expire. An idle timeout is not moved
//! at each packet: when the moment comes, the entry is looked at and put back for later if it was used since.

use crate::store::{RecordId, tick};
use crate::time::Nanos;
use std::collections::BTreeMap;

/// An appointment: the record, and which use of its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    pub id: RecordId,
    pub version: u16,
}

/// Appointments by tick.
#[derive(Default)]
pub(crate) struct Timers {
    calendar: BTreeMap<u32, Vec<Due>>,
    len: usize,
    /// Appointments when those of entries long gone were last dropped.
    kept: usize,
}

/// Appointments made since then, beyond as many as were kept, before it is done again.
const SLACK: usize = 4096;

impl Timers {
    /// Puts `due` down for `at`, to the end of that tick.
    pub fn add(&mut self, at: Nanos, due: Due) {
        self.calendar.entry(tick(at).saturating_add(1)).or_default().push(due);
        self.len += 1;
    }

    /// At most so many of those that are due by `now`, the first ones first.
    pub fn take_due(&mut self, most: usize, now: Nanos) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some(mut first) = self.calendar.first_entry() {
            if *first.key() > tick(now) || due.len() == most {
                break;
            }
            let left = first.get().len().saturating_sub(most - due.len());
            due.extend(first.get_mut().drain(left..));
            if first.get().is_empty() {
                first.remove();
            }
        }
        self.len -= due.len();
        due
    }

    /// The first appointment.
    pub fn next(&self) -> Option<Nanos> {
        self.calendar.keys().next().map(|&tick| Nanos(u64::from(tick) << 26))
    }

    /// Every appointment, those of entries long gone included.
    pub fn all(&self) -> impl Iterator<Item = Due> + '_ {
        self.calendar.values().flatten().copied()
    }

    /// Appointments, those of entries long gone included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are so many that most may be of entries long gone.
    pub fn is_crowded(&self) -> bool {
        self.len > self.kept * 2 + SLACK
    }

    /// Drops the appointments that `is_kept` denies.
    pub fn retain(&mut self, mut is_kept: impl FnMut(Due) -> bool) {
        self.calendar.retain(|_, dues| {
            dues.retain(|&due| is_kept(due));
            !dues.is_empty()
        });
        self.len = self.calendar.values().map(Vec::len).sum();
        self.kept = self.len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(slot: u32) -> Due {
        Due { id: RecordId(slot), version: 0 }
    }

    #[test]
    fn only_what_is_due_is_taken_and_only_once() {
        let mut timers = Timers::default();
        timers.add(Nanos(1_000_000_000), due(1));
        timers.add(Nanos(2_000_000_000), due(2));
        let all = usize::MAX;
        assert_eq!(timers.take_due(all, Nanos(900_000_000)), []);
        let next = timers.next().unwrap();
        assert!(next >= Nanos(1_000_000_000) && next < Nanos(1_100_000_000));
        assert_eq!(timers.take_due(all, next), [due(1)]);
        assert_eq!(timers.take_due(all, next), []);
        assert_eq!(timers.len(), 1);
    }

    #[test]
    fn a_portion_is_no_larger_than_asked_and_the_first_come_first() {
        let mut timers = Timers::default();
        (0..5).for_each(|slot| timers.add(Nanos(1_000_000_000), due(slot)));
        timers.add(Nanos(2_000_000_000), due(9));
        let now = Nanos(3_000_000_000);
        assert_eq!(timers.take_due(3, now), [due(2), due(3), due(4)]);
        assert_eq!(timers.take_due(3, now), [due(0), due(1), due(9)]);
        assert_eq!((timers.next(), timers.len()), (None, 0));
    }
}
