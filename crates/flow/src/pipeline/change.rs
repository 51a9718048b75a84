//! Flow-mods and expiry (OpenFlow 1.3.5 §6.4, §6.5).

use super::report::EntryId;
use super::timers::Due;
use super::{Leaving, Pipeline};
use crate::flow_mod::{FlowCommand, FlowMod, FlowModError};
use crate::stats::{FlowFilter, Removed, RemovedReason};
use crate::store::{Full, RecordId};
use crate::table::{NewEntry, Table};
use crate::time::Nanos;
use crate::validate::validate;
use crate::{Instructions, program};

/// What a modify or delete is still to look at: records that were there when it began.
#[derive(Debug)]
pub struct Chosen {
    filter: FlowFilter,
    /// Table, number of a mask, and a record of it.
    heads: std::vec::IntoIter<(u8, u16, RecordId)>,
    /// The entries of a strict change, one in a table.
    exact: Vec<EntryId>,
}

impl Chosen {
    /// Whether the change is made.
    pub fn is_done(&self) -> bool {
        self.heads.len() == 0 && self.exact.is_empty()
    }
}

/// What a portion of a change did.
#[derive(Debug, Default)]
pub struct Portion {
    /// Entries that went.
    pub removed: Vec<Removed>,
    /// Entries that are other than before, by their new names.
    pub modified: Vec<EntryId>,
    /// Records that were looked at.
    pub looked_at: usize,
    /// Why it ended early.
    pub failed: Option<FlowModError>,
}

impl Pipeline {
    /// Applies one flow-mod. Returns the entries that went; [`Pipeline::departed`] says when to tell the controller of them.
    ///
    /// # Errors
    /// The tables are as before; only a modify of many entries that runs out of room ([`FlowModError::TableFull`]) may
    /// have changed some of them.
    pub fn flow_mod(&mut self, change: &FlowMod, now: Nanos) -> Result<Vec<Removed>, FlowModError> {
        if change.command == FlowCommand::Add {
            let done = self.add(change, now).map(|()| Vec::new());
            self.arm_renewed();
            return done;
        }
        let mut chosen = self.choose(change)?;
        let Portion { removed, failed, .. } = self.go_on(change, &mut chosen, usize::MAX, now);
        failed.map_or(Ok(removed), Err)
    }

