//! One hashed mask: a batch of keys is packed, hashed, looked up and compared in separate passes.
//!
//! Each pass is a loop without dependences between its turns, so the processor has the cache misses of the whole batch
//! in flight at once; that is worth a factor of ten on a table that does not fit its caches.

use super::Tuple;
use super::ternary::Work;
use super::{Found, Inquiry, Searched};
use crate::limits::LANES;
use crate::store::{Bucket, FIRST_WORDS, IndexView, Line, Plan, RecordId};
use std::hint::black_box;
use std::sync::Arc;
use wire::{Key, WORDS};

/// Entries from which on lines are brought in by passes of their own. Chosen: 64 B each, a core has about 1 MB.
const FAR: u32 = 4096;

/// Working memory of searches, kept by the worker so that no search has to clear it.
pub(crate) struct Scratch {
    rows: [[u64; LANES]; WORDS],
    hashes: [u64; LANES],
    bits: [u32; LANES],
    pub(super) ternary: Work,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            rows: [[0; LANES]; WORDS],
            hashes: [0; LANES],
            bits: [0; LANES],
            ternary: Work::default(),
        }
    }
}

/// One mask's entries as a snapshot sees them.
pub(crate) struct Probe {
    /// The table's number for the mask.
    pub number: u16,
    plan: Arc<Plan>,
    index: IndexView,
    /// Highest priority of its entries.
    pub top: u16,
    /// The entries do not fit a core's own caches: worth passes that only bring lines in.
    far: bool,
}

impl Probe {
    /// The tuple as it is now.
    pub fn new(number: u16, tuple: &Tuple) -> Self {
        Self {
            number,
            plan: tuple.plan.clone(),
            index: tuple.index.view().clone(),
            top: tuple.priorities().0,
            far: tuple.rules > FAR,
        }
    }

    /// What every packet finds that `of` is about: see [`super::TableView::search_known`].
    pub fn search_known(
        &self,
        at: Searched<'_>,
        of: &mut Inquiry<'_>,
        scratch: &mut Scratch,
    ) -> Option<RecordId> {
        of.ask(self.plan.mask())?;
        let mut found = [RecordId::NONE; LANES];
        self.search(at, &[of.key], scratch, &mut found);
        Some(found[0])
    }

    /// Searches for each key.
    pub fn search(
        &self,
        at: Searched<'_>,
        keys: &[&Key],
        scratch: &mut Scratch,
        found: &mut Found,
    ) -> u32 {
        match self.plan.words() {
            1 => self.search_words::<1>(at, keys, scratch, found),
            2 => self.search_words::<2>(at, keys, scratch, found),
            3 => self.search_words::<3>(at, keys, scratch, found),
            4 => self.search_words::<4>(at, keys, scratch, found),
            _ => self.search_words::<0>(at, keys, scratch, found),
        }
    }

    /// [`Probe::search`] for packed keys of `N` words; 0 stands for any other number.
    fn search_words<const N: usize>(
        &self,
        at: Searched<'_>,
        keys: &[&Key],
        scratch: &mut Scratch,
        found: &mut Found,
    ) -> u32 {
        let words = if N == 0 { self.plan.words() } else { N };
        let all = keys.len().min(LANES);
        let Scratch { rows, hashes, bits, .. } = scratch;
        self.plan.pack_rows(&keys[..all], rows);
        let rows = &rows[..words];
        // Under a wide mask a batch is often one key: then one search is enough.
        let count = if are_alike(rows, all) { all.min(1) } else { all };
        at.secret.hash_rows(rows, count, hashes);
        let (hashes, whole) = (&hashes[..count], found);
        let found = &mut whole[..count];
        let mut buckets = [self.index.bucket(0); LANES];
        buckets.iter_mut().zip(hashes).for_each(|(at, &hash)| *at = self.index.bucket(hash));
        if self.far {
            black_box(buckets[..count].iter().fold(0, |sum, bucket| sum ^ bucket.touch()));
        }
        let looked = found.iter_mut().zip(bits.iter_mut()).zip(buckets.iter().zip(hashes));
        for ((found, bits), (bucket, &hash)) in looked {
            *bits = bucket.candidates(hash);
            // What lies at an element without the tag may be another mask's record by now.
            *found = if *bits == 0 { RecordId::NONE } else { bucket.record(bits.trailing_zeros()) };
        }
        let mut missing = self.compare::<N>(at, rows, found);
        while missing != 0 {
            let i = missing.trailing_zeros() as usize;
            missing &= missing - 1;
            found[i] = self.search_on::<N>(at, hashes[i], bits[i], rows, i);
        }
        let first = whole[0];
        whole[count..all].fill(first);
        count as u32
    }

