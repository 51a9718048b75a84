//! Dumps and sums.

use super::Pipeline;
use super::timers::Due;
use crate::limits::units;
use crate::program::actions;
use crate::resolve::Hit;
use crate::stats::{Aggregate, FlowFilter, FlowStats, TableStats};
use crate::store::RecordId;
use crate::table::Table;
use crate::template::key_of;
use crate::time::Nanos;
use crate::{Action, Instructions};
use std::sync::Arc;
use wire::Field;

/// The name of an entry, as long as it is unchanged. Names are ordered as the entries lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EntryId {
    pub(super) id: RecordId,
    version: u16,
}

impl Pipeline {
    /// The entries that `filter` selects, in no particular order.
    pub fn flows<'a>(
        &'a self,
        filter: &'a FlowFilter,
        now: Nanos,
    ) -> impl Iterator<Item = FlowStats> + 'a {
        self.select(filter).map(move |id| self.stats_of(id, now))
    }

    /// The names of the entries that `filter` selects, for a dump in portions: 8 bytes each, in no particular order.
    pub fn entry_ids(&self, filter: &FlowFilter) -> Vec<EntryId> {
        self.select(filter).map(|id| self.name(id)).collect()
    }

    /// The names of the entries whose idle timeout, in seconds, is `wanted`. Costs a look at each entry with a timeout.
    pub fn idle_entry_ids(&self, wanted: impl Fn(u16) -> bool) -> Vec<EntryId> {
        let cold = |due: &Due| self.store.arena.cold(due.id);
        let dues = self
            .timers
            .all()
            .filter(|due| cold(due).version == due.version && wanted(cold(due).idle_s));
        dues.map(|Due { id, version }| EntryId { id, version }).collect()
    }

    /// The entry of that name; `None` if it went or was changed since, for a changed entry has another name.
    pub fn entry(&self, name: EntryId, now: Nanos) -> Option<FlowStats> {
        self.is_there(name).then(|| self.stats_of(name.id, now))
    }

    pub(super) fn name(&self, id: RecordId) -> EntryId {
        EntryId { id, version: self.store.arena.cold(id).version }
    }

    pub(super) fn is_there(&self, name: EntryId) -> bool {
        self.store.arena.cold(name.id).version == name.version
    }

    /// The entry that a [`crate::Snapshot::resolve`] found; `None` if it went or was changed since.
    pub fn found(&self, hit: &Hit, now: Nanos) -> Option<FlowStats> {
        let record = self.store.arena.view().get(hit.id)?;
        let is_seen = record.is_visible(hit.generation) && record.is_visible(self.store.next);
        is_seen.then(|| self.stats_of(hit.id, now))
    }

    /// Sums over the entries that `filter` selects.
    pub fn aggregate(&self, filter: &FlowFilter) -> Aggregate {
        self.select(filter).fold(Aggregate::default(), |sum, id| {
            let (packets, bytes) = self.counts(id);
            Aggregate {
                packets: sum.packets.wrapping_add(packets),
                bytes: sum.bytes.wrapping_add(bytes),
                flows: sum.flows + 1,
            }
        })
    }

    /// The instructions that entries have, and how many have them: as many as there are distinct ones.
    pub fn instructions_in_use(&self) -> impl Iterator<Item = (&Instructions, u32)> {
        self.store.programs.in_use()
    }

    /// What entries and groups match this field to, or set it to: each value once or more often.
    pub fn values(&self, field: Field) -> impl Iterator<Item = u128> {
        let set = move |action: &Action| match *action {
            Action::SetField { field: other, value, .. } if other == field => Some(value),
            _ => None,
        };
        let matched =
            self.tables.iter().flatten().flat_map(move |table| table.matched(&self.store, field));
        let by_entries = self.instructions_in_use().flat_map(|(content, _)| actions(content));
        let buckets = self.groups().views().flat_map(|group| group.buckets);
        let by_groups = buckets.flat_map(|bucket| &bucket.actions);
        matched.chain(by_entries.chain(by_groups).filter_map(set))
    }

    /// Entries in all tables.
    pub fn entries(&self) -> u64 {
        self.tables.iter().flatten().map(|table| u64::from(table.rules)).sum()
    }

    /// What entries, groups and meters take, in units of a plain entry: one for each entry, group, bucket and meter, and [`units`] of their actions.
    pub fn weight(&self) -> u64 {
        let ours = self.entries() + units(self.store.programs.actions());
        ours + self.groups().weight() + self.meters().len() as u64
    }

    /// Statistics of one table; zeros for one that was never used.
    pub fn table_stats(&self, number: u8) -> TableStats {
        let limit = self.limits.entries_per_table;
        let Some(table) = self.tables.get(usize::from(number)).and_then(Option::as_ref) else {
            return TableStats { limit, template: "empty", ..TableStats::default() };
        };
        let view = table.view();
        let (lookups, matches, probes) = view.counters.read();
        TableStats {
            active: table.rules,
            lookups,
            matches,
            probes,
            limit,
            masks: table.masks() as u32,
            template: view.template.name(),
            probe_bound: view.template.probe_bound(),
        }
    }

    fn select<'a>(&'a self, filter: &'a FlowFilter) -> impl Iterator<Item = RecordId> + 'a {
        let wanted = |table: &&Table| filter.table.is_none_or(|number| number == table.number);
        self.tables
            .iter()
            .flatten()
            .filter(wanted)
            .flat_map(|table| table.select(&self.store, filter))
    }

    pub(super) fn stats_of(&self, id: RecordId, now: Nanos) -> FlowStats {
        let (record, cold) = (self.store.arena.record(id), self.store.arena.cold(id));
        let rule = record.rule();
        let table = self.tables[usize::from(cold.table)].as_ref().expect("an entry's table exists");
        let tuple =
            table.tuples[usize::from(rule.mask)].as_ref().expect("an entry's mask is in use");
        let (packets, bytes) = self.counts(id);
        FlowStats {
            table: cold.table,
            key: key_of(&self.store, tuple, id),
            mask: *tuple.plan.mask(),
            priority: rule.priority,
            cookie: record.cookie(),
            idle_timeout_s: cold.idle_s,
            hard_timeout_s: cold.hard_s,
            flags: cold.flags(),
            note: cold.note,
            instructions: self.instructions(id),
            packets,
            bytes,
            age_ns: cold.age(now),
            idle_ns: (now.0 as i64).saturating_sub(self.last_use(id)).max(0) as u64,
        }
    }

    pub(super) fn instructions(&self, id: RecordId) -> Arc<Instructions> {
        self.store.programs.get(self.store.arena.record(id).rule().program).instructions.clone()
    }

    /// When an entry was last used or, if that is later, added, in nanoseconds; before the clock began for one that came back.
    pub(super) fn last_use(&self, id: RecordId) -> i64 {
        let home = self.store.arena.record(id).home();
        let (here, known) =
            (self.store.arena.record(home).last_use(), self.store.arena.cold(id).used());
        here.map_or(known, |here| known.max(here.0 as i64))
    }

    fn counts(&self, id: RecordId) -> (u64, u64) {
        let home = self.store.arena.record(id).home();
        self.store.arena.record(home).counts()
    }
}
