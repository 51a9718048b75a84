//! Bytes in a guest's memory.

use super::copy::{copy, copy_part};
use super::processor::Copier;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, compiler_fence};

/// A range of guest memory, inside one region: an address and a length that were checked, and nothing else.
///
/// The guest writes it at any time, so its bytes can only be copied. `'m` is a borrow of whoever keeps the region mapped.
#[derive(Clone, Copy)]
pub struct GuestSlice<'m> {
    start: NonNull<u8>,
    len: usize,
    memory: PhantomData<&'m ()>,
}

// SAFETY: an address and a length; the bytes are only touched by copies that expect others to write (see `super`).
unsafe impl Send for GuestSlice<'_> {}
// SAFETY: as above.
unsafe impl Sync for GuestSlice<'_> {}

impl<'m> GuestSlice<'m> {
    /// # Safety
    /// `start..start + len` lies in a mapping that outlives `'m`.
    #[inline]
    pub(super) unsafe fn new(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// No bytes.
    pub(super) const fn empty() -> Self {
        Self { start: NonNull::dangling(), len: 0, memory: PhantomData }
    }

    /// Bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The first byte's address, for a system call; the bytes must not be borrowed.
    #[inline]
    pub fn as_ptr(self) -> NonNull<u8> {
        self.start
    }

    /// The first `at` bytes and the others.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        inside(at <= self.len);
        // SAFETY: `at <= self.len`, so the address is inside or just behind.
        let rest = unsafe { self.start.add(at) };
        (Self { len: at, ..self }, Self { start: rest, len: self.len - at, ..self })
    }

    /// The bytes `at..at + len`, if there are so many.
    #[inline]
    pub(crate) fn part(self, at: u64, len: u64) -> Option<Self> {
        let room = (self.len as u64).checked_sub(at)?;
        if len > room {
            return None;
        }
        // SAFETY: `at <= self.len`, as in `split_at`.
        Some(Self { start: unsafe { self.start.add(at as usize) }, len: len as usize, ..self })
    }

    /// Copies the first `into.len()` bytes to private memory. They are read once.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn read(self, into: &mut [u8]) {
        inside(into.len() <= self.len);
        // SAFETY: source and destination are `into.len()` bytes; private memory does not overlap a mapping.
        unsafe { copy(into.as_mut_ptr(), self.start.as_ptr(), into.len()) };
        // What is looked at from here on is the copy: the compiler may not fetch a value from the source again.
        compiler_fence(Ordering::SeqCst);
    }

    /// Reads the header before a frame, and the frame's first bytes into `head`; returns the header (0 if it says nothing) and what is left. `None`, and nothing
    /// is read, when there are fewer bytes. Each is read once.
    #[inline(always)] // one check and eight moves: a call would double it
    pub(crate) fn read_frame(self, sent: SentHeader, head: &mut [u8]) -> Option<(u128, Self)> {
        let SentHeader { header, speaks } = sent;
        let rest = self.len.checked_sub(header as usize + head.len())?;
        let start = self.start.as_ptr();
        // SAFETY: the header's bytes are inside, by the check above.
        let number = if speaks { unsafe { header.number(start) } } else { 0 };
        // SAFETY: the head's bytes lie behind the header, inside; private memory does not overlap a mapping.
        unsafe { copy(head.as_mut_ptr(), start.wrapping_add(header as usize), head.len()) };
        // As for `read`.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the sum was checked, so this is inside or just behind.
        let start = unsafe { self.start.add(self.len - rest) };
        Some((number, Self { start, len: rest, ..self }))
    }

    /// Reads as many of the bytes behind a header as there are and as fit; returns how many. `None` when the header says anything of the frame
    /// ([`SentHeader::says`]), or there are fewer bytes than it has; it may have been read then. Each is read once.
    #[inline(always)] // as above
    pub(crate) fn read_plain<const AREA: usize>(
        self,
        sent: SentHeader,
        into: &mut [u8; AREA],
        copier: Copier,
    ) -> Option<usize> {
        let header = sent.header;
        let len = self.len.checked_sub(header as usize)?.min(AREA);
        let start = self.start.as_ptr();
        // SAFETY: the header's bytes are inside.
        if unsafe { sent.says(self.start) } {
            return None;
        }
        // SAFETY: behind the header `len` bytes are inside, and `into` has room for them; private memory does not overlap a mapping.
        unsafe { copier.copy(into.as_mut_ptr(), start.wrapping_add(header as usize), len) };
        // As for `read`.
        compiler_fence(Ordering::SeqCst);
        Some(len)
    }

    /// The frame behind a header that says nothing of it ([`SentHeader::says`]), if it has so many bytes. The header is read once.
    #[inline(always)] // as above
    pub(crate) fn plain(self, sent: SentHeader, lengths: &RangeInclusive<usize>) -> Option<Self> {
        let len = self.len.checked_sub(sent.header as usize)?;
        if !lengths.contains(&len) {
            return None;
        }
        // SAFETY: the header's bytes are inside.
        let says = unsafe { sent.says(self.start) };
        (!says).then(|| self.split_at(sent.header as usize).1)
    }

    /// Copies `from` to the first bytes.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn write(self, from: &[u8]) {
        inside(from.len() <= self.len);
        // SAFETY: as for `read`, the other way.
        unsafe { copy(self.start.as_ptr(), from.as_ptr(), from.len()) };
    }

    /// Copies all of `from` to the first bytes. A guest that sends to itself may make them overlap; what comes of that is its own
    /// affair (some mixture of its bytes).
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn copy_from(self, from: GuestSlice<'_>) {
        inside(from.len <= self.len);
        // SAFETY: both ranges are mapped; `copy` reads and writes exactly `from.len` bytes, in whatever order.
        unsafe { copy(self.start.as_ptr(), from.start.as_ptr(), from.len) };
    }

    /// The same for one of several buffers of a frame.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn copy_part_from(self, from: GuestSlice<'_>) {
        inside(from.len <= self.len);
        // SAFETY: as for `copy_from`.
        unsafe { copy_part(self.start.as_ptr(), from.start.as_ptr(), from.len) };
    }
}

