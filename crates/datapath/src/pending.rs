//! Frames that wait for the end of the pass, grouped by destination.
//!
//! One list of small entries for all destinations, chained per port: a port costs eight bytes, whether a node has four or four
//! thousand, and grouping needs no sort. An entry names a head; what else is known of the frame lies beside the head.

use crate::local::PortIx;

/// Place of a head: below [`port::BATCH`] in the batch, above among the spare ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HeadAt(pub(crate) u16);

impl HeadAt {
    /// No place: the frame was lost.
    pub(crate) const NONE: HeadAt = HeadAt(u16::MAX);
}

/// Entries at least: a full batch through a switch of 1000 ports, each packet making all the copies it may. Memory is touched
/// only as far as it is used.
const ENTRIES: usize = 65_536;

/// End of a chain.
const END: u32 = u32::MAX;

/// A destination's part of the list.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    first: u32,
    last: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self { first: END, last: END }
    }
}

impl Chain {
    pub(crate) fn is_empty(&self) -> bool {
        self.first == END
    }
}

#[derive(Clone, Copy)]
struct Entry {
    head: HeadAt,
    /// Lane of the port's shaper, if it has one.
    lane: u8,
    next: u32,
}

/// The list.
pub(crate) struct Pending {
    entries: Vec<Entry>,
    capacity: usize,
    free: u32,
    waiting: usize,
    /// Destinations with a chain.
    dirty: Vec<PortIx>,
    /// Emptied, to swap with `dirty` during a flush.
    other: Vec<PortIx>,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            entries: Vec::with_capacity(ENTRIES),
            capacity: ENTRIES,
            free: END,
            waiting: 0,
            dirty: Vec::new(),
            other: Vec::new(),
        }
    }
}

impl Pending {
    /// Makes sure that `copies` entries and `ports` destinations fit; at attach time only.
    pub(crate) fn reserve(&mut self, copies: usize, ports: usize) {
        if copies > self.capacity {
            self.entries.reserve(copies - self.entries.len());
            self.capacity = copies;
        }
        for list in [&mut self.dirty, &mut self.other] {
            list.reserve(ports.saturating_sub(list.len()));
        }
    }

    /// Entries in all.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Entries that are free.
    pub(crate) fn room(&self) -> usize {
        self.capacity - self.waiting
    }

    /// Appends to `chain`, the port `to`'s; the caller keeps to [`Pending::room`].
    #[inline]
    pub(crate) fn push(&mut self, to: PortIx, chain: &mut Chain, (head, lane): (HeadAt, u8)) {
        debug_assert!(self.room() > 0, "more frames than were reserved");
        let at = self.entry(Entry { head, lane, next: END });
        if chain.is_empty() {
            self.dirty.push(to);
            chain.first = at;
        } else {
            self.entries[chain.last as usize].next = at;
        }
        chain.last = at;
        self.waiting += 1;
    }

    #[inline]
    fn entry(&mut self, entry: Entry) -> u32 {
        if self.free == END {
            self.entries.push(entry);
            return (self.entries.len() - 1) as u32;
        }
        let at = self.free;
        self.free = self.entries[at as usize].next;
        self.entries[at as usize] = entry;
        at
    }

    /// The chain's first head and its lane, taken off.
    #[inline]
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<(HeadAt, u8)> {
        if chain.is_empty() {
            return None;
        }
        let at = chain.first;
        let Entry { head, lane, next } = self.entries[at as usize];
        chain.first = next;
        self.entries[at as usize].next = self.free;
        self.free = at;
        self.waiting -= 1;
        Some((head, lane))
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
        if self.waiting == 0 {
            self.entries.clear();
            self.free = END;
        }
    }

    /// Forgets everything; the chains must be reset too.
    pub(crate) fn reset(&mut self) {
        self.entries.clear();
        self.dirty.clear();
        self.free = END;
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(pending: &mut Pending, chain: &mut Chain) -> Vec<u16> {
        std::iter::from_fn(|| pending.pop(chain).map(|(head, _)| head.0)).collect()
    }

    #[test]
    fn each_destination_gets_its_heads_in_order() {
        let (mut pending, mut chains) = (Pending::default(), [Chain::default(); 3]);
        for head in 0..30 {
            let to = usize::from(head) % 3;
            pending.push(PortIx(to as u32), &mut chains[to], (HeadAt(head), 0));
        }
        assert_eq!(pending.room(), pending.capacity() - 30);
        let dirty = pending.take_dirty();
        assert_eq!(dirty, [0, 1, 2].map(PortIx));
        for (to, chain) in chains.iter_mut().enumerate() {
            let expected: Vec<u16> = (0..30).filter(|head| usize::from(*head) % 3 == to).collect();
            assert_eq!(drain(&mut pending, chain), expected);
        }
        pending.return_dirty(dirty);
        assert_eq!(pending.room(), pending.capacity());
    }

    #[test]
    fn a_head_put_back_during_a_flush_is_noted_for_the_next() {
        let (mut pending, mut chain) = (Pending::default(), Chain::default());
        for head in 0..4 {
            pending.push(PortIx(7), &mut chain, (HeadAt(head), 3));
        }
        let (dirty, mut waiting) = (pending.take_dirty(), std::mem::take(&mut chain));
        while let Some((head, lane)) = pending.pop(&mut waiting) {
            if head.0 % 2 == 1 {
                pending.push(PortIx(7), &mut chain, (head, lane));
            }
        }
        pending.return_dirty(dirty);
        assert_eq!(pending.take_dirty(), [PortIx(7)]);
        assert_eq!(drain(&mut pending, &mut chain), [1, 3]);
    }
}
