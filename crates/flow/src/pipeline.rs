//! The control thread's side of a switch: its tables, groups, meters, ports and settings.
//!
//! **Owner**: one thread. What workers see is a [`Snapshot`], made by [`Pipeline::snapshot`]; making one copies the
//! tables' views that changed, a few pointers each, however many entries there are.
//!
//! **Memory.** The pipeline keeps every snapshot until it alone holds it, so snapshots and what only they still need are
//! freed on its thread, never on a worker; [`Pipeline::snapshot`] and [`Pipeline::expire`] do so.

mod change;
mod report;
mod tables;
#[cfg(test)]
mod tests;
mod timers;

pub use change::{Chosen, Portion};
pub use report::EntryId;

use crate::config::{Limits, SwitchConfig};
use crate::group::{GroupMod, GroupModError, GroupTable};
use crate::mac::MacTable;
use crate::meter::{MeterMod, MeterModError, MeterTable};
use crate::ports::{PortState, PortTable};
use crate::serials::Serials;
use crate::snapshot::{Snapshot, View};
use crate::stats::{Removed, RemovedReason};
use crate::store::{Afterwards, RecordId, Store};
use crate::table::Table;
use crate::table_set::TableSet;
use crate::time::Nanos;
use crate::versions::Versions;
use std::collections::VecDeque;
use std::sync::Arc;
use timers::Timers;

/// Addresses a switch learns. Chosen: as Open vSwitch allows by default, times four.
const LEARNED_ADDRESSES: usize = 8192;

/// The tables of one switch, as their owner sees them.
pub struct Pipeline {
    limits: Limits,
    config: SwitchConfig,
    store: Store,
    tables: Vec<Option<Table>>,
    /// Tables that the pipeline has; no other holds an entry, and none leads to another.
    present: TableSet,
    timers: Timers,
    ports: Arc<PortTable>,
    groups: GroupTable,
    meters: MeterTable,
    macs: Arc<MacTable>,
    /// Snapshots that someone may still hold, oldest first; the last is the latest.
    issued: VecDeque<Arc<Snapshot>>,
    serials: Serials,
    /// The versions of the parts as the latest snapshot has them.
    versions: Versions,
    /// What the latest snapshot no longer says.
    changed: Changed,
    /// Where the walk that keeps generations comparable is.
    sweep: RecordId,
    /// Entries that went and that some worker may still count on, oldest first.
    leaving: VecDeque<Leaving>,
    /// Entries that went for good and that the controller wants to know of.
    departed: Vec<Removed>,
}

/// Records freed at a time. Chosen: half a millisecond.
const RECLAIMED: usize = 1024;

/// Parts that changed since the latest snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Changed {
    tables: bool,
    ports: bool,
    settings: bool,
    groups: bool,
    meters: bool,
}

/// An entry that went, until its counters are final.
struct Leaving {
    /// The first snapshot without it.
    generation: u32,
    /// The record that counts for it.
    home: RecordId,
    removed: Removed,
}

impl Pipeline {
    /// An empty pipeline; pipelines that share workers share `serials`.
    pub fn new(limits: Limits, serials: &Serials) -> Self {
        Self {
            limits,
            config: SwitchConfig::default(),
            store: Store::new(limits.secret),
            tables: Vec::new(),
            present: (0..limits.tables).collect(),
            timers: Timers::default(),
            ports: Arc::default(),
            groups: GroupTable::default(),
            meters: MeterTable::default(),
            macs: Arc::new(MacTable::new(limits.secret, LEARNED_ADDRESSES)),
            issued: VecDeque::new(),
            serials: serials.clone(),
            versions: Versions::default(),
            changed: Changed::default(),
            sweep: RecordId::NONE,
            leaving: VecDeque::new(),
            departed: Vec::new(),
        }
    }

    /// What it may grow to.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The settings in force.
    pub fn config(&self) -> SwitchConfig {
        self.config
    }

    /// Replaces the settings.
    pub fn set_config(&mut self, config: SwitchConfig) {
        self.changed.settings |= self.config != config;
        self.config = config;
    }

    /// Replaces the ports.
    pub fn set_ports(&mut self, ports: Vec<PortState>) {
        let ports = Arc::new(PortTable::after(&self.ports, ports));
        // Also behind ports that come up: a worker may have learned from the old one after it went.
        self.macs.flush_ports(|port| !(self.ports.is_live(port) && ports.is_live(port)));
        self.ports = ports;
        self.groups.set_ports(&self.ports);
        (self.changed.ports, self.changed.groups) = (true, true);
    }

    /// The ports.
    pub fn ports(&self) -> &PortTable {
        &self.ports
    }

    /// Changes groups. Returns the entries that went with deleted groups.
    ///
    /// # Errors
    /// The groups are as before.
    pub fn group_mod(
        &mut self,
        change: GroupMod,
        now: Nanos,
    ) -> Result<Vec<Removed>, GroupModError> {
        let gone = self.groups.apply(change, &self.ports, now)?;
        self.changed.groups = true;
        Ok(self.remove_users(&gone, RemovedReason::GroupDelete, now))
    }

    /// The groups.
    pub fn groups(&self) -> &GroupTable {
        &self.groups
    }

    /// Changes meters. Returns the entries that went with deleted meters.
    ///
    /// # Errors
    /// The meters are as before.
    pub fn meter_mod(
        &mut self,
        change: MeterMod,
        now: Nanos,
    ) -> Result<Vec<Removed>, MeterModError> {
        let gone = self.meters.apply(change, now)?;
        self.changed.meters = true;
        Ok(self.remove_users(&gone, RemovedReason::MeterDelete, now))
    }

    /// The meters.
    pub fn meters(&self) -> &MeterTable {
        &self.meters
    }

