//! Headers and heads of many frames into a guest's buffers, in a loop that does nothing else.
//!
//! A guest's lines are long on their way: until they are here, stores to them wait in a queue of some 64 places, and a load whose address has
//! the same lowest 12 bits as one of them waits too. So the loop reads little (one entry for each frame, and its head) and writes little
//! (whole registers): with the bookkeeping in it, a frame cost three times as much when the guest's core was far away.

use super::copy::{Wide, copy_wide};
use super::slice::{GuestSlice, Header};
use arrayvec::ArrayVec;
use std::marker::PhantomData;

/// Frames of a burst.
pub(crate) const BURST: usize = 64;

/// One frame's way: room for header and head was checked.
#[derive(Clone, Copy)]
struct Way {
    to: *mut u8,
    from: *const u8,
    /// The header's first eight bytes, and the others.
    first: u64,
    second: u32,
    /// Bytes of the head.
    len: u32,
}

/// What will be written. `'a` is a borrow of the heads, and of whoever keeps the guest's regions mapped.
pub(crate) struct Burst<'a> {
    header: Header,
    ways: ArrayVec<Way, BURST>,
    borrows: PhantomData<&'a [u8]>,
}

impl<'a> Burst<'a> {
    pub(crate) fn new(header: Header) -> Self {
        Self { header, ways: ArrayVec::new(), borrows: PhantomData }
    }

    /// Frames in it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.ways.len()
    }

    /// Adds a frame; false, and nothing is added, when the burst is full or the buffer has no room for header and head.
    #[inline]
    pub(crate) fn add(&mut self, to: GuestSlice<'a>, number: u128, head: &'a [u8]) -> bool {
        let fits = self.header as usize + head.len() <= to.len();
        let (first, second) = ((number as u64).to_le(), ((number >> 64) as u32).to_le());
        let (to, from, len) = (to.as_ptr().as_ptr(), head.as_ptr(), head.len() as u32);
        fits && self.ways.try_push(Way { to, from, first, second, len }).is_ok()
    }

    /// Writes all of them.
    pub(crate) fn write(self) {
        let wide = Wide::here();
        match self.header {
            Header::Twelve => self.each(wide, |to, way| {
                // SAFETY: `add` checked that twelve bytes and the head lie in the slice.
                unsafe { to.cast::<u32>().write_unaligned(way.second) }
            }),
            Header::Ten => self.each(wide, |to, way| {
                // SAFETY: likewise ten bytes.
                unsafe { to.cast::<u16>().write_unaligned(way.second as u16) }
            }),
        }
    }

    /// `rest` writes a header from its ninth byte on.
    #[inline(always)] // one loop for each kind of header
    fn each(&self, wide: Wide, rest: impl Fn(*mut u8, &Way)) {
        for way in &self.ways {
            // SAFETY: as in `write`.
            unsafe { way.to.cast::<u64>().write_unaligned(way.first) };
            rest(way.to.wrapping_add(8), way);
            let behind = way.to.wrapping_add(self.header as usize);
            // SAFETY: `add` checked that the head lies in the slice, behind the header; it is borrowed for `'a`, and private memory does not
            // overlap a mapping.
            unsafe { copy_wide(behind, way.from, way.len as usize, wide) };
        }
    }
}
