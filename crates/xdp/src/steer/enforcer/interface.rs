//! One interface, steered by the kernel.

use super::Shared;
use crate::steer::{Attached, EventKind, Events, SteerError, Unit, UnitKind, events, times};
use crate::{Hook, Mode};
use place::steering::{
    CoreTimes, EnforceError, Enforcer, Entry, EntryKey, EntryStatus, Event, FlowKey, PolicyKind,
    Step, Target, UnitStatus, Urgency,
};
use place::{CoreId, CoreTable, Facts, Reason, Stage, UnitId};
use std::collections::{BTreeMap, HashMap};

/// The interface.
pub(super) struct Steered {
    pub(super) shared: Shared,
    pub(super) attached: Attached,
    events: Events,
    /// Entries in force, with their units.
    pub(super) entries: HashMap<EntryKey, (Entry, UnitId)>,
    policy: Option<PolicyKind>,
    /// The port's stage that had no sockets at the last look.
    orphan: Option<u32>,
}

impl Steered {
    /// Takes an attached or adopted interface.
    pub(super) fn new(shared: Shared, attached: Attached) -> Result<Self, SteerError> {
        let events = attached.events()?;
        let there = attached.entries();
        let entries = there.iter().filter_map(|(unit, entry)| {
            let entry = super::change::from_kernel(entry)?;
            Some((entry.key, (entry, *unit)))
        });
        let entries = entries.collect();
        Ok(Self { events, entries, shared, attached, policy: None, orphan: None })
    }

    fn facts(&self, event: &events::Event) -> Option<Facts> {
        let unit = self.attached.unit(event.unit)?;
        (event.kind == EventKind::Placed).then_some(Facts {
            hash: unit.hash,
            vm: unit.vm,
            is_priority: unit.is_priority,
            wants_own_core: unit.wants_own_core,
            rx_core: event.from,
        })
    }

    fn status(&self, unit: &Unit, targets: &HashMap<UnitId, &Entry>) -> UnitStatus {
        let target = targets.get(&unit.id).map(|entry| entry.target);
        UnitStatus {
            unit: unit.id,
            core: unit.core,
            wanted: unit.wanted.filter(|&wanted| unit.core.is_some_and(|core| core != wanted)),
            reason: unit.reason,
            decided_at_ns: unit.moved_at.as_nanos() as u64,
            frames: unit.frames,
            bytes: unit.bytes,
            moves: unit.moves.into(),
            vm: unit.vm,
            is_priority: unit.is_priority,
            is_fixed: matches!(target, Some(Target::Core(_) | Target::Hash)) || unit.wants_own_core,
        }
    }
}

