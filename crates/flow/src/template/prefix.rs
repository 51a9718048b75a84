//! Longest prefix of an IPv4 address, where priorities agree with prefix lengths.
//!
//! All entries share one mask but for a prefix of one address field, and agree on everything outside it. The address
//! space is cut into 256 *pages* by its top byte. A page has a slot per second byte: a record, nothing, or a *piece*, the
//! sorted starts of address ranges within that /16 with the record of each, found by binary search of at most 16 steps.
//! Ranges are what is left of prefixes when the longer ones are laid over the shorter ones. Only pages in which an
//! entry changed are compiled again.

mod builder;

pub(crate) use builder::Builder;

use super::single::{Single, Words};
use super::{Found, Searched};
use crate::pipeline::Store;
use crate::store::RecordId;
use crate::table::Tuple;
use std::hint::{black_box, select_unpredictable};
use std::sync::Arc;
use wire::{Field, Key, WORDS};

/// Fields that a prefix template searches.
const FIELDS: [Field; 2] = [Field::Ipv4Dst, Field::Ipv4Src];

/// A slot that is a piece: the two top bits, which no record has, then the number of the piece.
const PIECE: u32 = 0xc000_0000;

/// The prefixes of one /8.
pub(crate) struct Page {
    slots: [u32; 256],
    /// First range of each piece, and one past the last. There is at least one piece.
    pieces: Box<[u32]>,
    /// Where each range starts inside its /16; the first of a piece is 0.
    starts: Box<[u16]>,
    records: Box<[RecordId]>,
    /// Halvings that leave one range of its largest piece.
    steps: u32,
}

impl Page {
    /// The record of an address. Nothing here depends on what the address is but the memory read: the processor guesses no branch wrong.
    /// `steps` are enough for the largest piece; for a slot that is no piece, the first one is searched for nothing.
    #[inline]
    fn find(&self, address: u32, steps: u32) -> RecordId {
        let slot = self.slots[(address >> 16) as usize & 0xff];
        let piece = slot.wrapping_sub(PIECE) as usize;
        let is_piece = piece + 1 < self.pieces.len();
        let piece = select_unpredictable(is_piece, piece, 0);
        let (from, to) = (self.pieces[piece] as usize, self.pieces[piece + 1] as usize);
        let (starts, low) = (&self.starts[from..to], address as u16);
        let (mut at, mut left) = (0, starts.len());
        for _ in 0..steps {
            let half = left / 2;
            at = select_unpredictable(starts[at + half] <= low, at + half, at);
            left -= half;
        }
        select_unpredictable(is_piece, self.records[from + at], RecordId(slot))
    }
}

/// What makes a table fit: which field, and what all entries share.
pub(crate) struct Shape {
    field: Field,
    base_mask: Key,
    base: Words,
    /// Prefix length per mask number.
    lengths: Vec<(u16, u8)>,
    rest: Option<Single>,
}

impl Shape {
    /// The shape of a table with these tuples, highest priority first; `None` if it has another.
    pub fn of(store: &Store, order: &[(u16, &Tuple)]) -> Option<Self> {
        FIELDS.iter().find_map(|&field| Self::along(store, order, field))
    }

    fn along(store: &Store, order: &[(u16, &Tuple)], field: Field) -> Option<Self> {
        let (prefixes, rest) = match order {
            [first @ .., (_, all)] if all.plan.words() == 0 => (first, Single::only(store, all)),
            all => (all, None),
        };
        let (_, first) = prefixes.first()?;
        let outside = |mask: &Key| without(mask, field);
        let (base_mask, base) = (outside(first.plan.mask()), outside(&first.common()));
        let mut lengths = Vec::with_capacity(prefixes.len());
        for (number, tuple) in prefixes {
            let mask = tuple.plan.mask();
            let bits = mask.get(field) as u32;
            let agree =
                outside(tuple.varying()) == Key::default() && outside(&tuple.common()) == base;
            let same = agree && outside(mask) == base_mask;
            if !same || bits.leading_ones() != bits.count_ones() {
                return None;
            }
            lengths.push((*number, bits.count_ones() as u8, tuple.priorities()));
        }
        lengths.sort_by_key(|&(_, length, _)| std::cmp::Reverse(length));
        let agree = lengths.windows(2).all(|pair| pair[0].2.1 >= pair[1].2.0);
        let lowest = lengths.last()?.2.1;
        let below =
            rest.is_none() || order.last().is_some_and(|(_, all)| all.priorities().0 <= lowest);
        (agree && below && lengths.len() > 1).then(|| Self {
            field,
            base_mask,
            base: Words::new(&base_mask, &base),
            lengths: lengths.into_iter().map(|(number, length, _)| (number, length)).collect(),
            rest,
        })
    }
}

fn without(key: &Key, field: Field) -> Key {
    let mut key = *key;
    key.set(field, 0);
    key
}

/// The template.
pub(crate) struct Prefix {
    base: Words,
    word: usize,
    shift: u32,
    pages: Box<[Arc<Page>]>,
    /// The most that a page needs.
    steps: u32,
    rest: Option<Single>,
}

impl Prefix {
    /// Searches for each key.
    pub fn search(&self, at: Searched<'_>, keys: &[&Key], found: &mut Found) -> u32 {
        for (slot, key) in found.iter_mut().zip(keys) {
            let address = (key.0[self.word % WORDS] >> self.shift) as u32;
            let id = self.pages[(address >> 24) as usize].find(address, self.steps);
            *slot = if self.base.matches(key) { id } else { RecordId::NONE };
        }
        // Brings the records in, which are counted on next, all at once.
        black_box(found[..keys.len()].iter().fold(0, |sum, &id| sum ^ at.arena.touch(id)));
        keys.len() as u32 + self.rest.as_ref().map_or(0, |rest| rest.search_missing(keys, found))
    }

    /// Most probes of one key.
    pub fn probe_bound(&self) -> u32 {
        1 + u32::from(self.rest.is_some())
    }
}
