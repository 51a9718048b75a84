//! Buffers of a ring, each a chain of slices.

use super::header::{HEADER_MAX, NetHeader};
use crate::fault::Fault;
use crate::features::Features;
use crate::memory::{GuestMemory, GuestSlice};
use crate::sys::{Adder, Buffer, Copier, Expected, For, Held, SentHeader, prefetch_lines};
use std::ops::{Range, RangeInclusive};
use std::slice;
use std::sync::Arc;

/// Most descriptors of one chain. Chosen: QEMU's bound for every device (`VIRTQUEUE_MAX_SIZE`); Linux sends a frame in at most 19.
pub(super) const CHAIN_MAX: u32 = 1024;

/// Parts in all after which no further chain is begun: bounds the memory, and the time of a round.
const PARTS_MAX: usize = 1024;

/// Bytes in all after which no further chain is begun: a round of 64 KiB frames is over in about a tenth of a millisecond.
const BYTES_MAX: u64 = 1 << 20;

/// Most bytes of a frame with nothing to say of it, header included. Chosen: longer ones are looked at one by one, whether they are too long.
const PLAIN_MAX: usize = 1 << 16;

/// What is noted of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Mark {
    /// The number by which it is given back.
    pub(super) id: u16,
    /// Places that it takes in a packed ring.
    pub(super) places: u16,
    /// Its first part, if it has several …
    first: u32,
    /// … and the one after its last; the same number if it has only one slice.
    end: u32,
}

impl Mark {
    /// Of a chain of one buffer.
    #[inline]
    fn one(id: u16) -> Self {
        Self { id, places: 1, first: 0, end: 0 }
    }

    #[inline]
    fn is_single(self) -> bool {
        self.first == self.end
    }

    fn parts(self) -> std::ops::Range<usize> {
        self.first as usize..self.end as usize
    }
}

/// Buffers read and not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Unused {
    pub(super) buffers: u16,
    /// Places that they take in a packed ring.
    pub(super) places: u16,
}

/// Buffers taken from a ring, with what keeps their memory mapped.
///
/// A chain holds no more than its ring's driver said when it was read: addresses and lengths here are ours.
#[derive(Debug, Default)]
pub struct Chains {
    held: Held<Mark>,
    bytes: u64,
    /// Of those that are read from now on.
    expected: Expected,
}

