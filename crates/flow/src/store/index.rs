//! The hash index over records: extendible, in place, shared by all snapshots.
//!
//! A bucket is one cache line of 12 elements: a byte of the hash each (the *tag*) and the record. An element that finds its
//! bucket full goes to the next one with room, at most [`WALK`] buckets on, and every bucket passed counts it;
//! a search goes on past a bucket only while that count is not zero, so removal leaves no tombstones.
//!
//! Buckets form *segments* of at most [`SEGMENT`] buckets; the top bits of the hash choose the segment in a directory. A
//! segment grows by doubling, then splits in two, so one insertion never costs more than the rehash of one segment.
//!
//! **Sharing.** Workers read while the control thread inserts and removes. An element is written before its tag
//! (release) and read after it (acquire); elements never move inside a segment; a segment that grows is replaced, and
//! snapshots keep the old one. What a reader finds is only a candidate: it compares the record's key and lifetime.

use super::record::RecordId;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Elements per bucket.
const ELEMENTS: usize = 12;
/// Buckets a search may look at beyond the first.
const WALK: usize = 7;
/// Most buckets per segment: a split moves about 8,000 elements.
const SEGMENT: usize = 1024;
/// A segment this full (elements per bucket) grows.
const FULL_AT: usize = 9;
/// Directory depth that only colliding hashes could exceed.
const MAX_DEPTH: u32 = 20;

/// Too many colliding hashes: someone knows the secret, or 2³⁰ entries share a mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

/// One cache line: tags of elements 0..8; tags of 8..12 with the count of elements that passed by; records.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Bucket {
    tags: [AtomicU64; 2],
    records: [AtomicU32; ELEMENTS],
}

/// The tag of a hash, never 0.
const fn tag_of(hash: u64) -> u8 {
    let tag = (hash >> 32) as u8;
    if tag == 0 { 1 } else { tag }
}

const LOW: u64 = 0x0101_0101_0101_0101;
const SEVENS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// Bit 7 of each byte of `word` that equals `tag`, and no other bit.
const fn equal_bytes(word: u64, tag: u8) -> u64 {
    let differ = word ^ (tag as u64).wrapping_mul(LOW);
    !((differ & SEVENS).wrapping_add(SEVENS) | differ | SEVENS)
}

impl Bucket {
    /// Elements whose tag is that of `hash`, as bits 0..12.
    pub fn candidates(&self, hash: u64) -> u32 {
        let tag = tag_of(hash);
        let first = equal_bytes(self.tags[0].load(Acquire), tag);
        let second = equal_bytes(self.tags[1].load(Acquire), tag) & 0x8080_8080;
        // Gathers bits 7, 15, …, 63 into one byte.
        const GATHER: u64 = 0x0002_0408_1020_4081;
        let squeeze = |bits: u64| ((bits >> 7).wrapping_mul(GATHER << 7) >> 56) as u32;
        squeeze(first) | squeeze(second) << 8
    }

    /// Element `index`; some element if there is none of that number.
    pub fn record(&self, index: u32) -> RecordId {
        RecordId(self.records[(index as usize).min(ELEMENTS - 1)].load(Relaxed))
    }

    /// Brings the bucket's line into the cache: give the result to something that cannot be optimised away.
    pub fn touch(&self) -> u64 {
        self.tags[0].load(Relaxed)
    }

    /// Whether elements went past this bucket.
    pub fn is_passed(&self) -> bool {
        self.tags[1].load(Relaxed) >> 32 != 0
    }

    fn tag(&self, index: usize) -> u8 {
        (self.tags[index / 8].load(Relaxed) >> (index % 8 * 8)) as u8
    }

    fn set_tag(&self, index: usize, tag: u8) {
        let (word, shift) = (&self.tags[index / 8], index % 8 * 8);
        word.store(word.load(Relaxed) & !(0xff << shift) | (tag as u64) << shift, Release);
    }

    fn pass(&self, step: i64) {
        let word = &self.tags[1];
        word.store(word.load(Relaxed).wrapping_add_signed(step << 32), Release);
    }

    fn elements(&self) -> impl Iterator<Item = RecordId> {
        (0..ELEMENTS).filter(|&i| self.tag(i) != 0).map(|i| self.record(i as u32))
    }

    fn insert(&self, hash: u64, id: RecordId) -> bool {
        let Some(index) = (0..ELEMENTS).find(|&i| self.tag(i) == 0) else { return false };
        self.records[index].store(id.0, Relaxed);
        self.set_tag(index, tag_of(hash));
        true
    }

    fn remove(&self, id: RecordId) -> bool {
        let Some(index) = (0..ELEMENTS).find(|&i| self.tag(i) != 0 && self.record(i as u32) == id)
        else {
            return false;
        };
        self.set_tag(index, 0);
        true
    }
}

