//! Keeps pages in step with the entries.

use super::{PIECE, PLACE, Page, Prefix, Range, Shape};
use crate::store::RecordId;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::{Field, Key};

/// The entries of a prefix template, and the pages compiled from them.
pub(crate) struct Builder {
    field: Field,
    base_mask: Key,
    lengths: Vec<(u16, u8)>,
    /// Address and length → record.
    prefixes: BTreeMap<(u32, u8), RecordId>,
    pages: Vec<Option<Arc<Page>>>,
}

impl Builder {
    /// A builder without entries.
    pub fn new(shape: &Shape) -> Self {
        Self {
            field: shape.field,
            base_mask: shape.base_mask,
            lengths: shape.lengths.clone(),
            prefixes: BTreeMap::new(),
            pages: vec![None; 256],
        }
    }

    /// Whether it was made for tables of this shape.
    pub fn fits(&self, shape: &Shape) -> bool {
        let known = |new: &(u16, u8)| self.lengths.contains(new);
        self.field == shape.field
            && self.base_mask == shape.base_mask
            && shape.lengths.iter().all(known)
    }

    /// Whether entries of this mask are prefixes.
    pub fn holds(&self, mask: u16) -> bool {
        self.length(mask).is_some()
    }

    fn length(&self, mask: u16) -> Option<u8> {
        self.lengths.iter().find(|(number, _)| *number == mask).map(|&(_, length)| length)
    }

    /// Makes `record` what packets find for this mask and key.
    pub fn set(&mut self, mask: u16, key: &Key, record: Option<RecordId>) {
        let Some(length) = self.length(mask) else { return };
        let address = key.get(self.field) as u32;
        match record {
            Some(record) => self.prefixes.insert((address, length), record),
            None => self.prefixes.remove(&(address, length)),
        };
        let first = (address >> 24) as usize;
        let count = 1 << 8_u8.saturating_sub(length);
        self.pages[first..first + count].fill(None);
    }

    /// Compiles the pages that changed.
    pub fn build(&mut self, shape: Shape) -> Prefix {
        let empty = Arc::new(Page {
            slots: [RecordId::NONE.0; 256],
            ranges: [Range { start: 0, record: RecordId::NONE }].into(),
            steps: 0,
        });
        for top in 0..256 {
            if self.pages[top].is_none() {
                self.pages[top] =
                    Some(self.page(top as u32).map_or_else(|| empty.clone(), Arc::new));
            }
        }
        let (word, shift) = place(self.field);
        let pages: Box<[_]> = self.pages.iter().flatten().cloned().collect();
        let steps = pages.iter().map(|page| page.steps).max().unwrap_or(0);
        Prefix { base: shape.base, word, shift, pages, steps, rest: shape.rest }
    }

    /// One /8; `None` if nothing matches in it.
    fn page(&self, top: u32) -> Option<Page> {
        let (low, high) = (top << 24, top << 24 | 0x00ff_ffff);
        let around = (0..8_u8).filter_map(|length| {
            let address = if length == 0 { 0 } else { low & u32::MAX << (32 - length) };
            self.prefixes.get(&(address, length)).map(|&record| (low, high, record))
        });
        let inside =
            self.prefixes.range((low, 8)..=(high, 32)).filter(|((_, length), _)| *length >= 8);
        let inside = inside.map(|(&(address, length), &record)| {
            (address, address | u32::MAX.checked_shr(length.into()).unwrap_or(0), record)
        });
        let ranges = flatten(around.chain(inside), low, high);
        (ranges.len() > 1 || ranges[0].1.is_some()).then(|| cut(&ranges))
    }
}

/// Word and shift of an IPv4 address field.
fn place(field: Field) -> (usize, u32) {
    let mut key = Key::default();
    key.set(field, 1);
    let word = key.0.iter().position(|&word| word != 0).expect("a field lies in some word");
    (word, key.0[word].trailing_zeros())
}

/// Turns nested ranges, outer ones first, into starts of ranges that do not overlap: the innermost wins.
fn flatten(
    nested: impl Iterator<Item = (u32, u32, RecordId)>,
    low: u32,
    high: u32,
) -> Vec<(u32, RecordId)> {
    let mut starts: Vec<(u32, RecordId)> = vec![(low, RecordId::NONE)];
    let mut open: Vec<(u32, RecordId)> = vec![(high, RecordId::NONE)];
    let mut begin = |at: u32, record: RecordId| match starts.last_mut() {
        Some(last) if last.0 == at => last.1 = record,
        Some(last) if last.1 == record => {}
        _ => starts.push((at, record)),
    };
    for (from, to, record) in nested {
        while let Some(&(end, _)) = open.last().filter(|(end, _)| *end < from) {
            open.pop();
            begin(end + 1, open.last().map_or(RecordId::NONE, |&(_, outer)| outer));
        }
        begin(from, record);
        open.push((to, record));
    }
    while let Some((end, _)) = open.pop().filter(|(end, _)| *end < high) {
        begin(end + 1, open.last().map_or(RecordId::NONE, |&(_, outer)| outer));
    }
    starts
}

/// Cuts the ranges of a /8 into slots and pieces.
fn cut(all: &[(u32, RecordId)]) -> Page {
    let (mut slots, mut ranges, mut steps) = ([0; 256], Vec::new(), 0);
    let mut next = 0;
    let mut current = RecordId::NONE;
    for (slot, first) in slots.iter_mut().zip((all[0].0 & 0xff00_0000..).step_by(1 << 16)) {
        let here = all[next..].iter().take_while(|(start, _)| *start <= first | 0xffff).count();
        let mut inside = all[next..next + here].to_vec();
        if inside.first().is_none_or(|&(start, _)| start != first) {
            inside.insert(0, (first, current));
        }
        next += here;
        current = inside[inside.len() - 1].1;
        let halvings = inside.len().next_power_of_two().trailing_zeros();
        if halvings == 0 {
            *slot = current.0;
            continue;
        }
        *slot = PIECE | halvings << PLACE | ranges.len() as u32;
        steps = steps.max(halvings);
        let last = inside[inside.len() - 1];
        inside.resize(1 << halvings, last);
        ranges
            .extend(inside.iter().map(|&(start, record)| Range { start: start & 0xffff, record }));
    }
    if ranges.is_empty() {
        ranges.push(Range { start: 0, record: RecordId::NONE });
    }
    Page { slots, ranges: ranges.into(), steps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_range_wins_and_outer_ones_go_on_after_it() {
        let (a, b, c) = (RecordId(1), RecordId(2), RecordId(3));
        let nested = [(0, 0xff, a), (0x10, 0x1f, b), (0x10, 0x10, c), (0x1f, 0x1f, c)];
        let none = RecordId::NONE;
        let expected = [(0, a), (0x10, c), (0x11, b), (0x1f, c), (0x20, a), (0x100, none)];
        assert_eq!(flatten(nested.into_iter(), 0, 0x00ff_ffff), expected);
    }
}
