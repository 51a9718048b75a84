//! Frames that wait for the end of the pass, grouped by destination.
//!
//! One pool of small blocks for all destinations, chained per port: a port costs eight bytes, whether a node has four or four thousand,
//! and grouping needs no sort. An entry names a head; what else is known of the frame lies beside that.
//!
//! A block is [`BLOCK`] words: the number of the next block, then entries. A chain knows where its next entry goes; that this place begins
//! a block says that a new block must be opened, and so does an empty chain, whose place is 0.

use crate::id::PortIx;

/// Reference to a head: below [`wire::BATCH`] in the batch, above among the spare ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HeadRef(pub(crate) u16);

impl HeadRef {
    /// No place: the frame was lost.
    pub(crate) const NONE: HeadRef = HeadRef(u16::MAX);
}

/// Entries at least: a full batch through a switch of 1000 ports, each packet making all the copies it may. Memory is touched
/// only as far as it is used.
const ENTRIES: usize = 131_072;

/// Words of a block: two cache lines.
const BLOCK: usize = 32;

/// Entries of a block.
pub(crate) const HELD: usize = BLOCK - 1;

/// Bit of an [`Entry`] whose head may have other places to go, and is counted for each of them.
const COUNTED: u32 = 1 << 31;

/// No block.
const NONE: u32 = u32::MAX;

/// A head that waits for a lane of a port, as one word, so that it is written and read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry(u32);

impl Entry {
    #[inline]
    pub(crate) fn new(head: HeadRef, lane: u8) -> Self {
        Self(u32::from(lane) << 16 | u32::from(head.0))
    }

    /// The same, of a head that is counted among those with more places to go.
    #[inline]
    pub(crate) fn counted(self) -> Self {
        Self(self.0 | COUNTED)
    }

    /// Whether it is.
    #[inline]
    pub(crate) fn is_counted(self) -> bool {
        self.0 & COUNTED != 0
    }

    /// The head.
    #[inline]
    pub(crate) fn head(self) -> HeadRef {
        HeadRef(self.0 as u16)
    }

    /// Lane of the port's shaper, if it has one.
    #[inline]
    pub(crate) fn lane(self) -> u8 {
        (self.0 >> 16) as u8
    }
}

/// A destination's part of the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// Its first block, if there is one.
    first: u32,
    /// Where its next entry goes.
    place: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self { first: NONE, place: 0 }
    }
}

/// Entries of one block, by their places.
pub(crate) type Places = std::ops::Range<usize>;

/// The list.
pub(crate) struct Pending {
    words: Vec<u32>,
    /// First of the free blocks.
    free: u32,
    /// Blocks in chains.
    used: usize,
    /// Destinations there may be.
    ports: usize,
    /// Entries that fit however they are spread over the destinations.
    capacity: usize,
    /// Destinations with a chain.
    dirty: Vec<PortIx>,
    /// Emptied, to swap with `dirty` during a flush.
    other: Vec<PortIx>,
}

impl Default for Pending {
    fn default() -> Self {
        let mut pending = Self {
            words: Vec::new(),
            free: NONE,
            used: 0,
            ports: 0,
            capacity: 0,
            dirty: Vec::new(),
            other: Vec::new(),
        };
        pending.reserve(ENTRIES, 0);
        pending
    }
}

impl Pending {
    /// Makes sure that `copies` entries and `ports` destinations fit; at attach time only.
    pub(crate) fn reserve(&mut self, copies: usize, ports: usize) {
        (self.capacity, self.ports) = (self.capacity.max(copies), self.ports.max(ports));
        // The last block of each chain may be all but empty.
        let words = (self.capacity.div_ceil(HELD) + self.ports) * BLOCK;
        self.words.reserve(words.saturating_sub(self.words.len()));
        for list in [&mut self.dirty, &mut self.other] {
            list.reserve(ports.saturating_sub(list.len()));
        }
    }