/// A power-of-two array of buckets.
pub(crate) struct Segment {
    buckets: Box<[Bucket]>,
    /// Top bits of the hash that all its elements share.
    depth: u32,
    used: AtomicU32,
}

impl Segment {
    fn new(buckets: usize, depth: u32) -> Self {
        Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            depth,
            used: AtomicU32::new(0),
        }
    }

    /// A segment of these elements; `None` if some would lie too far from their place.
    fn filled(buckets: usize, depth: u32, elements: &[(u64, RecordId)]) -> Option<Self> {
        let segment = Self::new(buckets, depth);
        elements.iter().all(|&(hash, id)| segment.insert(hash, id)).then_some(segment)
    }

    fn bucket(&self, at: usize) -> &Bucket {
        &self.buckets[at & (self.buckets.len() - 1)]
    }

    fn insert(&self, hash: u64, id: RecordId) -> bool {
        let home = hash as usize;
        let reach = WALK.min(self.buckets.len() - 1);
        let Some(distance) =
            (0..=reach).find(|&d| self.bucket(home.wrapping_add(d)).insert(hash, id))
        else {
            return false;
        };
        (0..distance).for_each(|d| self.bucket(home.wrapping_add(d)).pass(1));
        self.used.store(self.used.load(Relaxed) + 1, Relaxed);
        true
    }

    fn remove(&self, hash: u64, id: RecordId) {
        let home = hash as usize;
        let reach = WALK.min(self.buckets.len() - 1);
        let Some(distance) = (0..=reach).find(|&d| self.bucket(home.wrapping_add(d)).remove(id))
        else {
            return;
        };
        (0..distance).for_each(|d| self.bucket(home.wrapping_add(d)).pass(-1));
        self.used.store(self.used.load(Relaxed) - 1, Relaxed);
    }

    fn is_full(&self) -> bool {
        let (used, buckets) = (self.used.load(Relaxed) as usize, self.buckets.len());
        used >= if buckets == 1 { ELEMENTS } else { buckets * FULL_AT }
    }

    fn elements(&self) -> impl Iterator<Item = RecordId> {
        self.buckets.iter().flat_map(Bucket::elements)
    }
}

/// The index as one snapshot sees it.
#[derive(Clone)]
pub(crate) struct IndexView {
    directory: Arc<Vec<Arc<Segment>>>,
    /// 64 - depth of the directory.
    shift: u32,
}

impl IndexView {
    fn segment(&self, hash: u64) -> &Segment {
        // A shift by 64 (one segment) is written as two, since it would overflow.
        &self.directory[(hash >> 1 >> (self.shift - 1)) as usize]
    }

    /// Where a search for `hash` begins.
    pub fn bucket(&self, hash: u64) -> &Bucket {
        self.segment(hash).bucket(hash as usize)
    }

    /// The bucket `distance` after it, while the ones before were passed.
    pub fn bucket_after(&self, hash: u64, distance: usize) -> Option<&Bucket> {
        (distance <= WALK)
            .then(|| self.segment(hash).bucket((hash as usize).wrapping_add(distance)))
    }

    /// Candidates for `hash`, nearest bucket first.
    pub fn candidates(&self, hash: u64) -> impl Iterator<Item = RecordId> {
        let mut distance = 0;
        let mut bucket = self.bucket(hash);
        let mut bits = bucket.candidates(hash);
        std::iter::from_fn(move || {
            while bits == 0 {
                distance += 1;
                if !bucket.is_passed() {
                    return None;
                }
                bucket = self.bucket_after(hash, distance)?;
                bits = bucket.candidates(hash);
            }
            let index = bits.trailing_zeros();
            bits &= bits - 1;
            Some(bucket.record(index))
        })
    }

    /// Every element once.
    pub fn elements(&self) -> impl Iterator<Item = RecordId> {
        let depth = 64 - self.shift;
        let first_of_its_run =
            move |at: usize, segment: &Segment| at & ((1 << (depth - segment.depth)) - 1) == 0;
        self.directory
            .iter()
            .enumerate()
            .filter(move |(at, segment)| first_of_its_run(*at, segment))
            .flat_map(|(_, s)| s.elements())
    }
}

/// The index as its owner changes it.
pub(crate) struct Index(IndexView);

impl Default for Index {
    fn default() -> Self {
        Self(IndexView { directory: Arc::new(vec![Arc::new(Segment::new(1, 0))]), shift: 64 })
    }
}

impl Index {
    /// What snapshots take.
    pub fn view(&self) -> &IndexView {
        &self.0
    }

    /// Inserts; `hash_of` gives the hash of elements that must move, `None` for those that only old views may see.
    /// Returns whether views are outdated.
    ///
    /// # Errors
    /// [`Full`]: nothing changed for readers.
    pub fn insert(
        &mut self,
        hash: u64,
        id: RecordId,
        hash_of: impl Fn(RecordId) -> Option<u64>,
    ) -> Result<bool, Full> {
        let mut grown = false;
        while self.0.segment(hash).is_full() || !self.0.segment(hash).insert(hash, id) {
            self.grow(hash, &hash_of)?;
            grown = true;
        }
        Ok(grown)
    }

