//! Entries of any masks, matched by bit vectors at a fixed cost.
//!
//! Entries are sorted by falling priority and cut into *blocks* of at most [`RULES`]. The bytes of the key that the masks
//! of a block look at are its *chunks*. For each value of each half of such a byte a *row* says, one bit per entry, which
//! entries agree. The and of two rows per chunk leaves the entries that match; its first bit is the best of them. So a
//! key costs 256 bytes per chunk of a block at most, whatever the masks and the key are.
//!
//! Rows are read in *strips* of 512 entries, a cache line of each row, best first, until one has a match. Bits that all
//! entries of a block agree on are compared once and are no chunk. In tables of many blocks a *summary* of each row, one
//! bit per 16 entries, says beforehand which strips can have a match at all.

mod builder;
mod strip;

pub(crate) use builder::{Builder, Entry};

use super::masks::{Best, Masks};
use super::probe::Scratch;
use super::single::Words;
use super::{Found, Searched};
use crate::limits::LANES;
use crate::store::RecordId;
use strip::{BITS, STRIP, Strip};
use wire::{Key, WORDS};

/// Entries per block: a row is two cache lines.
const RULES: usize = 1024;
/// Blocks of one table: 16 are 2 MB of rows for five-tuples.
const BLOCKS: usize = 16;
/// Entries that fit in any case: blocks may be half full.
pub(crate) const CAPACITY: usize = RULES * BLOCKS / 2;
/// Rows per chunk: one for each value of the byte's low half, then one for each of the high half. Measured: with a row for
/// each of 256 values there is half as much to read, but it no longer fits a core's first cache.
const CHUNK: usize = 32;
/// 64-bit words per row.
const ROW: usize = RULES / 64;
/// Strips per block. A block counts as one probe, and one per strip.
const STRIPS: usize = ROW / STRIP;
/// Groups of one strip.
const GROUPS: u64 = (1 << (STRIP * 4)) - 1;

/// A key, byte by byte: byte `i` of word `w` (from its low end) at `8 * w + i`.
type Bytes = [u8; WORDS * 8];

/// Up to [`RULES`] entries in order of falling priority.
pub(crate) struct Block {
    /// What all entries agree on.
    common: Words,
    /// Words that have chunks.
    words: Box<[u8]>,
    /// The chunks: which byte of a key each one is.
    chunks: Box<[u8]>,
    /// For each strip, its part of the [`CHUNK`] rows per chunk: what is read together lies together.
    rows: [Box<[Strip]>; STRIPS],
    /// One per row.
    summaries: Box<[u64]>,
    /// Summaries are worth reading: there are many blocks, and masks are not of scattered bits, which let something
    /// through in most groups.
    skips: bool,
    records: Box<[RecordId]>,
    priorities: Box<[u16]>,
}

impl Block {
    /// Notes the bytes of the keys that may match and, if summaries are worth it, where. Returns those keys as bits.
    fn admit(&self, keys: &[&Key], mut lanes: u32, work: &mut Work) -> u32 {
        let mut admitted = 0;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize % LANES;
            lanes &= lanes - 1;
            let (key, bytes) = (keys[lane], &mut work.bytes[lane]);
            for &word in &self.words {
                bytes.as_chunks_mut().0[usize::from(word) % WORDS] =
                    key.0[usize::from(word) % WORDS].to_le_bytes();
            }
            work.groups[lane] = if self.skips { self.groups(bytes) } else { u64::MAX };
            admitted |= u32::from(self.common.matches(key)) << lane;
        }
        admitted
    }

    /// The groups of 16 entries in which something may match.
    fn groups(&self, bytes: &Bytes) -> u64 {
        let summaries = self.summaries.as_chunks::<CHUNK>().0.iter().zip(&self.chunks);
        summaries.fold(u64::MAX, |groups, (rows, &chunk)| {
            let (low, high) = nibbles(bytes, chunk);
            groups & rows[low] & rows[high]
        })
    }

    /// Searches for the keys in `lanes`. Returns those for which nothing was found, and the strips looked at; the
    /// entries found are in `work`.
    fn search(&self, mut lanes: u32, work: &mut Work) -> (u32, u32) {
        let mut strips = 0;
        for strip in 0..STRIPS {
            let mut left = lanes;
            while left != 0 {
                let lane = left.trailing_zeros() as usize % LANES;
                left &= left - 1;
                if self.skips && work.groups[lane] >> (strip * STRIP * 4) & GROUPS == 0 {
                    continue;
                }
                strips += 1;
                let place = self.first(strip, &work.bytes[lane]);
                work.places[lane] = place;
                lanes &= !(u32::from(place < RULES as u32) << lane);
            }
        }
        (lanes, strips)
    }

    /// The first entry of a strip that matches, or at least [`RULES`].
    fn first(&self, strip: usize, bytes: &Bytes) -> u32 {
        let (rows, _) = self.rows[strip % STRIPS].as_chunks::<CHUNK>();
        let place = matching(rows, &self.chunks, bytes).first();
        if place < BITS { place + strip as u32 * BITS } else { RULES as u32 }
    }
}

/// The entries of a strip that match; `rows` are its rows, chunk by chunk. A call of its own whose argument is the rows
/// themselves: only so the compiler knows how they are aligned, and makes one vector instruction of a load and an and.
#[inline(never)]
fn matching(rows: &[[Strip; CHUNK]], chunks: &[u8], bytes: &Bytes) -> Strip {
    let mut all = Strip::ones();
    for (rows, &chunk) in rows.iter().zip(chunks) {
        let (low, high) = nibbles(bytes, chunk);
        all.and(&rows[low]);
        all.and(&rows[high]);
    }
    all
}

/// The two rows of a chunk that a key takes.
fn nibbles(bytes: &Bytes, chunk: u8) -> (usize, usize) {
    let byte = bytes[usize::from(chunk) % bytes.len()];
    (usize::from(byte & 15), 16 + usize::from(byte >> 4))
}

/// Working memory of a search.
pub(super) struct Work {
    bytes: [Bytes; LANES],
    groups: [u64; LANES],
    places: [u32; LANES],
}

impl Default for Work {
    fn default() -> Self {
        Self { bytes: [[0; WORDS * 8]; LANES], groups: [0; LANES], places: [0; LANES] }
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
        (self.masks.len() + self.blocks.len() * (1 + STRIPS)) as u32
    }

    /// Whether an entry of this mask added later is found by its index.
    pub fn holds(&self, mask: u16) -> bool {
        self.masks.holds(mask)
    }

    /// Searches for each key: blocks first, since what they find ends the walk over the masks early.
    pub fn search(
        &self,
        at: Searched<'_>,
        keys: &[&Key],
        scratch: &mut Scratch,
        found: &mut Found,
    ) -> u32 {
        found[..keys.len()].fill(RecordId::NONE);
        let mut best: Best = [None; LANES];
        let mut probes = 0;
        let mut missing = (u64::from(u32::MAX) >> (LANES - keys.len().min(LANES))) as u32;
        for block in &self.blocks {
            let admitted = block.admit(keys, missing, &mut scratch.ternary);
            let (left, strips) = block.search(admitted, &mut scratch.ternary);
            probes += strips + missing.count_ones();
            let mut hits = admitted & !left;
            missing &= !hits;
            while hits != 0 {
                let lane = hits.trailing_zeros() as usize % LANES;
                hits &= hits - 1;
                let place = scratch.ternary.places[lane] as usize;
                (best[lane], found[lane]) = (Some(block.priorities[place]), block.records[place]);
            }
        }
        probes + self.masks.improve(at, keys, scratch, found, &mut best)
    }
}
