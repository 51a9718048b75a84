//! Keeps blocks in step with the entries; only blocks that changed are compiled again.

use super::{BLOCKS, Block, Chunk, RULES, ROW, Ternary};
use crate::store::RecordId;
use crate::template::masks::Masks;
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
        let compiled = |draft: &mut Draft| {
            let entries = &draft.entries;
            draft.compiled.get_or_insert_with(|| Arc::new(compile(entries))).clone()
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
        self.drafts = entries.chunks(share).map(|part| Draft { entries: part.to_vec(), compiled: None }).collect();
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
fn compile(entries: &[Entry]) -> Block {
    let first = &entries[0];
    let (mut common, mut union) = (first.mask, Key::default());
    for entry in entries {
        for i in 0..WORDS {
            common.0[i] &= entry.mask.0[i] & !(entry.key.0[i] ^ first.key.0[i]);
            union.0[i] |= entry.mask.0[i];
        }
    }
    let windows = (0..WORDS).flat_map(|word| windows(union.0[word] & !common.0[word]).map(move |shift| (word, shift)));
    Block {
        common: (0..WORDS)
            .filter(|&i| common.0[i] != 0)
            .map(|i| (i as u8, common.0[i], first.key.0[i] & common.0[i]))
            .collect(),
        chunks: windows.map(|(word, shift)| chunk(entries, word, shift)).collect(),
        records: entries.iter().map(|entry| entry.record).collect(),
        priorities: entries.iter().map(|entry| entry.priority).collect(),
    }
}

/// Shifts of 8-bit windows that together cover `bits`.
fn windows(mut bits: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let shift = (bits != 0).then(|| bits.trailing_zeros().min(56))?;
        bits &= !(0xff << shift);
        Some(shift as u8)
    })
}

fn chunk(entries: &[Entry], word: usize, shift: u8) -> Chunk {
    let mut rows: Box<[[u64; ROW]; 256]> = vec![[0; ROW]; 256].try_into().expect("256 rows were made");
    for (n, entry) in entries.iter().enumerate() {
        let byte = |key: &Key| (key.0[word] >> shift) as u8;
        for value in agreeing(byte(&entry.mask), byte(&entry.key)) {
            rows[usize::from(value)][n / 64] |= 1 << (n % 64);
        }
    }
    let mut summaries: Box<[u64; 256]> = vec![0; 256].try_into().expect("256 summaries were made");
    for (summary, row) in summaries.iter_mut().zip(rows.iter()) {
        *summary = (0..RULES / 16).filter(|group| row[group / 4] >> (group % 4 * 16) & 0xffff != 0).fold(0, |all, group| all | 1 << group);
    }
    Chunk { word: word as u8, shift, summaries, rows }
}

/// Every byte that agrees with `key` on the bits of `mask`.
fn agreeing(mask: u8, key: u8) -> impl Iterator<Item = u8> {
    let free = !mask;
    let mut next = Some(0_u8);
    std::iter::from_fn(move || {
        let bits = next?;
        // Counts through the subsets of `free`.
        next = Some((bits.wrapping_sub(free)) & free).filter(|&after| after != 0);
        Some(key & mask | bits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreeing_bytes_are_those_a_scan_finds() {
        for (mask, key) in [(0xff, 0x5a), (0, 0), (0xf0, 0xa0), (0b0101_0011, 0b0100_0001)] {
            let mut found: Vec<u8> = agreeing(mask, key).collect();
            found.sort_unstable();
            let scan: Vec<u8> = (0..=255).filter(|byte| byte & mask == key & mask).collect();
            assert_eq!(found, scan);
        }
    }

    #[test]
    fn windows_cover_every_bit_once() {
        for bits in [1 << 63, u64::MAX, 0x8000_0001_0000_0180, 0] {
            let covered = windows(bits).fold(0, |all: u64, shift| all | 0xff << shift);
            assert_eq!(covered & bits, bits);
        }
    }
}
