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
    pub(crate) fn push(&mut self, to: PortIx, chain: &mut Chain, head: HeadAt) {
        debug_assert!(self.room() > 0, "more frames than were reserved");
        let at = self.entry(Entry { head, next: END });
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

    /// The chain's first head, taken off.
    #[inline]
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<HeadAt> {
        if chain.is_empty() {
            return None;
        }
        let at = chain.first;
        let Entry { head, next } = self.entries[at as usize];
        chain.first = next;
        self.entries[at as usize].next = self.free;
        self.free = at;
        self.waiting -= 1;
        Some(head)
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
