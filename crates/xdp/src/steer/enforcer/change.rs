//! Entries of an interface, changed while frames flow.
//!
//! The program lets flows change over to other entries one by one, when no order is lost; until all have, no other change can begin. So a
//! change waits for the one before it, a moment: then it goes on at the price of order, which flows that never pause would pay at some
//! time anyway.
//!
//! An entry that only gets another core is no change of entries: its unit moves, with its counters.

use super::interface::Steered;
use crate::steer::{ChangeError, Match, entries};
use place::steering::{EnforceError, Entry, EntryKey, Selector, Step, Target, Urgency};
use place::{Reason, UnitId};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a change waits for the one before it. Chosen: a queue of 2048 frames at a slow 5 µs each is empty by then.
const PATIENCE: Duration = Duration::from_millis(10);
/// Between two looks whether it is settled.
const PAUSE: Duration = Duration::from_micros(200);

/// What must be done, in this order.
#[derive(Default)]
struct Plan {
    /// Not there yet.
    new: Vec<Entry>,
    /// Only their cores change.
    moved: Vec<(UnitId, Entry)>,
    /// There, and to go.
    gone: Vec<(EntryKey, UnitId)>,
    /// There, and to be made anew.
    anew: Vec<Entry>,
}

impl Steered {
    pub(super) fn change_entries(&mut self, steps: &[Step]) -> Result<(), EnforceError> {
        let plan = self.plan(steps);
        self.insert(&plan.new)?;
        for (unit, entry) in &plan.moved {
            match entry.target {
                Target::Core(core) => {
                    self.attached.want(*unit, core, Reason::Fixed, Urgency::DropToDrain);
                }
                Target::Auto | Target::Hash => self.attached.undecide(*unit),
            }
            self.entries.insert(entry.key, (*entry, *unit));
        }
        if !plan.gone.is_empty() {
            self.wait_until_settled()?;
            let units: Vec<UnitId> = plan.gone.iter().map(|(_, unit)| *unit).collect();
            self.attached.remove(&units).map_err(failed("remove entries"))?;
            for (key, _) in &plan.gone {
                self.entries.remove(key);
            }
        }
        self.insert(&plan.anew)
    }

    fn plan(&self, steps: &[Step]) -> Plan {
        let last: HashMap<EntryKey, &Step> =
            steps.iter().map(|step| (key_of(step), step)).collect();
        let mut plan = Plan::default();
        for (key, step) in last {
            match (step, self.entries.get(&key)) {
                (Step::Put(entry), None) => plan.new.push(*entry),
                (Step::Put(entry), Some((old, _))) if entry == old => {}
                (Step::Put(entry), Some((old, unit))) if differ_in_core_only(entry, old) => {
                    plan.moved.push((*unit, *entry));
                }
                (Step::Put(entry), Some((_, unit))) => {
                    plan.gone.push((key, *unit));
                    plan.anew.push(*entry);
                }
                (Step::Remove(_), Some((_, unit))) => plan.gone.push((key, *unit)),
                (Step::Remove(_), None) => {}
            }
        }
        plan
    }

    fn insert(&mut self, entries: &[Entry]) -> Result<(), EnforceError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.wait_until_settled()?;
        let raw: Vec<entries::Entry> = entries.iter().map(to_kernel).collect();
        let units = self.attached.insert(&raw).map_err(failed("add entries"))?;
        self.entries
            .extend(entries.iter().zip(units).map(|(entry, unit)| (entry.key, (*entry, unit))));
        Ok(())
    }

    fn wait_until_settled(&mut self) -> Result<(), EnforceError> {
        let step = "settle the change before";
        let deadline = Instant::now() + PATIENCE;
        while !self.attached.settle().map_err(failed(step))? {
            if Instant::now() >= deadline {
                return self.attached.settle_now().map_err(failed(step));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn key_of(step: &Step) -> EntryKey {
    match step {
        Step::Put(entry) => entry.key,
        Step::Remove(key) => *key,
    }
}

fn differ_in_core_only(new: &Entry, old: &Entry) -> bool {
    let by_hash = new.target == Target::Hash || old.target == Target::Hash;
    !by_hash && Entry { target: old.target, ..*new } == *old
}

fn to_kernel(entry: &Entry) -> entries::Entry {
    let Selector { key, mask } = entry.key.selector;
    entries::Entry {
        matching: Match::Wild { key, mask, priority: entry.key.priority.into() },
        target: entry.target,
        is_priority: entry.is_priority,
        wants_own_core: entry.wants_own_core,
        vm: entry.vm,
    }
}

/// An entry that an earlier process left. `None` for one that no agent makes.
pub(super) fn from_kernel(entry: &entries::Entry) -> Option<Entry> {
    let Match::Wild { key, mask, priority } = entry.matching else { return None };
    let key = EntryKey { priority: priority.try_into().ok()?, selector: Selector { key, mask } };
    Some(Entry {
        key,
        target: entry.target,
        is_priority: entry.is_priority,
        wants_own_core: entry.wants_own_core,
        vm: entry.vm,
    })
}

/// A change of entries that the program's tables refuse.
fn failed(step: &'static str) -> impl Fn(ChangeError) -> EnforceError {
    move |error| match error {
        ChangeError::Full => EnforceError::Full { step, source: Box::new(error) },
        ChangeError::Masks => EnforceError::TooManyMasks { step, source: Box::new(error) },
        _ => EnforceError::Refused { step, source: Box::new(error) },
    }
}