impl Chains {
    /// Chains.
    #[inline]
    pub fn len(&self) -> usize {
        self.held.buffers().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets them, and lets go of the memory.
    pub fn forget(&mut self) {
        self.held.forget();
        self.bytes = 0;
    }

    /// Bytes of chain `index` that were not read yet.
    ///
    /// # Panics
    /// When there are fewer chains.
    #[inline]
    pub fn remaining(&self, index: usize) -> usize {
        let Buffer { slice, mark } = self.held.buffers()[index];
        if mark.is_single() { slice.len() } else { self.sum(mark) }
    }

    #[inline(never)]
    fn sum(&self, mark: Mark) -> usize {
        self.held.parts()[mark.parts()].iter().map(|part| part.len()).sum()
    }

    /// Takes the header of chain `index` and moves the head behind it to private memory, as much as there is and as fits; what remains is
    /// the body. `None` when there are fewer bytes than a header has.
    ///
    /// # Panics
    /// When there are fewer chains.
    #[inline(always)] // so that a batch is one loop without a call
    pub fn take_head(
        &mut self,
        index: usize,
        features: Features,
        area: &mut [u8],
    ) -> Option<(NetHeader, usize)> {
        self.expected.are_looked_at = true;
        let (slice, sent) = (self.held.buffers()[index].slice, features.sent_header());
        let header = sent.header;
        let len = slice.len().saturating_sub(header as usize).min(area.len());
        // A buffer of several slices has an empty one here.
        match slice.read_frame(sent, &mut area[..len]) {
            Some((number, rest)) => {
                self.held.cut(index, slice.len() - rest.len());
                Some((NetHeader(number), len))
            }
            None => self.take_parts(index, sent, area),
        }
    }

    /// The same for the chains from `from` on, into the areas of one place each, up to the first of which there is more to say: whose header says
    /// something of the frame, or that has several slices, or less than a header, or more than 64 KiB. `taken` is told the bytes of each head and each body.
    ///
    /// # Panics
    /// When there are fewer chains than `from`.
    #[inline(always)] // one loop with `area` and `taken`
    pub fn take_plain<P, const AREA: usize>(
        &mut self,
        from: usize,
        features: Features,
        places: &mut [P],
        area: impl Fn(&mut P) -> &mut [u8; AREA],
        mut taken: impl FnMut(&mut P, usize, usize, usize),
    ) -> usize {
        let (sent, mut index, mut places) = (features.sent_header(), from, places.iter_mut());
        let (copier, header) = (Copier::here(), sent.header as usize);
        self.expected.are_looked_at = true;
        self.held.cut_each(from, |slice, mark| {
            let place = places.next()?;
            if !mark.is_single() || slice.len() > PLAIN_MAX {
                return None;
            }
            let head = slice.read_plain(sent, area(place), copier)?;
            taken(place, index, head, slice.len() - (header + head));
            index += 1;
            Some(header + head)
        })
    }

    /// The same of a header and a head that lie in several slices.
    #[inline(never)]
    fn take_parts(
        &mut self,
        index: usize,
        SentHeader { header, speaks }: SentHeader,
        area: &mut [u8],
    ) -> Option<(NetHeader, usize)> {
        let header_len = header as usize;
        let len = self.remaining(index).checked_sub(header_len)?.min(area.len());
        let mut header = [0; HEADER_MAX];
        self.read(index, &mut header[..header_len]);
        self.read(index, &mut area[..len]);
        Some((if speaks { NetHeader::of(&header) } else { NetHeader::default() }, len))
    }

    /// Moves the first `into.len()` bytes of chain `index` to private memory; what remains is the rest.
    ///
    /// # Panics
    /// When there are fewer bytes or chains.
    pub fn read(&mut self, index: usize, mut into: &mut [u8]) {
        let Buffer { slice, mark } = self.held.buffers()[index];
        if mark.is_single() {
            slice.read(into);
            return self.held.cut(index, into.len());
        }
        let mut at = mark.first;
        while !into.is_empty() {
            assert!(at < mark.end, "read past a chain's end");
            let part = self.held.parts()[at as usize];
            let (now, later) = into.split_at_mut(into.len().min(part.len()));
            part.read(now);
            into = later;
            if now.len() < part.len() {
                self.held.cut_part(at as usize, now.len());
            } else {
                at += 1;
            }
        }
        self.held.mark_mut(index).first = at;
    }

    /// The slices of chain `index` that were not read yet.
    ///
    /// # Panics
    /// When there are fewer chains.
    #[inline]
    pub fn slices(&self, index: usize) -> &[GuestSlice<'_>] {
        let Buffer { slice, mark } = &self.held.buffers()[index];
        match mark.is_single() {
            true if slice.is_empty() => &[],
            true => slice::from_ref(slice),
            false => &self.held.parts()[mark.parts()],
        }
    }

    /// Empties it for chains of `memory`.
    #[inline]
    pub(super) fn reset(&mut self, memory: &Arc<GuestMemory>) {
        self.held.reset(memory);
        self.bytes = 0;
    }

    /// Whether a round has enough.
    pub(super) fn is_full(&self) -> bool {
        self.held.parts().len() >= PARTS_MAX || self.bytes >= BYTES_MAX
    }

    /// What is noted of each chain.
    #[inline]
    pub(super) fn marks(&self) -> impl Iterator<Item = Mark> {
        self.held.buffers().iter().map(|buffer| buffer.mark)
    }

    /// The chains from `index` on; one of several slices has an empty one here.
    #[inline]
    pub(super) fn buffers_from(&self, index: usize) -> &[Buffer<'_, Mark>] {
        &self.held.buffers()[index..]
    }

    /// The slices of `count` chains from `index` on, as if they were one.
    pub(super) fn run(
        &self,
        index: usize,
        count: usize,
    ) -> impl Iterator<Item = GuestSlice<'_>> + Clone {
        (index..index + count).flat_map(|index| self.slices(index)).copied()
    }

    /// The chains from `index` on.
    pub(super) fn unused(&self, index: usize) -> Unused {
        let unused = &self.held.buffers()[index..];
        let places = unused.iter().map(|buffer| buffer.mark.places).sum();
        Unused { buffers: unused.len() as u16, places }
    }

    /// These bytes of each chain that is read from now on are likely to be touched: others are not asked for ahead.
    #[inline]
    pub(super) fn expect(&mut self, bytes: Range<usize>) {
        self.expected.bytes = bytes;
    }