    /// Begins a modify or delete, for [`Pipeline::go_on`]: where its entries may be. Costs no look at any of them.
    ///
    /// # Errors
    /// The change cannot be.
    pub fn choose(&self, change: &FlowMod) -> Result<Chosen, FlowModError> {
        let deletes = matches!(change.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        let numbers = match change.table {
            _ if !deletes => {
                let number = self.check(change)?;
                number..=number
            }
            Some(number) if !self.has_table(number) => return Err(FlowModError::BadTable),
            Some(number) => number..=number,
            None => 0..=self.limits.tables.saturating_sub(1),
        };
        let filter = FlowFilter {
            table: None,
            key: change.key,
            mask: change.mask,
            cookie: change.cookie,
            cookie_mask: change.cookie_mask,
            out_port: change.out_port.filter(|_| deletes),
            out_group: change.out_group.filter(|_| deletes),
        };
        let (mut heads, mut exact) = (Vec::new(), Vec::new());
        let tables = numbers.filter_map(|number| self.tables.get(usize::from(number))?.as_ref());
        for table in tables {
            if matches!(change.command, FlowCommand::ModifyStrict | FlowCommand::DeleteStrict) {
                let found = table.strict(&self.store, &change.key, &change.mask, change.priority);
                let found = found.filter(|&id| table.passes(&self.store, id, &filter));
                exact.extend(found.map(|id| self.name(id)));
            } else {
                let found = table.heads(&self.store, &filter).into_iter();
                heads.extend(found.map(|(mask, id)| (table.number, mask, id)));
            }
        }
        Ok(Chosen { filter, heads: heads.into_iter(), exact })
    }

    /// Looks at no more than so many records of a change, and changes the entries that it means; those that went since are no longer meant. What became of
    /// the change until it is done is for who publishes in between.
    pub fn go_on(
        &mut self,
        change: &FlowMod,
        chosen: &mut Chosen,
        most: usize,
        now: Nanos,
    ) -> Portion {
        let mut portion = Portion::default();
        for name in std::mem::take(&mut chosen.exact) {
            portion.looked_at += 1;
            if self.is_there(name) {
                self.change_one(change, name.id, now, &mut portion);
            }
        }
        let Chosen { filter, heads, .. } = chosen;
        while portion.failed.is_none() && portion.looked_at < most {
            let Some((number, mask, id)) = heads.next() else { break };
            portion.looked_at += 1;
            let table = self.tables[usize::from(number)].as_ref();
            let entries = table.map(|table| table.under(&self.store, filter, (mask, id)));
            for id in entries.unwrap_or_default() {
                self.change_one(change, id, now, &mut portion);
            }
        }
        self.arm_renewed();
        portion
    }

    fn change_one(&mut self, change: &FlowMod, id: RecordId, now: Nanos, portion: &mut Portion) {
        match change.command {
            FlowCommand::Delete | FlowCommand::DeleteStrict => {
                portion.removed.push(self.remove(id, RemovedReason::Delete, now));
            }
            _ => match self.modify(change, id) {
                Ok(current) => portion.modified.push(self.name(current)),
                Err(error) => portion.failed = Some(error),
            },
        }
    }

    /// Removes entries whose time has come, and returns them.
    pub fn expire(&mut self, now: Nanos) -> Vec<Removed> {
        self.expire_some(usize::MAX, now)
    }

    /// As [`Pipeline::expire`], at most so many at a time.
    pub fn expire_some(&mut self, most: usize, now: Nanos) -> Vec<Removed> {
        let mut gone = Vec::new();
        for due in self.timers.take_due(most, now) {
            if self.store.arena.cold(due.id).version != due.version {
                continue;
            }
            match self.expired(due.id, now) {
                Some(reason) => gone.push(self.remove(due.id, reason, now)),
                None => self.arm(due.id),
            }
        }
        self.arm_renewed();
        self.reclaim();
        gone
    }

    /// When [`Pipeline::expire`] has work next, at the earliest; `None` if no entry has a timeout.
    pub fn next_expiry(&self) -> Option<Nanos> {
        self.timers.next()
    }

    /// Removes the entries that use one of these groups or meters.
    pub(super) fn remove_users(
        &mut self,
        ids: &[u32],
        reason: RemovedReason,
        now: Nanos,
    ) -> Vec<Removed> {
        if ids.is_empty() {
            return Vec::new();
        }
        let uses = |instructions: &Instructions| match reason {
            RemovedReason::MeterDelete => {
                instructions.meter.is_some_and(|meter| ids.contains(&meter))
            }
            _ => program::actions(instructions)
                .any(|action| matches!(action, crate::Action::Group(id) if ids.contains(id))),
        };
        // As many looks as there are distinct instructions spare most deletions one at each entry.
        if !self.store.programs.in_use().any(|(instructions, _)| uses(instructions)) {
            return Vec::new();
        }
        let filter = FlowFilter::default();
        let all = self.tables.iter().flatten().flat_map(|table| table.select(&self.store, &filter));
        let users: Vec<_> = all.filter(|&id| uses(&self.instructions(id))).collect();
        let gone = users.into_iter().map(|id| self.remove(id, reason, now)).collect();
        self.arm_renewed();
        gone
    }

    fn add(&mut self, change: &FlowMod, now: Nanos) -> Result<(), FlowModError> {
        let number = self.check(change)?;
        let limit = self.limits.entries_per_table;
        let at = usize::from(number);
        if self.tables.len() <= at {
            self.tables.resize_with(at + 1, || None);
        }
        let table = self.tables[at].get_or_insert_with(|| Table::new(number));
        if change.flags.check_overlap
            && table.overlaps(&self.store, &change.key, &change.mask, change.priority)
        {
            return Err(FlowModError::Overlap { table: number });
        }
        let exists =
            || table.strict(&self.store, &change.key, &change.mask, change.priority).is_some();
        if table.rules >= limit && !exists() {
            return Err(FlowModError::TableFull {
                table: number,
                limit: "the table holds as many entries as it may",
            });
        }
        let full =
            |_| FlowModError::TableFull { table: number, limit: "records, masks or hash room" };
        let program = self.store.programs.take(&change.instructions).ok_or(Full).map_err(full)?;
        let entry = NewEntry {
            key: &change.key,
            mask: &change.mask,
            priority: change.priority,
            program,
            cookie: change.cookie,
            idle_s: change.idle_timeout_s,
            hard_s: change.hard_timeout_s,
            flags: change.flags,
            note: change.note,
            starts_afresh: change.starts_afresh,
            age_ns: change.age_ns,
            idle_ns: change.idle_ns,
            counted: change.counted,
            now,
        };
        match table.add(&mut self.store, &entry, usize::from(self.limits.masks)) {
            Ok(id) => {
                self.tables_change();
                self.arm(id);
                Ok(())
            }
            Err(error) => {
                self.store.programs.release(program);
                Err(full(error))
            }
        }
    }

    /// Modifies one entry; returns the record that it has now.
    fn modify(&mut self, change: &FlowMod, id: RecordId) -> Result<RecordId, FlowModError> {
        self.tables_change();
        let number = self.store.arena.cold(id).table;
        let table = self.tables[usize::from(number)].as_mut().expect("an entry's table exists");
        let full = |_| FlowModError::TableFull { table: number, limit: "records or hash room" };
        let program = self.store.programs.take(&change.instructions).ok_or(Full).map_err(full)?;
        let mut current = table.set_program(&mut self.store, id, program).map_err(|error| {
            self.store.programs.release(program);
            full(error)
        })?;
        if change.flags.reset_counts {
            current = table.reset_counts(&mut self.store, current).map_err(full)?;
        }
        if change.gives_cookie {
            self.store.arena.record(current).set_cookie(change.cookie);
        }
        Ok(current)
    }

    /// The table of an add or modify whose instructions can be executed there.
    fn check(&self, change: &FlowMod) -> Result<u8, FlowModError> {
        let table =
            change.table.filter(|&table| self.has_table(table)).ok_or(FlowModError::BadTable)?;
        if let Some(goto) =
            change.instructions.goto.filter(|&goto| goto <= table || !self.has_table(goto))
        {
            return Err(FlowModError::BadGoto { table, goto });
        }
        validate(change, |group| self.groups.contains(group), |meter| self.meters.contains(meter))?;
        Ok(table)
    }

    /// Removes an entry; returns it as it was last. Its counters may still grow, so the controller is told later
    /// ([`Pipeline::departed`]).
    fn remove(&mut self, id: RecordId, reason: RemovedReason, now: Nanos) -> Removed {
        let removed = Removed { reason, flow: self.stats_of(id, now) };
        let (home, waiting) = (self.store.arena.record(id).home(), self.store.waiting());
        self.take_out(id);
        if removed.flow.flags.send_flow_removed {
            let (generation, removed) = (self.store.next, removed.clone());
            // A record that no snapshot has is freed at once.
            match self.store.waiting() > waiting {
                true => self.leaving.push_back(Leaving { generation, home, removed }),
                false => self.departed.push(removed),
            }
        }
        removed
    }

    /// Removes an entry and tells nobody.
    pub(super) fn take_out(&mut self, id: RecordId) {
        let number = usize::from(self.store.arena.cold(id).table);
        let table = self.tables[number].as_mut().expect("an entry's table exists");
        table.remove(&mut self.store, id);
        self.tables_change();
    }

    fn tables_change(&mut self) {
        self.changed.tables = true;
    }

    fn expired(&self, id: RecordId, now: Nanos) -> Option<RemovedReason> {
        let deadlines = self.deadlines(id);
        let passed = |deadline: Option<Nanos>| deadline.is_some_and(|deadline| deadline <= now);
        match deadlines {
            (_, hard) if passed(hard) => Some(RemovedReason::HardTimeout),
            (idle, _) if passed(idle) => Some(RemovedReason::IdleTimeout),
            _ => None,
        }
    }

    /// When the entry goes unless it is used, and when it goes in any case.
    fn deadlines(&self, id: RecordId) -> (Option<Nanos>, Option<Nanos>) {
        let cold = self.store.arena.cold(id);
        (after(self.last_use(id), cold.idle_s), after(cold.created, cold.hard_s))
    }

    /// Puts an entry on the calendar if it has a timeout.
    fn arm(&mut self, id: RecordId) {
        let first = match self.deadlines(id) {
            (Some(idle), Some(hard)) => idle.min(hard),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        self.timers.add(first, Due { id, version: self.store.arena.cold(id).version });
        if self.timers.is_crowded() {
            let arena = &self.store.arena;
            self.timers.retain(|due| arena.cold(due.id).version == due.version);
        }
    }

    /// Puts the new records of entries that went on under them on the calendar.
    pub(super) fn arm_renewed(&mut self) {
        for id in std::mem::take(&mut self.store.renewed) {
            self.arm(id);
        }
    }
}

/// The moment so many seconds after `from`, if there are any.
fn after(from: i64, seconds: u16) -> Option<Nanos> {
    let moment = from.saturating_add(i64::from(seconds) * 1_000_000_000);
    (seconds > 0).then(|| Nanos(moment.max(0) as u64))
}