    /// The learned addresses, shared with the workers.
    pub fn mac_table(&self) -> &MacTable {
        &self.macs
    }

    /// The state as it is now, for workers. Cheap, and free if nothing changed.
    pub fn snapshot(&mut self) -> Arc<Snapshot> {
        let unchanged = self.changed == Changed::default();
        if let Some(latest) = self.issued.back().filter(|_| unchanged) {
            return latest.clone();
        }
        let serial = self.serials.next();
        let snapshot = Arc::new(self.publish(serial));
        self.issued.push_back(snapshot.clone());
        self.store.next = self.store.next.wrapping_add(1);
        self.reclaim();
        self.keep_comparable();
        snapshot
    }

    fn publish(&mut self, serial: u64) -> Snapshot {
        self.count_versions(serial);
        let before = self.issued.back();
        let same_tables =
            before.filter(|_| self.tables.iter().flatten().all(|table| !table.is_stale()));
        let view = match same_tables {
            Some(before) => before.view.clone(),
            None => {
                let most_masks = usize::from(self.limits.masks);
                let store = &self.store;
                let tables = self.tables.iter_mut().map(|table| {
                    table.as_mut().map(|table| table.publish(store, most_masks).clone())
                });
                let views = tables.collect::<Vec<_>>();
                Arc::new(View::new(views, self.tables.iter().flatten()))
            }
        };
        if before.is_none_or(|before| before.view.union != view.union) {
            self.versions.layout = serial;
        }
        Snapshot {
            switch: self.limits.switch,
            generation: self.store.next,
            serial,
            versions: self.versions.clone(),
            secret: self.store.secret,
            arena: self.store.arena.view().clone(),
            programs: self.store.programs.view().clone(),
            view,
            config: self.config,
            ports: self.ports.clone(),
            groups: self.groups.view(),
            meters: self.meters.clone(),
            macs: self.macs.clone(),
            programs_depth: self.store.programs.depth(),
            reshapes_frames: self.store.programs.reshape_frames(),
        }
    }

    /// Gives the parts that changed the version `serial`.
    fn count_versions(&mut self, serial: u64) {
        let Changed { tables, ports, settings, groups, meters } = std::mem::take(&mut self.changed);
        let versions = &mut self.versions;
        if versions.born == 0 {
            *versions = Versions::of(serial);
        }
        for (changed, version) in [
            (ports, &mut versions.ports),
            (settings, &mut versions.settings),
            (groups, &mut versions.groups),
            (meters, &mut versions.meters),
        ] {
            if changed {
                *version = serial;
            }
        }
        if tables {
            let tables = self.tables.iter_mut().enumerate();
            let tables = tables.map(|(number, table)| {
                let before = versions.table_version(number as u8);
                table.as_mut().map_or_else(Default::default, |table| table.version(before, serial))
            });
            let tables = tables.collect();
            versions.set_tables(tables);
        }
        versions.front = versions.table(0).max(versions.ports).max(versions.settings);
    }

    /// Frees what no snapshot in use sees, [`RECLAIMED`] records at most; whether there is more. So a change of very many entries frees them in portions.
    pub fn reclaim(&mut self) -> bool {
        while self.issued.len() > 1
            && self.issued.front().is_some_and(|oldest| Arc::strong_count(oldest) == 1)
        {
            self.issued.pop_front();
        }
        let oldest = self.oldest();
        self.depart(oldest);
        for _ in 0..RECLAIMED {
            let Some(retired) = self.store.pop_unseen(oldest) else { return false };
            self.clear_away(retired.id, retired.afterwards);
        }
        true
    }

    /// Reads the counters of entries that no worker sees any more, before their records are freed.
    fn depart(&mut self, oldest: u32) {
        let is_unseen = |leaving: &Leaving| (oldest.wrapping_sub(leaving.generation) as i32) >= 0;
        while self.leaving.front().is_some_and(is_unseen) {
            let Some(Leaving { home, mut removed, .. }) = self.leaving.pop_front() else { return };
            (removed.flow.packets, removed.flow.bytes) = self.store.arena.record(home).counts();
            self.departed.push(removed);
        }
    }

    /// Whether entries went whose counters are not final yet: workers may be at work with a snapshot that has them.
    pub fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// The entries that went and that the controller wants to know of (`OFPFF_SEND_FLOW_REM`), each once, with their last counters: when
    /// every worker has done with the snapshots that have them (OpenFlow 1.3.5 §6.4: the counters are those at the end).
    pub fn departed(&mut self) -> Vec<Removed> {
        self.reclaim();
        std::mem::take(&mut self.departed)
    }

    fn clear_away(&mut self, id: RecordId, afterwards: Afterwards) {
        let table = self.store.arena.cold(id).table;
        if let Some(table) =
            self.tables[usize::from(table)].as_mut().filter(|_| afterwards != Afterwards::FreeHome)
        {
            table.unindex(&self.store, id);
        }
        if afterwards != Afterwards::Unindex {
            self.store.arena.free(id);
        }
    }

    /// The oldest generation in use.
    fn oldest(&self) -> u32 {
        self.issued.front().map_or(self.store.next, |snapshot| snapshot.generation)
    }

    /// Moves the birth of one record along, so that no generation is ever 2³¹ older than the one it is compared with:
    /// the walk passes all records (at most 3 × 2²⁴) long before.
    fn keep_comparable(&mut self) {
        if let Some(next) = self.store.arena.walk(self.sweep) {
            self.sweep = next;
            self.store.arena.record(next).refresh(self.oldest());
        }
    }

    /// Bytes that entries, their indexes and counters occupy.
    pub fn memory(&self) -> usize {
        self.store.arena.bytes()
            + self.tables.iter().flatten().map(Table::bytes).sum::<usize>()
            + self.timers.len() * 8
    }
}
