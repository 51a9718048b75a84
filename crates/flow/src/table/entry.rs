//! Adding, replacing and removing one entry.

use super::Table;
use crate::flow_mod::FlowFlags;
use crate::store::{Afterwards, Store};
use crate::store::{Full, RecordId, Rule};
use crate::tally::Counted;
use crate::time::Nanos;
use wire::Key;

/// An entry to add.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEntry<'a> {
    pub key: &'a Key,
    pub mask: &'a Key,
    pub priority: u16,
    /// A program taken for this entry.
    pub program: u32,
    pub cookie: u64,
    pub idle_s: u16,
    pub hard_s: u16,
    pub flags: FlowFlags,
    pub note: u32,
    pub starts_afresh: bool,
    pub age_ns: u64,
    pub idle_ns: u64,
    pub counted: Counted,
    pub now: Nanos,
}

impl Table {
    /// Adds an entry or replaces the one with the same match and priority. Returns its record.
    ///
    /// # Errors
    /// [`Full`]: out of records, masks or hash room; the table is as before, and the program is still the caller's.
    pub fn add(
        &mut self,
        store: &mut Store,
        entry: &NewEntry<'_>,
        most_masks: usize,
    ) -> Result<RecordId, Full> {
        let replaces =
            |table: &Self| table.strict(store, entry.key, entry.mask, entry.priority).is_some();
        if !self.has_room(most_masks) && !replaces(self) {
            return Err(Full);
        }
        let number = self.open(entry.mask).ok_or(Full)?;
        let added = self.add_to(store, number, entry);
        if added.is_err() {
            self.close(number);
        }
        added
    }

    fn add_to(
        &mut self,
        store: &mut Store,
        number: u16,
        entry: &NewEntry<'_>,
    ) -> Result<RecordId, Full> {
        let tuple = self.tuple_mut(number);
        let (packed, hash) = tuple.pack(store, entry.key);
        let words = tuple.plan.words();
        let head = tuple.find(store, &packed[..words], hash);
        if let Some(same) = head.and_then(|head| self.in_chain(store, head, entry.priority)) {
            return self.replace_with(store, same, entry);
        }
        let id = store.arena.allocate(words).ok_or(Full)?;
        let rule = Rule { program: entry.program, priority: entry.priority, mask: number };
        // One that comes back was not used here: its cold part knows when it was.
        let written = if entry.idle_ns == 0 { entry.now } else { Nanos(0) };
        store.arena.record(id).write(&packed[..words], rule, entry.cookie, id, written);
        store.arena.record(id).count_as_guest(entry.counted.packets, entry.counted.bytes);
        fill_cold(store, id, self.number, entry);
        if let Err(full) = self.link(store, number, head, id, hash) {
            store.arena.free(id);
            return Err(full);
        }
        self.note_program(store, entry.program, 1);
        let changed = self.tuple_mut(number).joins(entry.priority, entry.key);
        self.stale |= changed;
        self.rules += 1;
        Ok(id)
    }

    /// Puts a new record below `head`, or above it.
    fn link(
        &mut self,
        store: &mut Store,
        number: u16,
        head: Option<RecordId>,
        id: RecordId,
        hash: u64,
    ) -> Result<(), Full> {
        let priority = store.arena.record(id).rule().priority;
        let Some(head) = head else { return self.show(store, number, id, hash) };
        let highest = store.arena.record(head).rule().priority;
        if highest > priority {
            self.covered.put(head, priority, id);
            return Ok(());
        }
        // The index is grown first, so that a refusal leaves the old head in place.
        self.show(store, number, id, hash)?;
        let hidden = match self.hide(store, head, hash) {
            Ok(hidden) => hidden,
            Err(full) => {
                store.arena.record(id).die(store.next);
                self.tuple_mut(number).index.remove(hash, id);
                return Err(full);
            }
        };
        self.covered.pass(head, id);
        self.covered.put(id, highest, hidden);
        Ok(())
    }

    /// Makes a record visible from the next snapshot on.
    pub(super) fn show(
        &mut self,
        store: &mut Store,
        number: u16,
        id: RecordId,
        hash: u64,
    ) -> Result<(), Full> {
        store.arena.record(id).be_born(store.next);
        let result = self.tuple_mut(number).insert(store, hash, id);
        if result.is_err() {
            store.arena.record(id).die(store.next);
        }
        // A new index view, a first or second entry, or a compiled template: all need a new view.
        self.stale |= result? || !self.is_found_by_hash(number);
        self.note(store, id);
        Ok(())
    }

