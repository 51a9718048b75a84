//! One OpenFlow table as its owner changes it: which entries there are, whatever template workers see.
//!
//! **Invariants.** Every entry has one current record. Of the entries with one mask and match, the one of highest
//! priority (the *head*) is in the mask's index; the others hang below it (`covered`), since no packet can reach
//! them. A record that some snapshot sees never changes: a modified, covered or uncovered entry gets a new record, which
//! counts on the old one (its *home*).

mod compile;
mod covered;
mod entry;
mod select;

pub(crate) use entry::NewEntry;

use crate::program::Onward;
use crate::store::RecordId;
use crate::store::Store;
use crate::template::{TableView, Tuple};
use crate::versions::{Pending, TableVersion};
use compile::{Changes, Compiler};
use covered::Covered;
use std::collections::HashMap;
use std::sync::Arc;
use wire::Key;

/// Most distinct masks: records name them by 16 bits.
const MASKS: usize = 1 << 16;

/// One table.
pub(crate) struct Table {
    pub number: u8,
    pub tuples: Vec<Option<Tuple>>,
    by_mask: HashMap<Key, u16>,
    free: Vec<u16>,
    /// Entries.
    pub rules: u32,
    view: Arc<TableView>,
    /// The view no longer says what the table holds.
    stale: bool,
    compiler: Compiler,
    changes: Changes,
    /// Entries that may come before room for their masks must be counted again.
    spare: usize,
    /// Entries that lead to another table.
    gotos: u32,
    covered: Covered,
    /// Which keys find something else from the next snapshot on.
    pending: Pending,
}

impl Table {
    pub fn new(number: u8) -> Self {
        Self {
            number,
            tuples: Vec::new(),
            by_mask: HashMap::new(),
            free: Vec::new(),
            rules: 0,
            view: Arc::default(),
            stale: false,
            compiler: Compiler::None,
            changes: Changes::default(),
            spare: 0,
            gotos: 0,
            covered: Covered::default(),
            pending: Pending::default(),
        }
    }

    /// The version of what snapshot `serial` shows, `before` being that of the one before it.
    pub fn version(&mut self, before: Option<&TableVersion>, serial: u64) -> TableVersion {
        let before = before.cloned().unwrap_or_default();
        if self.pending.is_empty() {
            return before;
        }
        let pending = std::mem::take(&mut self.pending);
        TableVersion { since: serial, log: Arc::new(before.log.with(pending, serial)) }
    }

    /// Distinct masks in use.
    pub fn masks(&self) -> usize {
        self.by_mask.len()
    }

    /// What workers see since the last [`Table::publish`].
    pub fn view(&self) -> &Arc<TableView> {
        &self.view
    }

    /// The view for the next snapshot; the same one if nothing changed that it would show.
    pub fn publish(&mut self, store: &Store, most_masks: usize) -> &Arc<TableView> {
        if std::mem::take(&mut self.stale) {
            let template = self.compile(store, most_masks);
            let all = self.by_mask.get(&Key::default()).copied();
            self.view = Arc::new(TableView {
                template,
                mask: self.mask(),
                counters: self.view.counters.clone(),
                all,
                is_last: self.gotos == 0,
            });
        }
        &self.view
    }

    /// All bits that its masks look at.
    pub fn mask(&self) -> Key {
        self.by_mask.keys().fold(Key::default(), |all, mask| all.union(mask))
    }

    /// Whether the next [`Table::publish`] makes a new view.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// The mask's tuple and its number.
    pub fn tuple(&self, mask: &Key) -> Option<(u16, &Tuple)> {
        let number = *self.by_mask.get(mask)?;
        Some((number, self.tuples[number as usize].as_ref()?))
    }

    /// Tuples in use, with their numbers.
    pub fn tuples(&self) -> impl Iterator<Item = (u16, &Tuple)> {
        self.tuples
            .iter()
            .enumerate()
            .filter_map(|(number, tuple)| Some((number as u16, tuple.as_ref()?)))
    }

    fn tuple_mut(&mut self, number: u16) -> &mut Tuple {
        self.tuples[number as usize].as_mut().expect("an entry's mask is in use")
    }

    /// The mask's number, given out now if need be; `None` when all are in use.
    fn open(&mut self, mask: &Key) -> Option<u16> {
        if let Some(&number) = self.by_mask.get(mask) {
            return Some(number);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.tuples.len() == MASKS => return None,
            None => {
                self.tuples.push(None);
                (self.tuples.len() - 1) as u16
            }
        };
        self.tuples[number as usize] = Some(Tuple::new(mask));
        self.by_mask.insert(*mask, number);
        Some(number)
    }

    /// Forgets a mask without entries.
    fn close(&mut self, number: u16) {
        if self.tuples[number as usize].as_ref().is_some_and(|tuple| tuple.rules == 0) {
            let tuple = self.tuples[number as usize].take().expect("just seen");
            self.by_mask.remove(tuple.plan.mask());
            self.free.push(number);
            self.stale = true;
            self.note_all();
        }
    }

    /// Takes a record that nobody sees any more out of its index.
    pub fn unindex(&mut self, store: &Store, id: RecordId) {
        let number = store.arena.record(id).rule().mask;
        // The number may stand for another mask by now, whose index does not have the record.
        let fits = |tuple: &&mut Tuple| tuple.plan.words() <= store.arena.record(id).key_room();
        if let Some(tuple) = self.tuples[number as usize].as_mut().filter(fits) {
            let (_, hash) = tuple.key_of(store, id);
            tuple.index.remove(hash, id);
        }
    }

    /// Accounts for an entry's program that comes (`by` 1) or goes (-1).
    fn note_program(&mut self, store: &Store, program: u32, by: i32) {
        if store.programs.get(program).onward != Onward::End {
            let had = self.gotos > 0;
            self.gotos = self.gotos.wrapping_add_signed(by);
            self.stale |= had != (self.gotos > 0);
        }
    }

    /// Bytes of the indexes.
    pub fn bytes(&self) -> usize {
        self.tuples().map(|(_, tuple)| tuple.index.bytes() + size_of::<Tuple>()).sum::<usize>()
            + self.covered.bytes()
    }
}