    /// They are there, and nobody has looked at them yet.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.expected.are_looked_at = false;
    }

    /// To add chains for `purpose`.
    ///
    /// # Panics
    /// Before [`Chains::reset`] said of which memory.
    #[inline]
    pub(super) fn gather(&mut self, purpose: For) -> Gather<'_> {
        let adder = self.held.adder().expect("reset comes before every use");
        Gather { adder, bytes: &mut self.bytes, expected: &self.expected, purpose }
    }

    /// Forgets the first `count` chains.
    pub(super) fn discard(&mut self, count: usize) {
        let gone: usize = (0..count).map(|index| self.remaining(index)).sum();
        self.bytes -= gone as u64;
        // Parts stand in the order of their chains.
        let later = self.marks().skip(count).find(|mark| !mark.is_single());
        let parts = later.map_or(self.held.parts().len() as u32, |mark| mark.first);
        self.held.discard(count, parts as usize);
        for index in 0..self.len() {
            let mark = self.held.mark_mut(index);
            if !mark.is_single() {
                (mark.first, mark.end) = (mark.first - parts, mark.end - parts);
            }
        }
    }
}

/// Frames as they lie in a driver's transmit buffers: nothing of them was read yet.
#[derive(Clone, Copy, Debug)]
pub struct Unread<'c> {
    chains: &'c Chains,
    sent: SentHeader,
}

impl<'c> Unread<'c> {
    /// The frames in these chains, of which nothing was taken, by a driver of these features.
    pub fn new(chains: &'c Chains, features: Features) -> Self {
        Self { chains, sent: features.sent_header() }
    }

    /// Frames.
    pub fn len(self) -> usize {
        self.chains.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.chains.is_empty()
    }

    /// Moves the first bytes of the first frame to private memory, as many as there are and as fit; returns how many. `None` if there is more to say of it, or no frame.
    pub fn first<const AREA: usize>(self, area: &mut [u8; AREA]) -> Option<usize> {
        let first = self.chains.buffers_from(0).first()?;
        first.slice.read_plain(self.sent, area, Copier::here())
    }

    /// The frames' bytes, up to the first of which there is more to say: whose header says something of it, or that lies in several slices, or that has fewer or
    /// more bytes.
    #[inline(always)] // one loop with whoever takes them
    pub(super) fn plain(
        self,
        lengths: &RangeInclusive<usize>,
    ) -> impl Iterator<Item = GuestSlice<'c>> {
        // A buffer of several slices has an empty one here.
        let all = self.chains.buffers_from(0).iter();
        all.map_while(move |buffer| buffer.slice.plain(self.sent, lengths))
    }
}

/// Adds chains; what that needs for each is at hand.
pub(super) struct Gather<'c> {
    adder: Adder<'c, Mark>,
    bytes: &'c mut u64,
    expected: &'c Expected,
    purpose: For,
}

impl<'c> Gather<'c> {
    /// Whether a round has enough.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.adder.parts() >= PARTS_MAX || *self.bytes >= BYTES_MAX
    }

    /// Adds chains of one buffer, which take one place each, up to the first that does not lie in the largest region, and no more than make a
    /// round full. Returns how many; `offers` has at most `max`.
    #[inline(always)] // one loop with `offers`
    pub(super) fn run(
        &mut self,
        offers: impl Iterator<Item = (u64, u32, u16)>,
        max: usize,
        purpose: For, // the same as its own, but known where this is compiled
    ) -> usize {
        let limit = BYTES_MAX.saturating_sub(*self.bytes).max(1);
        let marked = offers.map(|(guest, len, id)| (guest, len, Mark::one(id)));
        let (count, bytes) = self.adder.push_run(marked, max, limit, self.expected, purpose);
        *self.bytes += bytes;
        count
    }

    /// Begins a chain of any kind.
    pub(super) fn begin<'g>(&'g mut self) -> Building<'g, 'c> {
        let first = self.adder.parts() as u32;
        Building { gather: self, first }
    }
}

/// A chain that is being read.
pub(super) struct Building<'g, 'c> {
    gather: &'g mut Gather<'c>,
    first: u32,
}

impl Building<'_, '_> {
    /// Adds a buffer of the guest.
    ///
    /// # Errors
    /// It does not lie in one region.
    pub(super) fn push(&mut self, guest: u64, len: u32) -> Result<(), Fault> {
        if len == 0 {
            return Ok(()); // allowed, and nothing
        }
        let Gather { adder, bytes, expected, purpose } = &mut *self.gather;
        let part = adder.push_part(guest, len).ok_or(Fault::Unmapped { guest, len })?;
        prefetch_lines(part.as_ptr(), part.len().min(expected.bytes.end), *purpose);
        **bytes += u64::from(len);
        Ok(())
    }

    /// Ends it.
    pub(super) fn end(self, id: u16, places: u16) {
        let Self { gather, first } = self;
        let end = gather.adder.parts() as u32;
        if end == first + 1 {
            gather.adder.push_only(Mark { places, ..Mark::one(id) });
        } else {
            gather.adder.push(Mark { id, places, first, end });
        }
    }
}
