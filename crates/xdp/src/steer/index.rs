//! The entries and their index: `bpf/index.h` for user space, which is the only one to write them.
//!
//! Programs read at any time. An entry is written before a place names it, and a place by one store.

use super::SteerError;
use super::abi::{ENTRY_FIRST, PLACE_LEFT, PLACES, SteerEntry, SteerLine, WORDS};
use super::maps::Maps;
use crate::sys::mapped::Mapped;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Bits of the hash that name an entry's second line.
const SECOND_LINE: u32 = 15;
const LEFT: u64 = PLACE_LEFT as u64;

/// An entry's name: its words, masked, its mask's number, and their hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) words: [u64; WORDS],
    pub(crate) mask: u32,
    pub(crate) hash: u64,
}

/// The two maps of an interface.
pub(crate) struct Index {
    lines: Mapped<SteerLine>,
    entries: Mapped<SteerEntry>,
}

impl Index {
    pub(crate) fn open(maps: &Maps) -> Result<Self, SteerError> {
        Ok(Self { lines: maps.mapped("lines")?, entries: maps.mapped("entries")? })
    }

    /// Every unit with an entry.
    pub(crate) fn all(&self) -> impl Iterator<Item = SteerEntry> + '_ {
        let places = (0..self.lines.len()).flat_map(|line| self.lines.get(line).places);
        let taken = places.filter(|&place| place != 0 && place != LEFT);
        taken.filter_map(|place| self.entry(place as u32))
    }

    fn entry(&self, unit: u32) -> Option<SteerEntry> {
        let at = unit.checked_sub(ENTRY_FIRST)? as usize;
        (at < self.entries.len()).then(|| self.entries.get(at))
    }

    /// The unit of the entry of that name.
    pub(crate) fn find(&self, name: &Name) -> Option<u32> {
        let places = self.places(name.hash).map(|place| place.load(Relaxed));
        let tagged = places.filter(|&place| place != LEFT && place >> 32 == name.hash >> 32);
        let units = tagged.filter(|&place| place != 0).map(|place| place as u32);
        units.into_iter().find(|&unit| {
            self.entry(unit).is_some_and(|entry| {
                (entry.mask, entry.words) == (name.mask, name.words) && entry.unit == unit
            })
        })
    }

    /// Adds an entry; false if its places are taken, or another entry there has the same upper half of the hash, which programs take for its
    /// whole. (That is so for one entry of 2^29, and for others when an interface is attached anew.)
    pub(crate) fn insert(&self, name: &Name, unit: u32, priority: u32, change: u32) -> bool {
        let (words, mask) = (name.words, name.mask);
        let entry = SteerEntry { mask, unit, priority, change, words, reserved: [0; 2] };
        let mut taken = self.places(name.hash).map(|place| place.load(Relaxed));
        if taken.any(|place| !matches!(place, 0 | LEFT) && place >> 32 == name.hash >> 32) {
            return false;
        }
        let is_free = |place: &&AtomicU64| matches!(place.load(Relaxed), 0 | LEFT);
        let Some(place) = self.places(name.hash).find(is_free) else { return false };
        self.entries.set((unit - ENTRY_FIRST) as usize, &entry);
        place.store(name.hash >> 32 << 32 | u64::from(unit), Release);
        true
    }

    /// Says of an entry that it is coming, going or neither.
    pub(crate) fn set_change(&self, unit: u32, change: u32) {
        let at = (unit - ENTRY_FIRST) as usize;
        self.entries.u32_at(at, offset_of!(SteerEntry, change)).store(change, Release);
    }

    /// Removes an entry. Its place stays marked if searches must go on behind it: in a full line for ever, for the second line's sake.
    pub(crate) fn remove(&self, hash: u64, unit: u32) {
        let named = hash >> 32 << 32 | u64::from(unit);
        let places: Vec<_> = self.places(hash).collect();
        for line in places.chunks(PLACES) {
            let Some(at) = line.iter().position(|place| place.load(Relaxed) == named) else {
                continue;
            };
            line[at].store(LEFT, Release);
            let is_last =
                |pair: &&[&AtomicU64]| (pair[0].load(Relaxed), pair[1].load(Relaxed)) == (LEFT, 0);
            line.windows(2).rev().filter(is_last).for_each(|pair| pair[0].store(0, Release));
            return;
        }
    }

    /// The places that an entry with that hash may be in, in the order in which they are filled and searched.
    fn places(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let line = |hash: u64| hash as usize & (self.lines.len() - 1);
        let lines = [line(hash), line(hash >> SECOND_LINE)];
        let at = lines.into_iter().flat_map(|line| (0..PLACES).map(move |place| (line, place)));
        at.map(|(line, place)| self.lines.u64_at(line, place * size_of::<u64>()))
    }
}