impl Enforcer for Steered {
    fn hook(&self) -> &'static str {
        Mode::Native.name()
    }

    fn arrivals(&mut self) -> Result<BTreeMap<CoreId, u32>, EnforceError> {
        self.shared
            .with(|host| host.arrivals())
            .map_err(EnforceError::refused("count what was placed"))
    }

    fn set_core_table(
        &mut self,
        table: &CoreTable,
        policy: PolicyKind,
    ) -> Result<(), EnforceError> {
        if self.policy != Some(policy) {
            self.attached.set_policy(policy);
            self.policy = Some(policy);
        }
        let Self { shared, attached, .. } = self;
        let written = shared.with(|host| attached.set_cores(host, table));
        written.map_err(EnforceError::refused("write the core table"))
    }

    fn change(&mut self, steps: &[Step]) -> Result<(), EnforceError> {
        self.change_entries(steps)
    }

    fn settle(&mut self) {
        if let Err(error) = self.attached.settle() {
            tracing::debug!("a change of entries does not settle: {error}");
        }
    }

    fn entries(&mut self) -> Result<Vec<EntryStatus>, EnforceError> {
        let status = |&(entry, unit): &(Entry, UnitId)| {
            let counted = self.attached.unit(unit);
            let (frames, bytes) = counted.map_or((0, 0), |unit| (unit.frames, unit.bytes));
            EntryStatus { entry, unit, frames, bytes }
        };
        Ok(self.entries.values().map(status).collect())
    }

    fn units(&mut self) -> Result<Vec<UnitStatus>, EnforceError> {
        let targets = self.entries.values().map(|(entry, unit)| (*unit, entry)).collect();
        let units = self.attached.units();
        let used = units.iter().filter(|unit| unit.core.is_some() || unit.kind == UnitKind::Entry);
        Ok(used.map(|unit| self.status(unit, &targets)).collect())
    }

    fn want(
        &mut self,
        unit: UnitId,
        core: CoreId,
        reason: Reason,
        urgency: Urgency,
    ) -> Result<(), EnforceError> {
        self.attached.want(unit, core, reason, urgency);
        Ok(())
    }

    fn times(&mut self) -> Result<Vec<(CoreId, CoreTimes)>, EnforceError> {
        let times = self
            .shared
            .with(|host| Ok(host.times()))
            .map_err(EnforceError::refused("read the cores' times"))?;
        let convert = |times: times::CoreTimes| CoreTimes {
            stages: Stage::ALL.map(|stage| times.stage(stage)),
            other: times.other(),
            idle: times.idle(),
        };
        Ok(times.into_iter().map(|(core, times)| (core, convert(times))).collect())
    }

    fn events(&mut self) -> Vec<Event> {
        let news: Vec<events::Event> = self.events.by_ref().collect();
        let convert = |event: &events::Event| {
            if event.kind == EventKind::GivenUp {
                tracing::info!(
                    "unit {} stays on core {}: it was never idle while it was to go to core {}",
                    event.unit,
                    event.from,
                    event.to
                );
                return None;
            }
            Some(Event {
                at_ns: event.at.as_nanos() as u64,
                unit: event.unit,
                from: (event.kind == EventKind::Moved).then_some(event.from),
                core: event.to,
                reason: event.reason?,
                facts: self.facts(event),
            })
        };
        news.iter().filter_map(convert).collect()
    }

    fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, EnforceError> {
        let verdicts = self.attached.counts().map_err(EnforceError::refused("count frames"))?;
        Ok(verdicts.into_iter().map(|(what, count)| (what.name(), count.frames)).collect())
    }

    fn core_counts(&mut self) -> Result<Vec<(CoreId, u64)>, EnforceError> {
        let cores =
            self.attached.core_counts().map_err(EnforceError::refused("count frames by core"))?;
        Ok(cores.into_iter().map(|(core, count)| (core, count.processed.frames)).collect())
    }

    fn missed_unit(&self, key: &FlowKey) -> Option<UnitId> {
        self.attached.missed_unit(key)
    }

    fn set_threads(&mut self, threads: &[(u32, Stage)]) -> Result<(), EnforceError> {
        self.shared.watch(threads).map_err(EnforceError::refused("watch the guests' threads"))
    }

    fn is_alive(&self) -> bool {
        self.attached.is_alive()
    }

    /// A port whose process was killed left its stage, which drops what no rule names. One that is wanted is back before the second look.
    fn look_after(&mut self) {
        let index = self.attached.interface().index;
        let orphan = Hook::orphan(index).ok().flatten();
        let seen = std::mem::replace(&mut self.orphan, orphan);
        if let Some(orphan) = orphan.filter(|_| seen == orphan) {
            match Hook::free_orphan(index, orphan) {
                Ok(()) => tracing::info!(
                    "its port is gone with another process: frames that no rule names are the host's again"
                ),
                Err(error) => tracing::warn!("the stage of a port that is gone stays: {error}"),
            }
        }
    }

    fn detach(self: Box<Self>) -> Result<(), EnforceError> {
        let Self { shared, attached, events, .. } = *self;
        drop(events);
        shared.detach(attached).map_err(EnforceError::refused("detach it"))
    }
}
