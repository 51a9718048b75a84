//! Entries of any masks, matched by bit vectors at a fixed cost.
//!
//! Entries are sorted by falling priority and cut into *blocks* of at most [`RULES`]. A block cuts the bits its masks look
//! at into *chunks* of 8. For each chunk and each value of its byte a row says, one bit per entry, which entries agree. The
//! and of one row per chunk leaves the entries that match; its first bit is the best of them. So a key costs
//! chunks × 128 bytes of a block at most, whatever the masks and the key are.
//!
//! Two things usually save most of that. A *summary* of each row, one bit per 16 entries, says where the and can have bits
//! at all: entries of prefixes leave few places. And rows are read in *strips* of 512 entries, a cache line of each row, best first, until one
//! has a match. Bits that all entries of a block agree on are compared once and need no chunk.

mod builder;

pub(crate) use builder::{Builder, Entry};

use super::masks::{Best, Masks};
use super::probe::Scratch;
use super::single::Words;
use super::{Found, Searched};
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
const STRIP: usize = 8;
/// Strips per block, which is what a block counts for in probes.
const STRIPS: usize = ROW / STRIP;
/// Groups of one strip.
const GROUPS: u64 = (1 << (STRIP * 4)) - 1;
/// Candidate groups of 16 in a strip up to which they are tried one by one.
const FEW: u32 = 4;

/// One bit per entry of a block. Aligned, so that a strip is one cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
struct Row([u64; ROW]);

/// Eight bits of a key.
#[derive(Clone, Copy, Debug)]
struct Window {
    word: u8,
    shift: u8,
}

/// Which row of each chunk a key takes.
type Taken = [u16; Block::MOST_CHUNKS];

/// Up to [`RULES`] entries in order of falling priority.
pub(crate) struct Block {
    /// What all entries agree on.
    common: Words,
    /// The chunks.
    windows: Box<[Window]>,
    /// 256 rows per chunk.
    rows: Box<[Row]>,
    /// One per row.
    summaries: Box<[u64]>,
    /// Groups that have entries.
    groups: u64,
    /// Summaries say little: masks of scattered bits let something through in most groups.
    is_scattered: bool,
    records: Box<[RecordId]>,
    priorities: Box<[u16]>,
}

impl Block {
    /// Chunks a block can have: one per byte of a key, and as many again where windows do not fall on bytes.
    const MOST_CHUNKS: usize = WORDS * 8;

    /// The first entry that matches, and the strips looked at.
    fn search(&self, key: &Key, taken: &mut Taken) -> (Option<usize>, u32) {
        if !self.common.matches(key) {
            return (None, 1);
        }
        for (chunk, (row, window)) in taken.iter_mut().zip(&self.windows).enumerate() {
            let byte = (key.0[usize::from(window.word) % WORDS] >> window.shift) as u8;
            *row = (chunk << 8) as u16 | u16::from(byte);
        }
        let taken = &taken[..self.windows.len()];
        let mut groups = self.groups;
        if !self.is_scattered {
            groups = taken.iter().fold(groups, |groups, &row| groups & self.summaries[usize::from(row)]);
        }
        let mut strips = 0;
        while groups != 0 {
            let strip = groups.trailing_zeros() as usize / (STRIP * 4);
            let here = (groups >> (strip * STRIP * 4)) & GROUPS;
            strips += 1;
            let found = if here.count_ones() <= FEW { self.sparse(strip, here, taken) } else { self.dense(strip, taken) };
            if found.is_some() {
                return (found, strips);
            }
            groups &= !(GROUPS << (strip * STRIP * 4));
        }
        (None, strips.max(1))
    }

    /// The first match in a strip, trying the groups of 16 that may have one.
    fn sparse(&self, strip: usize, mut groups: u64, taken: &[u16]) -> Option<usize> {
        while groups != 0 {
            let group = groups.trailing_zeros() as usize;
            let (word, shift) = ((strip * STRIP + group / 4) % ROW, group % 4 * 16);
            let bits = taken.iter().fold(u64::MAX, |all, &row| all & self.rows[usize::from(row)].0[word]) >> shift & 0xffff;
            if bits != 0 {
                return Some(word * 64 + shift + bits.trailing_zeros() as usize);
            }
            groups &= groups - 1;
        }
        None
    }

    /// The first match in a strip, all of it at once.
    fn dense(&self, strip: usize, taken: &[u16]) -> Option<usize> {
        let mut all = [u64::MAX; STRIP];
        for &row in taken {
            let part = &self.rows[usize::from(row)].0.as_chunks::<STRIP>().0[strip % STRIPS];
            (0..STRIP).for_each(|i| all[i] &= part[i]);
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
        let mut taken = [0; Block::MOST_CHUNKS];
        for block in &self.blocks {
            for (lane, key) in keys.iter().enumerate() {
                if best[lane].is_some() {
                    continue;
                }
                let (hit, strips) = block.search(key, &mut taken);
                probes += strips;
                if let Some(bit) = hit {
                    (best[lane], found[lane]) = (Some(block.priorities[bit]), block.records[bit]);
                }
            }
        }
        probes + self.masks.improve(at, keys, scratch, found, &mut best)
    }
}
