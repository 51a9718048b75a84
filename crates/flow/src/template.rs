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

mod counters;
mod masks;
pub(crate) mod prefix;
mod probe;
mod single;
pub(crate) mod ternary;
mod tuple;

pub(crate) use counters::TableCounters;
pub(crate) use masks::Masks;
pub(crate) use probe::{Probe, Scratch};
pub(crate) use single::Single;
pub(crate) use tuple::{Tuple, key_of};

use crate::limits::LANES;
use crate::store::{ArenaView, RecordId, Secret};
use prefix::Prefix;
use std::sync::Arc;
use ternary::Ternary;
use wire::Key;

/// What a search needs of its snapshot.
#[derive(Clone, Copy)]
pub(crate) struct Searched<'a> {
    pub arena: &'a ArenaView,
    pub secret: &'a Secret,
    pub generation: u32,
}

/// The record found for each key of a batch, or [`RecordId::NONE`].
pub(crate) type Found = [RecordId; LANES];

/// A table's search structure.
#[derive(Default)]
pub(crate) enum Template {
    #[default]
    Empty,
    One(Single),
    Exact(Probe, Option<Single>),
    Prefix(Prefix),
    Masks(Masks),
    Ternary(Ternary),
}

/// A table as a snapshot holds it.
#[derive(Default)]
pub(crate) struct TableView {
    pub template: Template,
    pub counters: Arc<TableCounters>,
    /// All bits that its entries look at.
    pub mask: Key,
    /// The table's number for the mask that matches everything.
    pub all: Option<u16>,
    /// No entry leads to another table.
    pub is_last: bool,
}

impl TableView {
    /// What every packet finds that `of` is about, or nothing; `None` if it depends on bits that are not known.
    pub fn search_known(
        &self,
        at: Searched<'_>,
        of: &mut Inquiry<'_>,
        scratch: &mut Scratch,
    ) -> Option<RecordId> {
        match &self.template {
            Template::Empty => Some(RecordId::NONE),
            Template::One(single) => single.search_known(of),
            Template::Exact(probe, rest) => match (probe.search_known(at, of, scratch)?, rest) {
                (RecordId::NONE, Some(rest)) => rest.search_known(of),
                (found, _) => Some(found),
            },
            Template::Masks(masks) => masks.search_known(at, of, scratch),
            Template::Prefix(_) | Template::Ternary(_) => {
                let mut found = [RecordId::NONE; LANES];
                of.ask(&self.mask)?;
                self.template.search(at, &[of.key], scratch, &mut found);
                Some(found[0])
            }
        }
    }
}

/// A question about packets of which some bits are known.
pub(crate) struct Inquiry<'k> {
    key: &'k Key,
    known: &'k Key,
    /// Known bits that were asked for.
    pub asked: Key,
    /// Bits that were asked for and are not known.
    pub unknown: Key,
}

impl<'k> Inquiry<'k> {
    /// About packets with the bits of `key` in `known`.
    pub fn new(key: &'k Key, known: &'k Key) -> Self {
        Self { key, known, asked: Key::default(), unknown: Key::default() }
    }

    /// Asks for all bits of a mask; `None` if one is not known.
    fn ask(&mut self, mask: &Key) -> Option<()> {
        let unknown = mask.without(self.known);
        self.asked = self.asked.union(&mask.masked(self.known));
        if unknown == Key::default() {
            return Some(());
        }
        self.unknown = unknown;
        None
    }

    /// Whether a known bit of the packets differs from `key` under `mask`.
    fn differs(&self, key: &Key, mask: &Key) -> bool {
        key.masked(self.known) != self.key.masked(mask).masked(self.known)
    }
}

impl Template {
    /// Whether an entry of this mask added later is found without making the template again.
    pub fn finds_new_entries(&self, mask: u16) -> bool {
        match self {
            Self::Empty | Self::One(_) | Self::Prefix(_) => false,
            Self::Exact(probe, _) => probe.number == mask,
            Self::Masks(masks) => masks.holds(mask),
            Self::Ternary(ternary) => ternary.holds(mask),
        }
    }

    /// For people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::One(_) => "one",
            Self::Exact(..) => "exact",
            Self::Prefix(_) => "prefix",
            Self::Masks(_) => "masks",
            Self::Ternary(_) => "ternary",
        }
    }

    /// Most probes one key can cost.
    pub fn probe_bound(&self) -> u32 {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Exact(_, rest) => 1 + u32::from(rest.is_some()),
            Self::Prefix(prefix) => prefix.probe_bound(),
            Self::Masks(masks) => masks.len() as u32,
            Self::Ternary(ternary) => ternary.probe_bound(),
        }
    }

    /// Searches for each of at most [`LANES`] keys. Returns the probes made, all together.
    pub fn search(
        &self,
        at: Searched<'_>,
        keys: &[&Key],
        scratch: &mut Scratch,
        found: &mut Found,
    ) -> u32 {
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
            Self::Prefix(prefix) => prefix.search(at, keys, found),
            Self::Masks(masks) => masks.search(at, keys, scratch, found),
            Self::Ternary(ternary) => ternary.search(at, keys, scratch, found),
        }
    }
}
