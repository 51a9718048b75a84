//! Chooses a table's template and keeps the compiled ones in step with the entries.

use super::Table;
use crate::store::RecordId;
use crate::store::Store;
use crate::template::Tuple;
use crate::template::key_of;
use crate::template::{Masks, Probe, Single, Template, prefix, ternary};
use std::collections::HashSet;
use wire::Key;

/// Masks up to which a mask list beats blocks, however few entries there are. Measured: a block costs about as much as
/// this many hash probes, and an update costs a block more.
const BLOCK_COST: usize = 10;
/// Changes remembered between publications; more of them, and everything is compiled again.
const MOST_CHANGES: usize = 4096;

/// What a publication must look at in a compiled template.
#[derive(Default)]
pub(super) struct Changes {
    /// Mask number and key of entries that came, went or changed records.
    list: Vec<(u16, Key)>,
    /// More than the list says.
    all: bool,
}

/// A template's state between publications.
#[derive(Default)]
pub(super) enum Compiler {
    #[default]
    None,
    Prefix(prefix::Builder),
    Ternary {
        builder: ternary::Builder,
        /// Masks that are hashed instead.
        hashed: HashSet<u16>,
        /// Entries and masks when they were chosen.
        chosen_at: (u32, usize),
    },
}

impl Table {
    /// The record that packets find for one match changes from the next snapshot on.
    pub(super) fn note(&mut self, store: &Store, id: RecordId) {
        let number = store.arena.record(id).rule().mask;
        if let Some(tuple) = &self.tuples[usize::from(number)] {
            self.pending.note(|| (key_of(store, tuple, id), *tuple.plan.mask()));
        }
        if matches!(self.compiler, Compiler::None) || self.changes.all {
            return;
        }
        if self.changes.list.len() == MOST_CHANGES {
            self.note_all();
            return;
        }
        if let Some(tuple) = &self.tuples[usize::from(number)] {
            self.changes.list.push((number, key_of(store, tuple, id)));
        }
    }

    /// The list of changes no longer tells all.
    pub(super) fn note_all(&mut self) {
        self.changes = Changes { list: Vec::new(), all: true };
    }

    /// The cheapest template for what the table holds now.
    pub(super) fn compile(&mut self, store: &Store, most_masks: usize) -> Template {
        let changes = std::mem::take(&mut self.changes);
        let before = std::mem::take(&mut self.compiler);
        let mut order: Vec<(u16, &Tuple)> = self.tuples().collect();
        order.sort_by_key(|(number, tuple)| (std::cmp::Reverse(tuple.priorities().0), *number));
        if let Some(simple) = simple(store, &order) {
            return simple;
        }
        if let Some(shape) = prefix::Shape::of(store, &order) {
            let (template, compiler) = self.compile_prefix(store, shape, before, &changes);
            self.compiler = compiler;
            return template;
        }
        if order.len() <= most_masks && order.len() <= BLOCK_COST {
            return Template::Masks(masks(&order, |_| true));
        }
        let (template, compiler) =
            self.compile_ternary(store, &order, most_masks, before, &changes);
        self.compiler = compiler;
        template
    }

    fn compile_prefix(
        &self,
        store: &Store,
        shape: prefix::Shape,
        before: Compiler,
        changes: &Changes,
    ) -> (Template, Compiler) {
        let mut builder = match before {
            Compiler::Prefix(builder) if builder.fits(&shape) && !changes.all => builder,
            _ => {
                let mut builder = prefix::Builder::new(&shape);
                for (number, tuple) in
                    self.tuples().filter(|(number, _)| builder.holds(*number)).collect::<Vec<_>>()
                {
                    tuple
                        .visible(store)
                        .for_each(|id| builder.set(number, &key_of(store, tuple, id), Some(id)));
                }
                builder
            }
        };
        for (number, key) in &changes.list {
            if builder.holds(*number) {
                builder.set(*number, key, self.found(store, *number, key));
            }
        }
        (Template::Prefix(builder.build(shape)), Compiler::Prefix(builder))
    }