    /// Entries in all.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Entries that are free, however they are spread over the destinations.
    pub(crate) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.used * HELD)
    }

    /// Appends to `chain`, the port `to`'s; the caller keeps to [`Pending::room`].
    #[inline]
    pub(crate) fn push(&mut self, to: PortIx, chain: &mut Chain, entry: Entry) {
        if (chain.place as usize).is_multiple_of(BLOCK) {
            self.open(to, chain);
        }
        self.words[chain.place as usize] = entry.0;
        chain.place += 1;
    }

    /// Appends a block to `chain`, whose last one is full, or which has none.
    #[inline(never)]
    fn open(&mut self, to: PortIx, chain: &mut Chain) {
        let at = self.take();
        match (chain.place as usize).checked_sub(BLOCK) {
            Some(last) => self.words[last] = at,
            None => {
                chain.first = at;
                self.dirty.push(to);
            }
        }
        chain.place = at * BLOCK as u32 + 1;
    }

    /// The number of a free block.
    fn take(&mut self) -> u32 {
        self.used += 1;
        let at = self.free;
        if at == NONE {
            self.words.resize(self.words.len() + BLOCK, 0);
            return (self.words.len() / BLOCK) as u32 - 1;
        }
        self.free = self.words[at as usize * BLOCK];
        at
    }

    /// The places of the chain's first entries, taken off. Their block is free from now on, so nothing may be pushed meanwhile but entries
    /// that were read from it: they never overtake the reader.
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<Places> {
        let (first, end) = (chain.first as usize * BLOCK, chain.place as usize);
        let next = self.words.get_mut(first)?;
        let is_last = (first + 1..=first + BLOCK).contains(&end);
        let after = std::mem::replace(next, self.free);
        self.free = chain.first;
        self.used -= 1;
        *chain = if is_last { Chain::default() } else { Chain { first: after, ..*chain } };
        Some(first + 1..if is_last { end } else { first + BLOCK })
    }

    /// The port at which the first `count` heads of the batch wait, all of them, in order and alone, if that is all that waits.
    pub(crate) fn whole(
        &self,
        count: usize,
        chain_of: impl Fn(PortIx) -> Option<Chain>,
    ) -> Option<PortIx> {
        let [to] = self.dirty[..] else { return None };
        let chain = chain_of(to)?;
        let (mut block, mut heads) = (chain.first as usize * BLOCK, 0);
        loop {
            let end = chain.place as usize;
            let is_last = (block + 1..=block + BLOCK).contains(&end);
            let words = self.words.get(block + 1..if is_last { end } else { block + BLOCK })?;
            let differ = |(differ, head), word| (differ | (word ^ head), head + 1);
            let (differ, next) = words.iter().copied().fold((0, heads), differ);
            if differ != 0 || next > count as u32 {
                return None;
            }
            if is_last {
                return (next == count as u32).then_some(to);
            }
            (block, heads) = (self.words[block] as usize * BLOCK, next);
        }
    }

    /// Forgets what waits at a port, the only one.
    pub(crate) fn forget(&mut self, mut chain: Chain) {
        while self.pop(&mut chain).is_some() {}
        self.dirty.clear();
    }

    /// The entry at a place.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> Entry {
        Entry(self.words[place])
    }

    /// The destinations with a chain, all taken; give the vector back with [`Pending::return_dirty`]. What is pushed until then is
    /// noted anew.
    pub(crate) fn take_dirty(&mut self) -> Vec<PortIx> {
        let empty = std::mem::take(&mut self.other);
        std::mem::replace(&mut self.dirty, empty)
    }

    /// Gives the vector back, so that its memory is used again.
    pub(crate) fn return_dirty(&mut self, mut done: Vec<PortIx>) {
        done.clear();
        self.other = done;
    }

    /// Forgets everything; the chains must be reset too.
    pub(crate) fn reset(&mut self) {
        self.words.clear();
        self.dirty.clear();
        (self.free, self.used) = (NONE, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(head: u16, lane: u8) -> Entry {
        Entry::new(HeadRef(head), lane)
    }

    fn drain(pending: &mut Pending, chain: &mut Chain) -> Vec<u16> {
        let mut heads = Vec::new();
        while let Some(places) = pending.pop(chain) {
            heads.extend(places.map(|place| pending.at(place).head().0));
        }
        heads
    }

    #[test]
    fn each_destination_gets_its_heads_in_order() {
        let (mut pending, mut chains) = (Pending::default(), [Chain::default(); 3]);
        for head in 0..300 {
            let to = usize::from(head) % 3;
            pending.push(PortIx(to as u32), &mut chains[to], entry(head, 0));
        }
        assert!(pending.room() <= pending.capacity() - 300);
        let dirty = pending.take_dirty();
        assert_eq!(dirty, [0, 1, 2].map(PortIx));
        for (to, chain) in chains.iter_mut().enumerate() {
            let expected: Vec<u16> = (0..300).filter(|head| usize::from(*head) % 3 == to).collect();
            assert_eq!(drain(&mut pending, chain), expected);
        }
        pending.return_dirty(dirty);
        assert_eq!(pending.room(), pending.capacity());
    }

    #[test]
    fn what_there_is_room_for_fits_without_new_memory_however_it_is_spread() {
        let (mut pending, ports) = (Pending::default(), 1000);
        pending.reserve(ENTRIES + 77, ports);
        let (memory, mut chains) = (pending.words.capacity(), vec![Chain::default(); ports]);
        for (to, chain) in chains.iter_mut().enumerate() {
            pending.push(PortIx(to as u32), chain, entry(1, 0));
        }
        (0..pending.room()).for_each(|_| pending.push(PortIx(5), &mut chains[5], entry(2, 0)));
        assert!(pending.room() < HELD && pending.words.capacity() == memory);
    }

    #[test]
    fn a_head_put_back_during_a_flush_is_noted_for_the_next() {
        let (mut pending, mut chain) = (Pending::default(), Chain::default());
        for head in 0..100 {
            pending.push(PortIx(7), &mut chain, entry(head, 3));
        }
        let (dirty, mut waiting) = (pending.take_dirty(), std::mem::take(&mut chain));
        while let Some(places) = pending.pop(&mut waiting) {
            for place in places {
                let entry = pending.at(place);
                if entry.head().0 % 2 == 1 {
                    pending.push(PortIx(7), &mut chain, entry);
                }
            }
        }
        pending.return_dirty(dirty);
        assert_eq!(pending.take_dirty(), [PortIx(7)]);
        let odd: Vec<u16> = (0..100).filter(|head| head % 2 == 1).collect();
        assert_eq!(drain(&mut pending, &mut chain), odd);
    }
}
