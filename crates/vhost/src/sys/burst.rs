//! The first bytes of many frames into a guest's buffers, in a loop that does nothing else.
//!
//! A guest's lines are long on their way: until they are here, stores to them wait in a queue of some 64 places, and a load whose address has
//! the same lowest 12 bits as one of them waits too. So the loop reads little (one entry for each frame, and its head) and writes little
//! (whole registers): with the bookkeeping in it, a frame cost three times as much when the guest's core was far away.

use super::backwards::Backwards;
use super::copy::{Copier, For, prefetch_lines};
use super::slice::{GuestSlice, Header};
use crate::ring::{NetHeader, Outline};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Frames of a burst.
pub(crate) const BURST: usize = 64;

/// `num_buffers` in a header's last four bytes (VIRTIO 1.2 §5.1.6).
const ONE_BUFFER: u32 = 1 << 16;

/// One frame's way: room for header and piece was checked.
#[derive(Clone, Copy)]
struct Way {
    to: *mut u8,
    from: *const u8,
    /// The header's first eight bytes, and the next two; the last two, if it has twelve, say that the frame takes one buffer.
    first: u64,
    second: u16,
    /// Bytes of the piece …
    head: u16,
    /// … and of header, piece and body.
    total: u32,
}

/// What is written of a frame: a header, then bytes from private memory or from a guest's. `'a` is a borrow of whoever keeps them.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    header: NetHeader,
    from: *const u8,
    len: usize,
    /// Bytes of the frame behind these, which are not written here.
    body: usize,
    borrow: PhantomData<&'a [u8]>,
}

impl<'a> From<Outline<'a>> for Piece<'a> {
    #[inline(always)] // it is never put together in memory
    fn from(Outline { header, head, body }: Outline<'a>) -> Self {
        Self { header, from: head.as_ptr(), len: head.len(), body, borrow: PhantomData }
    }
}

/// A plain frame, whole.
impl<'a> From<GuestSlice<'a>> for Piece<'a> {
    #[inline(always)] // likewise
    fn from(frame: GuestSlice<'a>) -> Self {
        let (from, len) = (frame.as_ptr().as_ptr().cast_const(), frame.len());
        Self { header: NetHeader::default(), from, len, body: 0, borrow: PhantomData }
    }
}

/// What will be written. `'a` is a borrow of the pieces, and of whoever keeps the guests' regions mapped.
pub(crate) struct Burst<'a> {
    header: Header,
    ways: [MaybeUninit<Way>; BURST],
    count: usize,
    bytes: u64,
    has_bodies: bool,
    /// Not below the longest piece, nor twice as much.
    longest: usize,
    borrows: PhantomData<&'a [u8]>,
}

impl<'a> Burst<'a> {
    /// An empty one, to be filled where it lies.
    #[inline]
    pub(crate) fn new(header: Header) -> Self {
        let ways = [const { MaybeUninit::uninit() }; BURST];
        let (has_bodies, longest, borrows) = (false, 0, PhantomData);
        Self { header, ways, count: 0, bytes: 0, has_bodies, longest, borrows }
    }

    /// Takes the first of these frames, as many as a burst holds and as there are buffers, up to one that does not fit into its own.
    #[inline(always)] // one loop with the iterators
    pub(crate) fn fill<'f: 'a>(
        &mut self,
        buffers: impl Iterator<Item = GuestSlice<'a>>,
        pieces: impl Iterator<Item = Piece<'f>>,
    ) {
        let copier = Copier::here();
        let (mut count, mut bytes, mut bodies, mut lengths) = (0, 0, 0, 0);
        for ((place, to), piece) in self.ways.iter_mut().zip(buffers).zip(pieces) {
            let Piece { header: NetHeader(number), from, len, body, .. } = piece;
            let total = self.header as usize + len + body;
            let (Ok(head), true) = (u16::try_from(len), total <= to.len()) else {
                break;
            };
            // Asked for when the buffer was read, they may have moved to a farther cache of ours since.
            prefetch_lines(to.as_ptr(), copier.asked(total, false), For::Writing);
            place.write(Way {
                to: to.as_ptr().as_ptr(),
                from,
                first: (number as u64).to_le(),
                second: ((number >> 64) as u16).to_le(),
                head,
                total: total as u32,
            });
            (count, bytes) = (count + 1, bytes + total as u64);
            (bodies, lengths) = (bodies | body, lengths | len);
        }
        (self.count, self.bytes, self.has_bodies) = (count, bytes, bodies > 0);
        self.longest = lengths;
    }

    /// Bytes of all frames, without headers.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes - (self.count * self.header as usize) as u64
    }

    /// Header, piece and body of each frame: bytes in all.
    pub(crate) fn totals(&self) -> impl ExactSizeIterator<Item = u32> {
        self.ways().iter().map(|way| way.total)
    }

    /// Header and piece of each frame: bytes before its body.
    pub(crate) fn befores(&self) -> impl Iterator<Item = usize> {
        self.ways().iter().map(|way| self.header as usize + usize::from(way.head))
    }

    /// Whether some frame has a body.
    pub(crate) fn has_bodies(&self) -> bool {
        self.has_bodies
    }

    #[inline]
    fn ways(&self) -> &[Way] {
        let written = &self.ways[..self.count];
        // SAFETY: `fill` wrote the first `count`.
        unsafe { &*(std::ptr::from_ref(written) as *const [Way]) }
    }

    /// Writes all of them.
    pub(crate) fn write(&self) {
        let copier = Copier::here();
        match self.header {
            Header::Twelve => self.each(copier, |to, way| {
                let second = (u32::from(u16::from_le(way.second)) | ONE_BUFFER).to_le();
                // SAFETY: `fill` checked that twelve bytes and the head lie in the slice.
                unsafe { to.cast::<u32>().write_unaligned(second) }
            }),
            Header::Ten => self.each(copier, |to, way| {
                // SAFETY: likewise ten bytes.
                unsafe { to.cast::<u16>().write_unaligned(way.second) }
            }),
        }
    }

    /// `rest` writes a header from its ninth byte on.
    #[inline(always)] // one loop for each kind of header
    fn each(&self, copier: Copier, rest: impl Fn(*mut u8, &Way)) {
        if let Some(backwards) = Backwards::of(self.longest) {
            return self.each_long(backwards, rest);
        }
        for way in self.ways() {
            self.write_header(way, &rest);
            // SAFETY: `fill` checked that the piece lies in the slice, behind the header; it is borrowed for `'a`. Private memory does not overlap a
            // mapping; a guest that sends to itself may make two buffers overlap, and what arrives then is its own affair.
            unsafe { copier.copy(self.behind(way), way.from, usize::from(way.head)) };
        }
    }

    /// The same for long pieces: the headers first, whose lines were asked for.
    #[inline(never)]
    fn each_long(&self, mut backwards: Backwards<'_>, rest: impl Fn(*mut u8, &Way)) {
        self.ways().iter().for_each(|way| self.write_header(way, &rest));
        for way in self.ways().iter().rev() {
            // SAFETY: as in `each`.
            unsafe { backwards.take(self.behind(way), way.from, usize::from(way.head)) };
        }
        backwards.finish();
    }

    #[inline(always)]
    fn write_header(&self, way: &Way, rest: &impl Fn(*mut u8, &Way)) {
        // SAFETY: as in `write`.
        unsafe { way.to.cast::<u64>().write_unaligned(way.first) };
        rest(way.to.wrapping_add(8), way);
    }

    /// Where the frame begins.
    #[inline(always)]
    fn behind(&self, way: &Way) -> *mut u8 {
        way.to.wrapping_add(self.header as usize)
    }
}