    fn compile_ternary(
        &self,
        store: &Store,
        order: &[(u16, &Tuple)],
        most_masks: usize,
        before: Compiler,
        changes: &Changes,
    ) -> (Template, Compiler) {
        let now = (self.rules, order.len());
        let (mut builder, hashed, chosen_at, fresh) = match before {
            Compiler::Ternary { builder, hashed, chosen_at }
                if is_near(chosen_at, now) && !changes.all =>
            {
                (builder, hashed, chosen_at, false)
            }
            _ => (ternary::Builder::default(), choose_hashed(order, most_masks), now, true),
        };
        let entry = |tuple: &Tuple, id: RecordId| ternary::Entry {
            record: id,
            priority: store.arena.record(id).rule().priority,
            key: key_of(store, tuple, id),
            mask: *tuple.plan.mask(),
        };
        if fresh {
            for &(number, tuple) in order.iter().filter(|(number, _)| !hashed.contains(number)) {
                for id in tuple.visible(store) {
                    let entry = entry(tuple, id);
                    builder.set(number, entry.key, Some(entry));
                }
            }
        } else {
            for (number, key) in changes.list.iter().filter(|(number, _)| !hashed.contains(number))
            {
                let found =
                    self.found(store, *number, key).zip(self.tuples[usize::from(*number)].as_ref());
                builder.set(*number, *key, found.map(|(id, tuple)| entry(tuple, id)));
            }
        }
        if builder.len() > ternary::CAPACITY && !fresh {
            let all = Changes { list: Vec::new(), all: true };
            return self.compile_ternary(store, order, most_masks, Compiler::None, &all);
        }
        if builder.len() == 0 {
            return (Template::Masks(masks(order, |_| true)), Compiler::None);
        }
        let template =
            Template::Ternary(builder.build(masks(order, |number| hashed.contains(&number))));
        (template, Compiler::Ternary { builder, hashed, chosen_at })
    }

    /// Whether one entry more can be searched within the bound: at most `most_masks` masks, or at most
    /// [`ternary::CAPACITY`] entries outside the largest ones.
    pub(super) fn has_room(&mut self, most_masks: usize) -> bool {
        if self.masks() < most_masks || (self.rules as usize) < ternary::CAPACITY {
            return true;
        }
        if self.spare == 0 {
            let mut sizes: Vec<u32> = self.tuples().map(|(_, tuple)| tuple.rules).collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            let rest: u32 = sizes.iter().skip(most_masks).sum();
            self.spare = ternary::CAPACITY.saturating_sub(rest as usize);
        }
        self.spare = self.spare.saturating_sub(1);
        self.spare > 0
    }

    /// What packets with this match find from the next snapshot on.
    fn found(&self, store: &Store, number: u16, key: &Key) -> Option<RecordId> {
        let tuple = self.tuples[usize::from(number)].as_ref()?;
        let (packed, hash) = tuple.pack(store, key);
        tuple.find(store, &packed[..tuple.plan.words()], hash)
    }
}

/// The template for at most one mask, and perhaps an entry below it that matches everything.
fn simple(store: &Store, order: &[(u16, &Tuple)]) -> Option<Template> {
    match *order {
        [] => Some(Template::Empty),
        [(number, tuple)] => Some(match Single::only(store, tuple) {
            Some(single) => Template::One(single),
            None => Template::Exact(Probe::new(number, tuple), None),
        }),
        [(number, tuple), (_, all)]
            if all.plan.words() == 0 && tuple.priorities().1 >= all.priorities().0 =>
        {
            Some(Template::Exact(Probe::new(number, tuple), Single::only(store, all)))
        }
        _ => None,
    }
}

fn masks(order: &[(u16, &Tuple)], wanted: impl Fn(u16) -> bool) -> Masks {
    Masks::new(
        order
            .iter()
            .filter(|(number, _)| wanted(*number))
            .map(|&(number, tuple)| Probe::new(number, tuple))
            .collect(),
    )
}

/// The masks to hash: those with most entries, as many as make the whole cheapest.
fn choose_hashed(order: &[(u16, &Tuple)], most_masks: usize) -> HashSet<u16> {
    let mut by_size: Vec<(u32, u16)> =
        order.iter().map(|(number, tuple)| (tuple.rules, *number)).collect();
    by_size.sort_unstable_by_key(|&(rules, number)| (std::cmp::Reverse(rules), number));
    let mut rest: usize = by_size.iter().map(|&(rules, _)| rules as usize).sum();
    let mut best = (usize::MAX, 0);
    for hashed in 0..=by_size.len().min(most_masks) {
        let cost = hashed + rest.div_ceil(ternary::CAPACITY / 8) * BLOCK_COST;
        if rest <= ternary::CAPACITY && cost < best.0 {
            best = (cost, hashed);
        }
        rest -= by_size.get(hashed).map_or(0, |&(rules, _)| rules as usize);
    }
    by_size[..best.1].iter().map(|&(_, number)| number).collect()
}

/// Whether entries and masks are still about as many as when the masks to hash were chosen.
fn is_near(then: (u32, usize), now: (u32, usize)) -> bool {
    let near = |then: usize, now: usize| now <= then + then / 2 + 16 && then <= now + now / 2 + 16;
    near(then.0 as usize, now.0 as usize) && near(then.1, now.1)
}