/// Panics unless a range lies inside its slice. Without the numbers: to print them they would have to be kept in memory, frame by frame.
#[inline]
fn inside(fits: bool) {
    assert!(fits, "range outside its slice");
}

/// Bytes of the header before a frame: ten without `num_buffers`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Header {
    Ten = 10,
    Twelve = 12,
}

impl Header {
    /// Its bytes as a number, the first one lowest. They are read once.
    ///
    /// # Safety
    /// They are mapped from `start` on.
    #[inline(always)] // as `GuestSlice::read_frame`
    unsafe fn number(self, start: *const u8) -> u128 {
        // SAFETY: the caller's promise; any bytes are a number, at any address.
        let first = unsafe { start.cast::<u64>().read_unaligned() };
        let behind = start.wrapping_add(8);
        let second = match self {
            // SAFETY: as above.
            Self::Twelve => unsafe { behind.cast::<u32>().read_unaligned() },
            // SAFETY: as above.
            Self::Ten => unsafe { behind.cast::<u16>().read_unaligned() }.into(),
        };
        u128::from(first.to_le()) | u128::from(second.to_le()) << 64
    }
}

/// The header before a frame that a driver sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SentHeader {
    pub(crate) header: Header,
    /// Whether driver and device agreed on anything that it could say. If not it is not read: with DPDK's drivers it ends a line of its own, before the frame's.
    pub(crate) speaks: bool,
}

impl SentHeader {
    /// Whether one says anything of its frame: its first two bytes (`flags`, `gso_type`) are not zero. They are read once.
    ///
    /// # Safety
    /// Its bytes are mapped from `start` on.
    #[inline(always)] // as above
    unsafe fn says(self, start: NonNull<u8>) -> bool {
        // SAFETY: a header has ten bytes at least; any bytes are a number, at any address.
        self.speaks && unsafe { start.cast::<u16>().read_unaligned() } != 0
    }
}

impl fmt::Debug for GuestSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuestSlice({:?}, {} bytes)", self.start, self.len)
    }
}