    /// The keys whose first candidate is not theirs, as bits.
    fn compare<const N: usize>(
        &self,
        at: Searched<'_>,
        rows: &[[u64; LANES]],
        found: &[RecordId],
    ) -> u32 {
        let mut missing = 0;
        if !is_short(N) {
            if self.far {
                black_box(found.iter().fold(0, |sum, &id| sum ^ at.arena.touch(id)));
            }
            for (i, &id) in found.iter().enumerate() {
                missing |= u32::from(!is_hit::<N>(at, id, rows, i)) << i;
            }
            return missing;
        }
        // Stands in for what is no record.
        let Some(some) = at.arena.short_line(RecordId(0)) else {
            return u32::MAX >> (LANES - found.len());
        };
        let mut lines = [some; LANES];
        for (line, &id) in lines.iter_mut().zip(found) {
            *line = at.arena.short_line(id).unwrap_or(some);
        }
        if self.far {
            black_box(lines[..found.len()].iter().fold(0, |sum, line| sum ^ line.key_word(0)));
        }
        for (i, (&id, line)) in found.iter().zip(lines).enumerate() {
            missing |= u32::from(!is_hit_line::<N>(at, id, line, rows, i)) << i;
        }
        missing
    }

    /// Looks at the candidates after the first one.
    fn search_on<const N: usize>(
        &self,
        at: Searched<'_>,
        hash: u64,
        bits: u32,
        rows: &[[u64; LANES]],
        lane: usize,
    ) -> RecordId {
        let bucket: &Bucket = self.index.bucket(hash);
        if bits & bits.wrapping_sub(1) == 0 && !bucket.is_passed() {
            return RecordId::NONE;
        }
        self.index
            .candidates(hash)
            .find(|&id| is_hit::<N>(at, id, rows, lane))
            .unwrap_or(RecordId::NONE)
    }
}

/// Whether the first `count` keys are the same.
#[inline]
fn are_alike(rows: &[[u64; LANES]], count: usize) -> bool {
    let differ = |row: &[u64; LANES]| {
        row[..count.min(LANES)].iter().fold(0, |differ, word| differ | (word ^ row[0]))
    };
    rows.iter().all(|row| differ(row) == 0)
}

/// Whether the snapshot sees `id` and its key is that of `lane`.
fn is_hit<const N: usize>(
    at: Searched<'_>,
    id: RecordId,
    rows: &[[u64; LANES]],
    lane: usize,
) -> bool {
    if is_short(N) {
        return at
            .arena
            .short_line(id)
            .is_some_and(|line| is_hit_line::<N>(at, id, line, rows, lane));
    }
    let Some(record) = at.arena.get(id) else { return false };
    let differ = rows
        .iter()
        .enumerate()
        .fold(0, |differ, (word, row)| differ | row[lane % LANES] ^ record.key_word(word));
    differ == 0 && record.is_visible(at.generation)
}

/// Whether packed keys of `words` words fit the first line of a record.
const fn is_short(words: usize) -> bool {
    0 < words && words <= FIRST_WORDS
}

/// [`is_hit`] for the line of a short record.
fn is_hit_line<const N: usize>(
    at: Searched<'_>,
    id: RecordId,
    line: &Line,
    rows: &[[u64; LANES]],
    lane: usize,
) -> bool {
    let differ =
        (0..N).fold(0, |differ, word| differ | rows[word][lane % LANES] ^ line.key_word(word));
    differ == 0 && line.is_visible(at.generation) && id.is_some()
}
