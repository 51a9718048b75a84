//! Which entries a filter selects, and which entries overlap.

use super::Table;
use crate::program::{actions, same_destination};
use crate::stats::FlowFilter;
use crate::store::RecordId;
use crate::store::Store;
use crate::template::{Tuple, key_of};
use crate::{Action, Instructions};
use wire::{Field, Key, WORDS};

/// Whether every bit of `coarse` is in `fine`.
fn refines(fine: &Key, coarse: &Key) -> bool {
    (0..WORDS).all(|i| coarse.0[i] & !fine.0[i] == 0)
}

impl Table {
    /// The entry with this match and priority.
    pub fn strict(&self, store: &Store, key: &Key, mask: &Key, priority: u16) -> Option<RecordId> {
        let (_, tuple) = self.tuple(mask)?;
        let (packed, hash) = tuple.pack(store, key);
        let head = tuple.find(store, &packed[..tuple.plan.words()], hash)?;
        self.in_chain(store, head, priority)
    }

    /// Whether an entry passes a filter's cookie, port and group.
    pub fn passes(&self, store: &Store, id: RecordId, filter: &FlowFilter) -> bool {
        passes(store, id, filter)
    }

    /// The entries at least as specific as `filter`, in no particular order.
    pub fn select<'a>(
        &'a self,
        store: &'a Store,
        filter: &'a FlowFilter,
    ) -> impl Iterator<Item = RecordId> + 'a {
        let tuples = self.tuples().filter(|(_, tuple)| refines(tuple.plan.mask(), &filter.mask));
        tuples
            .flat_map(move |(_, tuple)| self.candidates(store, tuple, filter))
            .filter(move |&id| passes(store, id, filter))
    }

    /// The records at the masks that `filter` may select of, each with its mask's number, for [`Table::under`]: costs a look at none of them.
    pub fn heads(&self, store: &Store, filter: &FlowFilter) -> Vec<(u16, RecordId)> {
        let mut found = Vec::new();
        for (number, tuple) in self.tuples() {
            let mask = tuple.plan.mask();
            if *mask == filter.mask {
                let (packed, hash) = tuple.pack(store, &filter.key);
                let head = tuple.find(store, &packed[..tuple.plan.words()], hash);
                found.extend(head.map(|head| (number, head)));
            } else if refines(mask, &filter.mask) {
                found.extend(tuple.index.view().elements().map(|id| (number, id)));
            }
        }
        found
    }

    /// What `filter` selects of the entries with the match of a record that [`Table::heads`] found, if that is still one.
    pub fn under(
        &self,
        store: &Store,
        filter: &FlowFilter,
        (number, id): (u16, RecordId),
    ) -> Vec<RecordId> {
        let Some(tuple) = self.tuples.get(usize::from(number)).and_then(Option::as_ref) else {
            return Vec::new();
        };
        let is_of_it = store.arena.record(id).rule().mask == number
            && store.arena.cold(id).table == self.number
            && refines(tuple.plan.mask(), &filter.mask)
            && key_of(store, tuple, id).masked(&filter.mask) == filter.key.masked(&filter.mask);
        // The slot may have been given up, and to another record, since.
        let is_there = || {
            let (packed, hash) = tuple.key_of(store, id);
            tuple.find(store, &packed[..tuple.plan.words()], hash) == Some(id)
        };
        if !is_of_it || !is_there() {
            return Vec::new();
        }
        self.chain(id).filter(|&id| passes(store, id, filter)).collect()
    }

    /// Whether an entry of the same priority could match a packet that this match matches.
    pub fn overlaps(&self, store: &Store, key: &Key, mask: &Key, priority: u16) -> bool {
        self.tuples().any(|(_, tuple)| {
            let (highest, lowest) = tuple.priorities();
            let both = mask.masked(tuple.plan.mask());
            (lowest..=highest).contains(&priority)
                && tuple.visible(store).any(|head| {
                    key_of(store, tuple, head).masked(&both) == key.masked(&both)
                        && self.in_chain(store, head, priority).is_some()
                })
        })
    }

    /// What entries match this field to, each value once or more often. Costs a look at each match with it.
    pub fn matched<'a>(
        &'a self,
        store: &'a Store,
        field: Field,
    ) -> impl Iterator<Item = u128> + 'a {
        let tuples = self.tuples().filter(move |(_, tuple)| tuple.plan.mask().get(field) != 0);
        tuples.flat_map(move |(_, tuple)| {
            let heads = tuple.index.view().elements();
            heads.map(move |id| key_of(store, tuple, id).get(field))
        })
    }

    /// Every entry of a tuple.
    fn entries<'a>(
        &'a self,
        store: &'a Store,
        tuple: &'a Tuple,
    ) -> impl Iterator<Item = RecordId> + 'a {
        tuple.visible(store).flat_map(move |head| self.chain(head))
    }

    /// The tuple's entries whose keys agree with the filter: found by hash if it has the same mask, by a walk if not.
    fn candidates<'a>(
        &'a self,
        store: &'a Store,
        tuple: &'a Tuple,
        filter: &'a FlowFilter,
    ) -> Box<dyn Iterator<Item = RecordId> + 'a> {
        if *tuple.plan.mask() == filter.mask {
            let (packed, hash) = tuple.pack(store, &filter.key);
            let head = tuple.find(store, &packed[..tuple.plan.words()], hash);
            return Box::new(head.into_iter().flat_map(move |head| self.chain(head)));
        }
        if filter.mask == Key::default() {
            return Box::new(self.entries(store, tuple));
        }
        let wanted = filter.key.masked(&filter.mask);
        let agrees = move |id: &RecordId| key_of(store, tuple, *id).masked(&filter.mask) == wanted;
        Box::new(tuple.visible(store).filter(agrees).flat_map(move |head| self.chain(head)))
    }
}

fn passes(store: &Store, id: RecordId, filter: &FlowFilter) -> bool {
    let record = store.arena.record(id);
    (record.cookie() ^ filter.cookie) & filter.cookie_mask == 0
        && (filter.out_port.is_none() && filter.out_group.is_none()
            || sends_to(&store.programs.get(record.rule().program).instructions, filter))
}

fn sends_to(instructions: &Instructions, filter: &FlowFilter) -> bool {
    let any = |wanted: &dyn Fn(&Action) -> bool| actions(instructions).any(wanted);
    filter.out_port.is_none_or(|port| {
        any(&|action| matches!(*action, Action::Output(out) if same_destination(out, port)))
    }) && filter.out_group.is_none_or(|group| any(&|action| *action == Action::Group(group)))
}