    /// Makes a head invisible from the next snapshot on; gives the record under which the entry lives on.
    fn hide(&mut self, store: &mut Store, id: RecordId, hash: u64) -> Result<RecordId, Full> {
        if self.is_unpublished(store, id) {
            self.note(store, id);
            let number = store.arena.record(id).rule().mask;
            store.arena.record(id).die(store.next);
            self.tuple_mut(number).index.remove(hash, id);
            return Ok(id);
        }
        let rule = store.arena.record(id).rule();
        let copy = renew(store, id, rule).ok_or(Full)?;
        self.fade(store, id);
        Ok(copy)
    }

    /// Ends a published record whose entry lives on under another one.
    fn fade(&mut self, store: &mut Store, id: RecordId) {
        self.note(store, id);
        let is_home = store.arena.record(id).home() == id;
        store.arena.record(id).die(store.next);
        store.arena.forget(id);
        store.retire(id, if is_home { Afterwards::Unindex } else { Afterwards::Free });
        self.stale |= !self.is_found_by_hash(store.arena.record(id).rule().mask);
    }

    /// Whether workers find entries of this mask by its index, so that no new view is needed.
    fn is_found_by_hash(&self, number: u16) -> bool {
        self.view.template.finds_new_entries(number)
    }

    fn is_unpublished(&self, store: &Store, id: RecordId) -> bool {
        !store.arena.record(id).is_visible(store.next.wrapping_sub(1))
    }

    /// Gives an entry another program. Returns its record from now on.
    ///
    /// # Errors
    /// [`Full`]: out of records or hash room; nothing changed.
    pub fn set_program(
        &mut self,
        store: &mut Store,
        id: RecordId,
        program: u32,
    ) -> Result<RecordId, Full> {
        let rule = store.arena.record(id).rule();
        let (old, new) = (rule.program, Rule { program, ..rule });
        let current = self.change(store, id, new)?;
        self.note_program(store, program, 1);
        self.note_program(store, old, -1);
        store.programs.release(old);
        Ok(current)
    }

    /// Starts an entry's counters afresh, and leaves its idle timeout's clock alone (OpenFlow 1.3.5 §6.4). The record must be this
    /// table's own copy.
    pub fn reset_counts(&mut self, store: &mut Store, id: RecordId) -> Result<RecordId, Full> {
        let record = store.arena.record(id);
        let (rule, last_use) = (record.rule(), store.arena.record(record.home()).last_use());
        let fresh = self.change_as(store, id, rule, Version::Afresh)?;
        if let Some(last_use) = last_use {
            store.arena.record(fresh).touch(crate::store::tick(last_use));
        }
        Ok(fresh)
    }

    fn change(&mut self, store: &mut Store, id: RecordId, rule: Rule) -> Result<RecordId, Full> {
        if self.is_unpublished(store, id) {
            store.arena.record(id).set_rule(rule);
            self.stale |= !self.is_found_by_hash(rule.mask);
            return Ok(id);
        }
        self.change_as(store, id, rule, Version::Counting)
    }

    /// Puts a new version of an entry in its place.
    fn change_as(
        &mut self,
        store: &mut Store,
        id: RecordId,
        rule: Rule,
        version: Version,
    ) -> Result<RecordId, Full> {
        let hash = self.tuple_mut(rule.mask).key_of(store, id).1;
        let head = self.head_of(store, id);
        let copy = renew(store, id, rule).ok_or(Full)?;
        if head == id {
            if let Err(full) = self.show(store, rule.mask, copy, hash) {
                store.arena.free(copy);
                return Err(full);
            }
            self.covered.pass(id, copy);
        } else {
            self.covered.put(head, rule.priority, copy);
        }
        match version {
            Version::Counting if head == id => self.fade(store, id),
            Version::Counting => drop_version(store, id),
            Version::Afresh => {
                store.arena.record(copy).set_home(copy);
                self.discard(store, id, head == id, hash);
            }
        }
        Ok(copy)
    }

    /// Lets go of a record and its home.
    fn discard(&mut self, store: &mut Store, id: RecordId, was_head: bool, hash: u64) {
        let (home, number) = (store.arena.record(id).home(), store.arena.record(id).rule().mask);
        store.arena.forget(id);
        if was_head {
            self.note(store, id);
        }
        if !was_head {
            store.arena.free(id);
        } else if store.arena.record(id).die(store.next) {
            store.retire(id, Afterwards::Free);
        } else {
            self.tuple_mut(number).index.remove(hash, id);
            store.arena.free(id);
        }
        if home != id {
            store.retire(home, Afterwards::FreeHome);
        }
    }