    /// Removes; nothing happens if it is not there.
    pub fn remove(&mut self, hash: u64, id: RecordId) {
        self.0.segment(hash).remove(hash, id);
    }

    /// Rebuilds the segment of `hash` with more room: without its dead, doubled, or split.
    fn grow(&mut self, hash: u64, hash_of: &impl Fn(RecordId) -> Option<u64>) -> Result<(), Full> {
        let old = self.0.segment(hash);
        let (size, depth) = (old.buckets.len(), old.depth);
        let living: Vec<(u64, RecordId)> =
            old.elements().filter_map(|id| Some((hash_of(id)?, id))).collect();
        let dead = old.used.load(Relaxed) as usize - living.len();
        let crowded = living.len() * 4 >= size;
        let compact = (dead > size).then(|| Segment::filled(size, depth, &living)).flatten();
        let larger = || {
            Segment::filled(size * 2, depth, &living)
                .filter(|_| size < SEGMENT || !crowded && size < SEGMENT * 4)
        };
        if let Some(new) = compact.or_else(larger) {
            self.replace(hash, depth, &[Arc::new(new)]);
            return Ok(());
        }
        if depth >= MAX_DEPTH || !crowded {
            return Err(Full);
        }
        let (high, low): (Vec<_>, Vec<_>) =
            living.into_iter().partition(|(hash, _)| hash >> (63 - depth) & 1 == 1);
        let half =
            |elements: &[_]| Segment::filled(size, depth + 1, elements).map(Arc::new).ok_or(Full);
        let halves = [half(&low)?, half(&high)?];
        self.replace(hash, depth, &halves);
        Ok(())
    }

    /// Puts one or two segments in the place of the one of `hash`.
    fn replace(&mut self, hash: u64, depth: u32, with: &[Arc<Segment>]) {
        let new_depth = with[0].depth;
        if new_depth > 64 - self.0.shift {
            let doubled = self
                .0
                .directory
                .iter()
                .flat_map(|segment| [segment.clone(), segment.clone()])
                .collect();
            self.0.directory = Arc::new(doubled);
            self.0.shift -= 1;
        }
        let run = 1_usize << (64 - self.0.shift - depth);
        let start = (hash >> 1 >> (self.0.shift - 1)) as usize & !(run - 1);
        let directory = Arc::make_mut(&mut self.0.directory);
        for at in 0..run {
            directory[start + at] = with[at * with.len() / run].clone();
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        let depth = 64 - self.0.shift;
        let share = |segment: &Arc<Segment>| {
            (segment.buckets.len() * size_of::<Bucket>()) >> (depth - segment.depth)
        };
        self.0.directory.iter().map(share).sum::<usize>()
            + self.0.directory.len() * size_of::<Arc<Segment>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Secret;

    fn hash_of(id: RecordId) -> u64 {
        Secret::new([1, 2]).hash(&[id.0 as u64])
    }

    fn found(index: &Index, id: RecordId) -> bool {
        index.view().candidates(hash_of(id)).any(|other| other == id)
    }

    #[test]
    fn every_element_inserted_is_found_until_it_is_removed() {
        let mut index = Index::default();
        for n in 0..50_000 {
            index.insert(hash_of(RecordId(n)), RecordId(n), |id| Some(hash_of(id))).unwrap();
        }
        assert!((0..50_000).all(|n| found(&index, RecordId(n))));
        for n in (0..50_000).step_by(3) {
            index.remove(hash_of(RecordId(n)), RecordId(n));
        }
        assert!((0..50_000).filter(|n| n % 3 != 0).all(|n| found(&index, RecordId(n))));
        let mut all: Vec<u32> = index.view().elements().map(|id| id.0).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq((0..50_000).filter(|n| n % 3 != 0)));
    }

    #[test]
    fn a_view_taken_before_growth_still_finds_what_it_had() {
        let mut index = Index::default();
        for n in 0..100 {
            index.insert(hash_of(RecordId(n)), RecordId(n), |id| Some(hash_of(id))).unwrap();
        }
        let view = index.view().clone();
        for n in 100..20_000 {
            index.insert(hash_of(RecordId(n)), RecordId(n), |id| Some(hash_of(id))).unwrap();
        }
        assert!((0..100).all(|n| view.candidates(hash_of(RecordId(n))).any(|id| id.0 == n)));
    }

    #[test]
    fn equal_hashes_are_refused_at_the_bound_instead_of_growing_without_end() {
        let mut index = Index::default();
        let refused = (0..1000).find(|&n| index.insert(7, RecordId(n), |_| Some(7)).is_err());
        assert!(refused.is_some_and(|n| n as usize >= ELEMENTS), "{refused:?}");
        assert!(index.bytes() < 1 << 20);
    }
}
