//! Keeps blocks in step with the entries; only blocks that changed are compiled again.

use super::{BLOCKS, Block, CHUNK, ROW, RULES, STRIP, STRIPS, Strip, Ternary};
use crate::store::RecordId;
use crate::template::masks::Masks;
use crate::template::single::Words;
use std::collections::HashMap;
use std::sync::Arc;
use wire::{Key, WORDS};

/// An entry as a block compiles it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub record: RecordId,
    pub priority: u16,
    pub key: Key,
    pub mask: Key,
}

/// Entries of one block, by falling priority, and what was compiled from them.
#[derive(Default)]
struct Draft {
    entries: Vec<Entry>,
    compiled: Option<Arc<Block>>,
}

/// The entries that lie in blocks.
#[derive(Default)]
pub(crate) struct Builder {
    drafts: Vec<Draft>,
    /// Mask number and key → priority and record, to find an entry again.
    places: HashMap<(u16, Key), (u16, RecordId)>,
}

impl Builder {
    /// Entries held.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Makes `entry` what packets find for this mask and key; `None` if there is nothing any more.
    pub fn set(&mut self, mask: u16, key: Key, entry: Option<Entry>) {
        if let Some((priority, record)) = self.places.remove(&(mask, key)) {
            self.take_out(priority, record);
        }
        if let Some(entry) = entry {
            self.places.insert((mask, key), (entry.priority, entry.record));
            self.put_in(entry);
        }
    }

    /// Compiles what changed.
    pub fn build(&mut self, masks: Masks) -> Ternary {
        let count = self.drafts.len();
        let compiled = |draft: &mut Draft| {
            let entries = &draft.entries;
            draft.compiled.get_or_insert_with(|| Arc::new(compile(entries, count))).clone()
        };
        Ternary { masks, blocks: self.drafts.iter_mut().map(compiled).collect() }
    }

    /// The draft whose priorities `priority` falls among.
    fn draft_of(&self, priority: u16) -> usize {
        let after = self.drafts.partition_point(|draft| draft.entries[0].priority >= priority);
        after.saturating_sub(1)
    }

    fn put_in(&mut self, entry: Entry) {
        if self.drafts.is_empty() {
            self.drafts.push(Draft::default());
            self.drafts[0].entries.push(entry);
            return;
        }
        let mut at = self.draft_of(entry.priority);
        if self.drafts[at].entries.len() == RULES {
            at = self.make_room(at, entry.priority);
        }
        let draft = &mut self.drafts[at];
        let place = draft.entries.partition_point(|other| other.priority >= entry.priority);
        draft.entries.insert(place, entry);
        draft.compiled = None;
    }

    /// Splits a full draft, or spreads all evenly when there are enough drafts. Gives where `priority` belongs now.
    fn make_room(&mut self, at: usize, priority: u16) -> usize {
        let entries = if self.drafts.len() < BLOCKS {
            let tail = self.drafts[at].entries.split_off(RULES / 2);
            self.drafts[at].compiled = None;
            self.drafts.insert(at + 1, Draft { entries: tail, compiled: None });
            return self.draft_of(priority);
        } else {
            self.drafts.drain(..).flat_map(|draft| draft.entries).collect::<Vec<_>>()
        };
        let share = entries.len().div_ceil(BLOCKS);
        self.drafts = entries
            .chunks(share)
            .map(|part| Draft { entries: part.to_vec(), compiled: None })
            .collect();
        self.draft_of(priority)
    }

    fn take_out(&mut self, priority: u16, record: RecordId) {
        // Entries of one priority may lie in several drafts.
        let mut from = self.draft_of(priority);
        let place = loop {
            match self.drafts[from].entries.iter().position(|entry| entry.record == record) {
                Some(place) => break place,
                None if from == 0 => return,
                None => from -= 1,
            }
        };
        let draft = &mut self.drafts[from];
        draft.entries.remove(place);
        draft.compiled = None;
        if draft.entries.is_empty() {
            self.drafts.remove(from);
        } else {
            self.join(from);
        }
    }

    /// Joins a draft with the next one when both together are half full.
    fn join(&mut self, at: usize) {
        let small = |pair: &[Draft]| pair[0].entries.len() + pair[1].entries.len() <= RULES / 2;
        if self.drafts.get(at..at + 2).is_some_and(small) {
            let next = self.drafts.remove(at + 1);
            self.drafts[at].entries.extend(next.entries);
            self.drafts[at].compiled = None;
        }
    }
}

