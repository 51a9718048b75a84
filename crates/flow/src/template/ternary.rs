//! Entries of any masks, matched by bit vectors at a fixed cost.
//!
//! Entries are sorted by falling priority and cut into *blocks* of at most [`RULES`]. A block cuts the bits its masks look
//! at into *chunks* of 8. For each chunk and each value of its byte a row says, one bit per entry, which entries agree. The
//! and of one row per chunk leaves the entries that match; its first bit is the best of them. So a key costs
//! chunks × 128 bytes of a block at most, whatever the masks and the key are.
//!
//! Two things usually save most of that. A *summary* of each row, one bit per 16 entries, says where the and can have bits
//! at all: entries of prefixes leave few places. And rows are read in *strips* of 256 entries, best first, until one
//! has a match. Bits that all entries of a block agree on are compared once and need no chunk.

mod builder;

pub(crate) use builder::{Builder, Entry};

use super::Searched;
use super::masks::Best;
use super::probe::Scratch;
use super::masks::Masks;
use super::Found;
use crate::process::BATCH;
use crate::store::RecordId;
use wire::{Key, WORDS};

/// Entries per block: a row is two cache lines.
const RULES: usize = 1024;
/// Blocks of one table: 16 are 2 MB of rows for five-tuples.
const BLOCKS: usize = 16;
/// Entries that fit in any case: blocks may be half full.
pub(crate) const CAPACITY: usize = RULES * BLOCKS / 2;
/// 64-bit words per row.
const ROW: usize = RULES / 64;
/// Words per strip.
const STRIP: usize = 4;
/// Strips per block, which is what a block counts for in probes.
const STRIPS: usize = ROW / STRIP;
/// Candidate groups of 16 in a strip up to which they are tried one by one.
const FEW: u32 = 2;

/// Eight bits of a key, and what entries say to each value of them.
struct Chunk {
    word: u8,
    shift: u8,
    summaries: Box<[u64; 256]>,
    rows: Box<[[u64; ROW]; 256]>,
}

impl Chunk {
    fn value(&self, key: &Key) -> usize {
        (key.0[usize::from(self.word) % WORDS] >> self.shift) as usize & 0xff
    }
}

/// Up to [`RULES`] entries in order of falling priority.
pub(crate) struct Block {
    /// What all entries agree on: mask and value.
    common: Box<[(u8, u64, u64)]>,
    chunks: Box<[Chunk]>,
    records: Box<[RecordId]>,
    priorities: Box<[u16]>,
}

impl Block {
    /// Priority of its first entry.
    fn top(&self) -> u16 {
        self.priorities[0]
    }

    /// The first entry that matches, and the strips looked at.
    fn search(&self, key: &Key, values: &mut [u8; Self::MOST_CHUNKS]) -> (Option<usize>, u32) {
        let differ = self.common.iter().fold(0, |differ, &(word, mask, value)| differ | key.0[usize::from(word) % WORDS] & mask ^ value);
        if differ != 0 {
            return (None, 1);
        }
        let mut groups = u64::MAX;
        for (chunk, value) in self.chunks.iter().zip(values.iter_mut()) {
            *value = chunk.value(key) as u8;
            groups &= chunk.summaries[usize::from(*value)];
        }
        let mut strips = 0;
        while groups != 0 {
            let strip = groups.trailing_zeros() as usize / (STRIP * 4);
            let here = (groups >> (strip * STRIP * 4)) as u16;
            strips += 1;
            let found = if here.count_ones() <= FEW { self.sparse(strip, here, values) } else { self.dense(strip, values) };
            if let Some(bit) = found {
                return (Some(bit), strips);
            }
            groups &= !(0xffff << (strip * STRIP * 4));
        }
        (None, strips.max(1))
    }

    /// Chunks a block can have: one per byte of a key, and as many again where windows do not fall on bytes.
    const MOST_CHUNKS: usize = WORDS * 8;

    /// The first match in a strip, trying the groups of 16 that may have one.
    fn sparse(&self, strip: usize, mut groups: u16, values: &[u8]) -> Option<usize> {
        while groups != 0 {
            let group = groups.trailing_zeros() as usize;
            let (word, shift) = (strip * STRIP + group / 4, group % 4 * 16);
            let both = |all: u64, (chunk, &value): (&Chunk, &u8)| all & chunk.rows[usize::from(value)][word % ROW];
            let bits = self.chunks.iter().zip(values).fold(u64::MAX, both) >> shift & 0xffff;
            if bits != 0 {
                return Some(word * 64 + shift + bits.trailing_zeros() as usize);
            }
            groups &= groups - 1;
        }
        None
    }

    /// The first match in a strip, all of it at once.
    fn dense(&self, strip: usize, values: &[u8]) -> Option<usize> {
        let mut all = [u64::MAX; STRIP];
        for (chunk, &value) in self.chunks.iter().zip(values) {
            let row = &chunk.rows[usize::from(value)].as_chunks::<STRIP>().0[strip % STRIPS];
            (0..STRIP).for_each(|i| all[i] &= row[i]);
        }
        let word = all.iter().position(|&word| word != 0)?;
        Some((strip * STRIP + word) * 64 + all[word].trailing_zeros() as usize)
    }
}

/// A table with more masks than may be hashed: the largest are, the rest lie in blocks.
pub(crate) struct Ternary {
    masks: Masks,
    blocks: Box<[std::sync::Arc<Block>]>,
}

impl Ternary {
    /// Most probes of one key, a strip counting as one.
    pub fn probe_bound(&self) -> u32 {
        (self.masks.len() + self.blocks.len() * STRIPS) as u32
    }

    /// Whether an entry of this mask added later is found by its index.
    pub fn holds(&self, mask: u16) -> bool {
        self.masks.holds(mask)
    }

    /// Searches for each key: blocks first, since what they find ends the walk over the masks early.
    pub fn search(&self, at: Searched<'_>, keys: &[&Key], scratch: &mut Scratch, found: &mut Found) -> u32 {
        found[..keys.len()].fill(RecordId::NONE);
        let mut best: Best = [None; BATCH];
        let mut probes = 0;
        let mut values = [0; Block::MOST_CHUNKS];
        for block in &self.blocks {
            for (lane, key) in keys.iter().enumerate() {
                if best[lane].is_some() {
                    continue;
                }
                let (hit, strips) = block.search(key, &mut values);
                probes += strips;
                if let Some(bit) = hit {
                    (best[lane], found[lane]) = (Some(block.priorities[bit]), block.records[bit]);
                }
            }
        }
        probes + self.masks.improve(at, keys, scratch, found, &mut best)
    }
}
