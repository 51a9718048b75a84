//! One switch, steered between the workers.

use super::Served;
use crate::{Placed, SteeredUnit, Steering, SteeringEntry, SteeringError};
use place::steering::{
    CoreTimes, EnforceError, Enforcer, Entry, EntryKey, EntryStatus, Event, FlowKey, PolicyKind,
    Selector, Step, Target, UnitStatus, Urgency,
};
use place::{CoreId, CoreTable, Reason, Stage, UnitId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The switch.
pub(super) struct Steered {
    served: Arc<Served>,
    steering: Steering,
    /// Entries in force, with their units.
    entries: HashMap<EntryKey, (Entry, UnitId)>,
}

/// A move to where no worker is.
#[derive(Debug, thiserror::Error)]
#[error("no worker runs on core {0}")]
struct NoWorker(CoreId);

impl Steered {
    pub(super) fn new(served: Arc<Served>, steering: Steering) -> Self {
        Self { served, steering, entries: HashMap::new() }
    }

    /// Carries steps out, all or none.
    fn carry_out(&mut self, steps: &[Step]) -> Result<(), SteeringError> {
        let mut wanted = self.entries.clone();
        let done = self.plan(steps, &mut wanted).and_then(|()| {
            let entries = wanted.values().map(|(entry, unit)| to_datapath(entry, *unit)).collect();
            self.steering.set_entries(&self.served.datapath, entries)
        });
        match &done {
            Ok(()) => self.entries = wanted,
            Err(_) => {
                let new = wanted.iter().filter(|(key, _)| !self.entries.contains_key(key));
                new.for_each(|(_, (_, unit))| self.steering.return_unit(*unit));
            }
        }
        done
    }

    /// Changes `wanted` as the steps say; new entries get new units.
    fn plan(
        &mut self,
        steps: &[Step],
        wanted: &mut HashMap<EntryKey, (Entry, UnitId)>,
    ) -> Result<(), SteeringError> {
        for step in steps {
            match step {
                Step::Remove(key) => drop(wanted.remove(key)),
                Step::Put(entry) => {
                    let there = wanted.get(&entry.key).or_else(|| self.entries.get(&entry.key));
                    let unit = match there {
                        Some((_, unit)) => *unit,
                        None => self.steering.free_unit()?,
                    };
                    wanted.insert(entry.key, (*entry, unit));
                }
            }
        }
        Ok(())
    }

    fn status(&self, unit: &SteeredUnit, targets: &HashMap<UnitId, &Entry>) -> UnitStatus {
        let entry = targets.get(&unit.unit);
        let is_fixed =
            entry.is_some_and(|entry| entry.target != Target::Auto || entry.wants_own_core);
        UnitStatus {
            unit: unit.unit,
            core: unit.core,
            wanted: unit.wanted,
            reason: unit.reason,
            decided_at_ns: unit.decided_at_ns,
            frames: unit.frames,
            bytes: unit.bytes,
            moves: unit.moves,
            vm: unit.vm,
            is_priority: unit.is_priority,
            is_fixed,
        }
    }
}

fn to_datapath(entry: &Entry, unit: UnitId) -> SteeringEntry {
    let Selector { key, mask } = entry.key.selector;
    SteeringEntry {
        unit,
        key,
        mask,
        priority: entry.key.priority,
        target: entry.target,
        is_priority: entry.is_priority,
        wants_own_core: entry.wants_own_core,
        vm: entry.vm,
    }
}

fn event(placed: Placed) -> Event {
    let Placed { at_ns, unit, core, reason, facts } = placed;
    Event { at_ns, unit, from: None, core, reason, facts: Some(facts) }
}

impl Enforcer for Steered {
    fn hook(&self) -> &'static str {
        "workers"
    }

    fn cores(&self) -> Option<Vec<CoreId>> {
        Some(self.steering.cores().to_vec())
    }

    fn arrivals(&mut self) -> Result<BTreeMap<CoreId, u32>, EnforceError> {
        Ok(self.steering.arrivals())
    }

    fn set_core_table(
        &mut self,
        table: &CoreTable,
        policy: PolicyKind,
    ) -> Result<(), EnforceError> {
        self.steering.set_core_table(table, policy);
        Ok(())
    }

    fn change(&mut self, steps: &[Step]) -> Result<(), EnforceError> {
        self.carry_out(steps).map_err(failed)
    }

    fn entries(&mut self) -> Result<Vec<EntryStatus>, EnforceError> {
        let status = |&(entry, unit): &(Entry, UnitId)| {
            let SteeredUnit { frames, bytes, .. } = self.steering.unit(unit);
            EntryStatus { entry, unit, frames, bytes }
        };
        Ok(self.entries.values().map(status).collect())
    }

    fn units(&mut self) -> Result<Vec<UnitStatus>, EnforceError> {
        let targets = self.entries.values().map(|(entry, unit)| (*unit, entry)).collect();
        Ok(self.steering.units().iter().map(|unit| self.status(unit, &targets)).collect())
    }

    fn want(
        &mut self,
        unit: UnitId,
        core: CoreId,
        reason: Reason,
        urgency: Urgency,
    ) -> Result<(), EnforceError> {
        let is_worker = self.steering.want(unit, core, reason, urgency);
        is_worker.then_some(()).ok_or(NoWorker(core)).map_err(EnforceError::refused("move a unit"))
    }

    /// Taking frames is the driver's stage, tables and actions the packet's, and handing frames to their destinations, guests first of all,
    /// what vhost does in the kernel.
    fn times(&mut self) -> Result<Vec<(CoreId, CoreTimes)>, EnforceError> {
        let times = self.served.datapath.worker_times().into_iter().map(|times| {
            let mut stages = [0; 4];
            stages[Stage::Driver as usize] = times.rx_ns;
            stages[Stage::Packet as usize] = times.pipeline_ns;
            stages[Stage::Vhost as usize] = times.tx_ns;
            let busy: u64 = stages.iter().sum();
            let idle = times.since_start_ns.saturating_sub(busy);
            (CoreId(times.core as u16), CoreTimes { stages, other: 0, idle })
        });
        Ok(times.collect())
    }

    fn events(&mut self) -> Vec<Event> {
        self.steering.placed().into_iter().map(event).collect()
    }

    /// In the words that the kernel's program has for the same.
    fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, EnforceError> {
        let (mut stayed, mut sent, mut full, mut draining) = (0, 0, 0, 0);
        for pair in self.steering.handovers() {
            *(if pair.from == pair.to { &mut stayed } else { &mut sent }) += pair.given;
            full += pair.full;
            draining += pair.held_out;
        }
        Ok(vec![
            ("sent", sent),
            ("stayed", stayed),
            ("missed", self.steering.unsteered()),
            ("queue-full", full),
            ("draining", draining),
        ])
    }

    fn core_counts(&mut self) -> Result<Vec<(CoreId, u64)>, EnforceError> {
        let mut by_core = BTreeMap::new();
        for pair in self.steering.handovers() {
            *by_core.entry(pair.to).or_insert(0) += pair.taken;
        }
        Ok(by_core.into_iter().collect())
    }

    fn missed_unit(&self, key: &FlowKey) -> Option<UnitId> {
        self.steering.missed_unit(key)
    }

    fn set_threads(&mut self, _: &[(u32, Stage)]) -> Result<(), EnforceError> {
        Ok(()) // workers count their own time only
    }

    fn is_alive(&self) -> bool {
        self.served.datapath.is_steered(&self.steering)
    }

    fn detach(self: Box<Self>) -> Result<(), EnforceError> {
        self.served.unsteer(&self.steering);
        Ok(())
    }
}

/// A change of entries that the switch's tables refuse.
fn failed(error: SteeringError) -> EnforceError {
    let (step, source) = ("change entries", Box::new(error));
    match error {
        SteeringError::Full(_) => EnforceError::Full { step, source },
        SteeringError::Masks => EnforceError::TooManyMasks { step, source },
        _ => EnforceError::Refused { step, source },
    }
}