/// Compiles entries in order of falling priority.
fn compile(entries: &[Entry], drafts: usize) -> Block {
    let first = &entries[0];
    let (mut common, mut union) = (first.mask, Key::default());
    for entry in entries {
        for i in 0..WORDS {
            common.0[i] &= entry.mask.0[i] & !(entry.key.0[i] ^ first.key.0[i]);
            union.0[i] |= entry.mask.0[i];
        }
    }
    let bytes = |word: usize| {
        (0..8)
            .filter(move |byte| varying(&union, &common, word) >> (byte * 8) & 0xff != 0)
            .map(move |byte| word * 8 + byte)
    };
    let chunks: Box<[u8]> = (0..WORDS).flat_map(bytes).map(|chunk| chunk as u8).collect();
    let rows: Box<[Row]> = chunks.iter().flat_map(|&chunk| rows(entries, chunk)).collect();
    let summaries: Box<[u64]> = rows.iter().map(summary_of).collect();
    let groups = summary_of(&all(entries.len()));
    let set: u64 = summaries.iter().map(|summary| u64::from(summary.count_ones())).sum();
    let possible = u64::from(groups.count_ones()) * summaries.len() as u64;
    Block {
        common: Words::new(&common, &first.key.masked(&common)),
        words: (0..WORDS)
            .filter(|&word| varying(&union, &common, word) != 0)
            .map(|word| word as u8)
            .collect(),
        chunks,
        rows: std::array::from_fn(|strip| rows.iter().map(|row| Strip::of(row.0[strip])).collect()),
        summaries,
        skips: drafts > 2 && set * 10 <= possible * 9,
        records: entries.iter().map(|entry| entry.record).collect(),
        priorities: entries.iter().map(|entry| entry.priority).collect(),
    }
}

/// Bits of a word on which entries differ.
fn varying(union: &Key, common: &Key, word: usize) -> u64 {
    union.0[word] & !common.0[word]
}

/// The rows of one chunk.
fn rows(entries: &[Entry], chunk: u8) -> Vec<Row> {
    let mut rows = vec![Row::NONE; CHUNK];
    let sides = sides(entries, chunk);
    for (half, sides) in rows.chunks_mut(16).zip(sides.chunks(4)) {
        half[0] = all(entries.len());
        // Row `value` is what agrees with each bit of it: bit by bit, the rows so far become twice as many.
        for (bit, [zero, one]) in sides.iter().enumerate() {
            let (low, high) = half.split_at_mut(1 << bit);
            for (low, high) in low.iter_mut().zip(high) {
                *high = low.and(one);
                *low = low.and(zero);
            }
        }
    }
    rows
}

/// For each bit of a chunk, the entries that agree with a 0 there and those that agree with a 1.
fn sides(entries: &[Entry], chunk: u8) -> [[Row; 2]; 8] {
    let (word, shift) = (usize::from(chunk / 8), chunk % 8 * 8);
    let mut sides = [[all(entries.len()); 2]; 8];
    for (n, entry) in entries.iter().enumerate() {
        let (mut mask, key) =
            ((entry.mask.0[word] >> shift) as u8, (entry.key.0[word] >> shift) as u8);
        while mask != 0 {
            let bit = mask.trailing_zeros() as usize;
            let other = usize::from(key >> bit & 1 == 0);
            *sides[bit][other].word_mut(n / 64) &= !(1 << (n % 64));
            mask &= mask - 1;
        }
    }
    sides
}

/// One bit per entry of a block, strip by strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row([[u64; STRIP]; STRIPS]);

impl Row {
    const NONE: Self = Self([[0; STRIP]; STRIPS]);

    fn and(&self, other: &Self) -> Self {
        let and = |strip: usize, word: usize| self.0[strip][word] & other.0[strip][word];
        Self(std::array::from_fn(|strip| std::array::from_fn(|word| and(strip, word))))
    }

    fn word_mut(&mut self, word: usize) -> &mut u64 {
        &mut self.0[word / STRIP][word % STRIP]
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flatten().copied()
    }
}

/// The first `count` bits.
fn all(count: usize) -> Row {
    let mut row = Row::NONE;
    for word in 0..ROW {
        *row.word_mut(word) = match count.saturating_sub(word * 64) {
            0 => 0,
            left @ 1..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
    }
    row
}

/// One bit per group of 16 that has any.
fn summary_of(row: &Row) -> u64 {
    row.words().enumerate().fold(0, |summary, (i, word)| {
        let groups = (0..4).fold(0, |groups, group| {
            groups | u64::from(word >> (group * 16) & 0xffff != 0) << group
        });
        summary | groups << (i * 4)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_entries_that_a_scan_finds() {
        let entry = |n: u64| {
            let noise = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mask = Key([noise & noise >> 7; WORDS]);
            Entry {
                record: RecordId(n as u32),
                priority: 0,
                key: Key([noise >> 3; WORDS]).masked(&mask),
                mask,
            }
        };
        let entries: Vec<Entry> = (0..777).map(entry).collect();
        let rows = rows(&entries, 3 * 8 + 2);
        for value in 0..256_usize {
            let row = rows[value & 15].and(&rows[16 + (value >> 4)]);
            let words: Vec<u64> = row.words().collect();
            for (n, entry) in entries.iter().enumerate() {
                let agrees =
                    ((value as u64) << 16 ^ entry.key.0[3]) & entry.mask.0[3] & 0xff << 16 == 0;
                assert_eq!(words[n / 64] >> (n % 64) & 1 == 1, agrees);
                assert!(!agrees || summary_of(&row) >> (n / 16) & 1 == 1);
            }
        }
    }
}
