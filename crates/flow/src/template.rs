//! A table as workers search it: the cheapest form its entries allow (design.md §4).
//!
//! | template | when | probes |
//! |---|---|---|
//! | empty | no entry | 0 |
//! | one | one match | 1 |
//! | exact | one mask, and perhaps an entry for everything below it | 1 (+ 1) |
//! | prefix | one mask but for an IPv4 prefix, longer prefixes never of lower priority | 1 (+ 1) |
//! | masks | at most K masks: hashed, highest priority first, ending early | K |
//! | ternary | more masks: the largest hashed as above, the rest in bit vectors | K + blocks |
//!
//! Templates that only probe hash indexes see new entries without being made again: the index is shared, and a record's
//! generation says who sees it. The others are made again for the next snapshot, in the parts that changed.

mod masks;
mod probe;
mod single;

pub(crate) use probe::Scratch;

use crate::process::BATCH;
use crate::pipeline::Store;
use crate::store::{ArenaView, RecordId, Secret};
use crate::table::Table;
use masks::Masks;
use probe::Probe;
use single::Single;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use wire::Key;

/// What a search needs of its snapshot.
#[derive(Clone, Copy)]
pub(crate) struct Searched<'a> {
    pub arena: &'a ArenaView,
    pub secret: &'a Secret,
    pub generation: u32,
}

/// The record found for each key of a batch, or [`RecordId::NONE`].
pub(crate) type Found = [RecordId; BATCH];

/// A table's search structure.
#[derive(Default)]
pub(crate) enum Template {
    #[default]
    Empty,
    One(Single),
    Exact(Probe, Option<Single>),
    Masks(Masks),
}

/// A table as a snapshot holds it.
#[derive(Default)]
pub(crate) struct TableView {
    pub template: Template,
    pub counters: Arc<TableCounters>,
    /// The table's number for the mask that matches everything.
    pub all: Option<u16>,
}

/// Counts of one table, shared by all its views.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct TableCounters {
    lookups: AtomicU64,
    matches: AtomicU64,
    probes: AtomicU64,
}

impl TableCounters {
    /// Counts a batch.
    pub fn add(&self, lookups: u64, matches: u64, probes: u64) {
        for (counter, more) in [(&self.lookups, lookups), (&self.matches, matches), (&self.probes, probes)] {
            if more > 0 {
                counter.fetch_add(more, Relaxed);
            }
        }
    }

    /// Lookups, matches, probes.
    pub fn read(&self) -> (u64, u64, u64) {
        (self.lookups.load(Relaxed), self.matches.load(Relaxed), self.probes.load(Relaxed))
    }
}

impl Template {
    /// The cheapest template for what `table` holds.
    pub fn choose(table: &Table, store: &Store, most_masks: usize) -> Self {
        let mut order: Vec<_> = table.tuples().map(|(number, tuple)| (tuple.priorities(), number, tuple)).collect();
        order.sort_by_key(|&((highest, _), number, _)| (std::cmp::Reverse(highest), number));
        let _ = most_masks;
        match order.as_slice() {
            [] => Self::Empty,
            [(_, number, tuple)] => match Single::only(store, tuple) {
                Some(single) => Self::One(single),
                None => Self::Exact(Probe::new(*number, tuple), None),
            },
            [((_, lowest), number, tuple), ((below, _), _, all)] if all.plan.words() == 0 && lowest >= below => {
                Self::Exact(Probe::new(*number, tuple), Single::only(store, all))
            }
            _ => Self::Masks(Masks::new(order.iter().map(|&(_, number, tuple)| Probe::new(number, tuple)).collect())),
        }
    }

    /// Whether an entry of this mask added later is found without making the template again.
    pub fn finds_new_entries(&self, mask: u16) -> bool {
        match self {
            Self::Empty | Self::One(_) => false,
            Self::Exact(probe, _) => probe.number == mask,
            Self::Masks(masks) => masks.holds(mask),
        }
    }

    /// For people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::One(_) => "one",
            Self::Exact(..) => "exact",
            Self::Masks(_) => "masks",
        }
    }

    /// Most probes one key can cost.
    pub fn probe_bound(&self) -> u32 {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Exact(_, rest) => 1 + u32::from(rest.is_some()),
            Self::Masks(masks) => masks.len() as u32,
        }
    }

    /// Searches for each of at most [`BATCH`] keys. Returns the probes made, all together.
    pub fn search(&self, at: Searched<'_>, keys: &[&Key], scratch: &mut Scratch, found: &mut Found) -> u32 {
        match self {
            Self::Empty => {
                found[..keys.len()].fill(RecordId::NONE);
                0
            }
            Self::One(single) => single.search(keys, found),
            Self::Exact(probe, rest) => {
                let probes = probe.search(at, keys, scratch, found);
                probes + rest.as_ref().map_or(0, |rest| rest.search_missing(keys, found))
            }
            Self::Masks(masks) => masks.search(at, keys, scratch, found),
        }
    }
}