    fn replace_with(
        &mut self,
        store: &mut Store,
        id: RecordId,
        entry: &NewEntry<'_>,
    ) -> Result<RecordId, Full> {
        let rule = store.arena.record(id).rule();
        let is_fresh = entry.flags.reset_counts || entry.starts_afresh;
        let version = if is_fresh { Version::Afresh } else { Version::Counting };
        let current =
            self.change_as_published(store, id, Rule { program: entry.program, ..rule }, version)?;
        self.note_program(store, entry.program, 1);
        self.note_program(store, rule.program, -1);
        store.programs.release(rule.program);
        store.renewed.clear(); // whoever replaces an entry puts it on the calendar anew
        store.arena.forget(current);
        fill_cold(store, current, self.number, entry);
        let record = store.arena.record(current);
        record.set_cookie(entry.cookie);
        store.arena.record(record.home()).touch(crate::store::tick(entry.now));
        Ok(current)
    }

    /// Like [`Table::change_as`], in place where no snapshot looks.
    fn change_as_published(
        &mut self,
        store: &mut Store,
        id: RecordId,
        rule: Rule,
        version: Version,
    ) -> Result<RecordId, Full> {
        let counts_alone = store.arena.record(id).home() == id;
        if self.is_unpublished(store, id) && (version == Version::Counting || counts_alone) {
            return self.change(store, id, rule);
        }
        self.change_as(store, id, rule, version)
    }

    /// Removes an entry.
    pub fn remove(&mut self, store: &mut Store, id: RecordId) {
        let rule = store.arena.record(id).rule();
        let hash = self.tuple_mut(rule.mask).key_of(store, id).1;
        let head = self.head_of(store, id);
        let next = if head == id { self.covered.uncover(id) } else { None };
        self.covered.remove(head, rule.priority);
        self.discard(store, id, head == id, hash);
        self.stale |= !self.is_found_by_hash(rule.mask);
        if let Some(next) = next {
            self.covered.pass(id, next);
            // The removed head leaves its element's room only later; the index grows if need be.
            self.show(store, rule.mask, next, hash)
                .expect("an index takes at least two versions of a match");
        }
        self.note_program(store, rule.program, -1);
        store.programs.release(rule.program);
        let changed = self.tuple_mut(rule.mask).leaves(rule.priority);
        self.stale |= changed;
        self.rules -= 1;
        self.close(rule.mask);
    }

    /// `head` and the entries that it covers, highest priority first.
    pub(super) fn chain(&self, head: RecordId) -> impl Iterator<Item = RecordId> + '_ {
        std::iter::once(head).chain(self.covered.below(head))
    }

    /// Of these entries the one of this priority.
    pub(super) fn in_chain(
        &self,
        store: &Store,
        head: RecordId,
        priority: u16,
    ) -> Option<RecordId> {
        let is_head = store.arena.record(head).rule().priority == priority;
        if is_head { Some(head) } else { self.covered.at(head, priority) }
    }

    /// The visible record of the chain that `id` is in.
    fn head_of(&self, store: &Store, id: RecordId) -> RecordId {
        let tuple = self.tuples[store.arena.record(id).rule().mask as usize]
            .as_ref()
            .expect("an entry's mask is in use");
        let (packed, hash) = tuple.key_of(store, id);
        tuple.find(store, &packed[..tuple.plan.words()], hash).expect("a chain has a head")
    }
}

/// Whether a new version goes on counting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    Counting,
    Afresh,
}

/// A copy of `id` that counts on its home.
fn renew(store: &mut Store, id: RecordId, rule: Rule) -> Option<RecordId> {
    let words = store.arena.record(id).key_room(); // the whole class: how much of it is key does not matter here
    let copy = store.arena.allocate(words)?;
    store.arena.record(copy).copy_from(&store.arena.record(id), rule);
    let version = store.arena.cold(copy).version;
    let cold = crate::store::Cold { version, ..*store.arena.cold(id) };
    *store.arena.cold_mut(copy) = cold;
    if cold.idle_s != 0 || cold.hard_s != 0 {
        store.renewed.push(copy);
    }
    Some(copy)
}

/// Ends a version that was never visible, or no longer: kept only if later ones count on it.
fn drop_version(store: &mut Store, id: RecordId) {
    store.arena.forget(id);
    if store.arena.record(id).home() != id {
        store.arena.free(id);
    }
}

fn fill_cold(store: &mut Store, id: RecordId, table: u8, entry: &NewEntry<'_>) {
    let cold = store.arena.cold_mut(id);
    cold.created = entry.now.0 as i64 - entry.age_ns as i64;
    cold.used = crate::store::tick(Nanos(entry.age_ns.saturating_sub(entry.idle_ns)));
    cold.idle_s = entry.idle_s;
    cold.hard_s = entry.hard_s;
    cold.table = table;
    cold.set_flags(entry.flags);
    cold.note = entry.note;
}
