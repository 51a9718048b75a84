//! Frames that wait for the end of the pass, grouped by destination.
//!
//! One list of small entries for all destinations, chained per port: a port costs eight bytes, whether a node has four or four
//! thousand, and grouping needs no sort. An entry names a *run* of heads that lie one after the other, so a batch that leaves by one port
//! is one entry; what else is known of the frames lies beside their heads.

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

/// Heads one after the other that wait for the same lane of a port: at most those of one call of the pipeline. Four bytes without a gap, so
/// that it is written and read as one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) first: HeadAt,
    pub(crate) len: u8,
    /// Lane of the port's shaper, if it has one.
    pub(crate) lane: u8,
}

const _: () = assert!(port::BATCH <= u8::MAX as usize);

impl Run {
    /// One head.
    pub(crate) fn of(head: HeadAt, lane: u8) -> Self {
        Self { first: head, len: 1, lane }
    }

    /// Takes in one head more, if it comes next and waits for the same lane.
    #[inline]
    pub(crate) fn add(&mut self, head: HeadAt, lane: u8) -> bool {
        let fits = head.0 == self.first.0 + u16::from(self.len) && lane == self.lane;
        self.len += u8::from(fits);
        fits
    }

    /// Its heads.
    pub(crate) fn heads(self) -> impl Iterator<Item = HeadAt> {
        (self.first.0..self.first.0 + u16::from(self.len)).map(HeadAt)
    }
}

#[derive(Clone, Copy)]
struct Entry {
    run: Run,
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
    pub(crate) fn push(&mut self, to: PortIx, chain: &mut Chain, run: Run) {
        debug_assert!(self.room() > 0, "more frames than were reserved");
        if chain.is_empty() {
            self.dirty.push(to);
            chain.first = self.entry(run);
            chain.last = chain.first;
            return;
        }
        let at = self.entry(run);
        self.entries[chain.last as usize].next = at;
        chain.last = at;
    }

    #[inline]
    fn entry(&mut self, run: Run) -> u32 {
        let entry = Entry { run, next: END };
        self.waiting += 1;
        if self.free == END {
            self.entries.push(entry);
            return (self.entries.len() - 1) as u32;
        }
        let at = self.free;
        self.free = self.entries[at as usize].next;
        self.entries[at as usize] = entry;
        at
    }

    /// The chain's first run, taken off.
    #[inline]
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<Run> {
        if chain.is_empty() {
            return None;
        }
        let at = chain.first;
        let Entry { run, next } = self.entries[at as usize];
        chain.first = next;
        self.entries[at as usize].next = self.free;
        self.free = at;
        self.waiting -= 1;
        Some(run)
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
        let runs = std::iter::from_fn(|| pending.pop(chain));
        runs.flat_map(Run::heads).map(|head| head.0).collect()
    }

    #[test]
    fn each_destination_gets_its_heads_in_order() {
        let (mut pending, mut chains) = (Pending::default(), [Chain::default(); 3]);
        for head in 0..30 {
            let to = usize::from(head) % 3;
            pending.push(PortIx(to as u32), &mut chains[to], Run::of(HeadAt(head), 0));
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
    fn a_run_takes_in_what_comes_next_in_its_lane() {
        let mut run = Run::of(HeadAt(4), 1);
        let added =
            [(5, 1), (6, 0), (7, 1), (6, 1), (7, 1)].map(|(at, lane)| run.add(HeadAt(at), lane));
        assert_eq!(added, [true, false, false, true, true]);
        assert_eq!(run.heads().map(|head| head.0).collect::<Vec<_>>(), [4, 5, 6, 7]);
    }

    #[test]
    fn a_head_put_back_during_a_flush_is_noted_for_the_next() {
        let (mut pending, mut chain) = (Pending::default(), Chain::default());
        for head in 0..4 {
            pending.push(PortIx(7), &mut chain, Run::of(HeadAt(head), 3));
        }
        let (dirty, mut waiting) = (pending.take_dirty(), std::mem::take(&mut chain));
        while let Some(run) = pending.pop(&mut waiting) {
            for head in run.heads().filter(|head| head.0 % 2 == 1) {
                pending.push(PortIx(7), &mut chain, Run::of(head, run.lane));
            }
        }
        pending.return_dirty(dirty);
        assert_eq!(pending.take_dirty(), [PortIx(7)]);
        assert_eq!(drain(&mut pending, &mut chain), [1, 3]);
    }
}
