//! Longest prefix of an IPv4 address, where priorities agree with prefix lengths.
//!
//! All entries share one mask but for a prefix of one address field, and agree on everything outside it. The address
//! space is cut into 256 *pages* by its top byte. A page has a slot per second byte: a record, nothing, or a *piece*, the
//! sorted address ranges within that /16 with the record of each, found by binary search of at most 16 steps.
//! Ranges are what is left of prefixes when the longer ones are laid over the shorter ones. Only pages in which an
//! entry changed are compiled again.

mod builder;

pub(crate) use builder::Builder;

use super::Tuple;
use super::single::{Single, Words};
use super::{Found, Searched};
use crate::limits::LANES;
use crate::store::RecordId;
use crate::store::Store;
use arrayvec::ArrayVec;
use std::hint::{black_box, select_unpredictable};
use std::sync::Arc;
use wire::{Field, Key, WORDS};

/// Fields that a prefix template searches.
const FIELDS: [Field; 2] = [Field::Ipv4Dst, Field::Ipv4Src];

/// A slot that is a piece: the two top bits, which no record has, then how often the piece can be halved in [`HALVINGS`] bits, then the
/// place of its first range.
const PIECE: u32 = 0xc000_0000;
/// Bits of a piece's place: 256 pieces of at most 2^16 ranges.
const PLACE: u32 = 24;
/// No piece can be halved so often: a slot of that number is [`RecordId::NONE`].
const HALVINGS: u32 = (1 << (30 - PLACE)) - 1;

/// The addresses from here to the next range of a piece have one record. Both lie together: that is one cache line for most pieces.
#[derive(Clone, Copy)]
struct Range {
    /// Inside its /16.
    start: u32,
    record: RecordId,
}

/// The prefixes of one /8.
pub(crate) struct Page {
    slots: [u32; 256],
    /// Piece by piece. A piece has a power of two of ranges, the last one as often as needed; its first one starts at 0.
    ranges: Box<[Range]>,
    /// Halvings that leave one range of its largest piece.
    steps: u32,
}

/// One address on the way to its record. Nothing here depends on what the address is but the memory read: the processor guesses no branch
/// wrong. For a slot that is no piece, some range is looked at for nothing.
#[derive(Clone, Copy)]
struct Descent<'p> {
    ranges: &'p [Range],
    slot: u32,
    /// The address inside its /16.
    low: u32,
    /// The first of the ranges that are left, and how many they are.
    at: u32,
    left: u32,
}

impl<'p> Descent<'p> {
    #[inline]
    fn begin(page: &'p Page, address: u32) -> Self {
        let slot = page.slots[(address >> 16) as usize & 0xff];
        let piece = select_unpredictable(is_piece(slot), slot, PIECE);
        let (at, left) = (piece & ((1 << PLACE) - 1), 1 << (piece >> PLACE & HALVINGS));
        Self { ranges: &page.ranges, slot, low: address & 0xffff, at, left }
    }

    /// Leaves half of the ranges, or the last one.
    #[inline]
    fn halve(&mut self) {
        let half = self.left / 2;
        let upper = self.at + half;
        let is_upper = self.ranges[upper as usize].start <= self.low;
        self.at = select_unpredictable(is_upper, upper, self.at);
        self.left -= half;
    }

    #[inline]
    fn end(&self) -> RecordId {
        let record = self.ranges[self.at as usize].record;
        select_unpredictable(is_piece(self.slot), record, RecordId(self.slot))
    }
}

fn is_piece(slot: u32) -> bool {
    slot >= PIECE && slot != RecordId::NONE.0
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
    /// Searches for each key, all of them in step, so that their cache misses overlap.
    pub fn search(&self, at: Searched<'_>, keys: &[&Key], found: &mut Found) -> u32 {
        let mut descents = ArrayVec::<Descent<'_>, LANES>::new();
        for key in keys.iter().take(LANES) {
            let address = (key.0[self.word % WORDS] >> self.shift) as u32;
            descents.push(Descent::begin(&self.pages[(address >> 24) as usize], address));
        }
        for _ in 0..self.steps {
            descents.iter_mut().for_each(Descent::halve);
        }
        for ((slot, key), descent) in found.iter_mut().zip(keys).zip(&descents) {
            *slot = if self.base.matches(key) { descent.end() } else { RecordId::NONE };
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
