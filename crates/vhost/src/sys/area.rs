//! A ring's words in shared memory.

use super::guard::Loss;
use super::mapping::Mapping;
use super::prefetch::{For, prefetch_lines};
use super::slice::GuestSlice;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A range of a mapping whose words both sides read and write; begins on a multiple of 8 (16 for descriptors).
#[derive(Clone, Debug)]
pub(crate) struct Area {
    start: NonNull<u8>,
    len: usize,
    /// Keeps the address valid.
    mapping: Arc<Mapping>,
}

// SAFETY: the mapping belongs to no thread, and words are atomics (see `super`).
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

/// A split descriptor (VIRTIO 1.2 §2.7.5) or a packed one (§2.8.13): 16 bytes, little endian, read once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Descriptor {
    /// Guest physical address.
    pub(crate) addr: u64,
    /// Bytes.
    pub(crate) len: u32,
    /// Split: flags. Packed: buffer id.
    pub(crate) third: u16,
    /// Split: next. Packed: flags.
    pub(crate) fourth: u16,
}

impl Area {
    /// `offset..offset + len` of a mapping, if it lies inside and begins on a multiple of `align`.
    pub(crate) fn new(
        mapping: &Arc<Mapping>,
        offset: u64,
        len: usize,
        align: usize,
    ) -> Option<Self> {
        Self::aligned(mapping.at(offset, len as u64)?, len, align, mapping)
    }

    /// The same of this area.
    pub(crate) fn part(&self, offset: u64, len: usize, align: usize) -> Option<Self> {
        Self::aligned(self.at(offset, len as u64)?, len, align, &self.mapping)
    }

    fn aligned(
        start: NonNull<u8>,
        len: usize,
        align: usize,
        mapping: &Arc<Mapping>,
    ) -> Option<Self> {
        let aligned = start.addr().get().is_multiple_of(align);
        aligned.then(|| Self { start, len, mapping: Arc::clone(mapping) })
    }

    /// The address of `offset..offset + len`, if that lies inside.
    #[inline]
    fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let room = (self.len as u64).checked_sub(offset)?;
        if len > room {
            return None;
        }
        // SAFETY: `offset <= self.len`, and from `start` on `self.len` bytes are mapped.
        Some(unsafe { self.start.add(offset as usize) })
    }

    /// The bytes `offset..offset + len`, likewise.
    #[inline]
    pub(crate) fn slice(&self, offset: u64, len: u64) -> Option<GuestSlice<'_>> {
        let start = self.at(offset, len)?;
        // SAFETY: `at` checked the range, and the slice borrows the area, which keeps the mapping.
        Some(unsafe { GuestSlice::new(start, len as usize) })
    }

    /// Where a slice lies from the first byte, if inside.
    pub(crate) fn offset_of(&self, slice: GuestSlice<'_>) -> Option<u64> {
        let offset = slice.as_ptr().addr().get().checked_sub(self.start.addr().get())?;
        (offset < self.len).then_some(offset as u64)
    }

    /// Why its mapping's pages were replaced, if they were.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.mapping.loss()
    }

    /// The address of a word.
    ///
    /// # Panics
    /// Outside, or misaligned: offsets are ours, made of masked indices.
    #[inline]
    fn word<T>(&self, offset: usize) -> *mut T {
        let size = size_of::<T>();
        assert!(offset + size <= self.len && offset.is_multiple_of(size), "word outside its ring");
        self.start.as_ptr().wrapping_add(offset).cast()
    }

    #[inline]
    pub(crate) fn load_u8(&self, offset: usize, order: Ordering) -> u8 {
        // SAFETY: `word` checked the range; the mapping lives as long as `self`. The other side may write at any time.
        unsafe { AtomicU8::from_ptr(self.word(offset)) }.load(order)
    }

    #[inline]
    pub(crate) fn store_u8(&self, offset: usize, value: u8, order: Ordering) {
        // SAFETY: as for `load_u8`.
        unsafe { AtomicU8::from_ptr(self.word(offset)) }.store(value, order);
    }

    /// Sets bits of a byte.
    pub(crate) fn set_bits(&self, offset: usize, bits: u8) {
        // SAFETY: as for `load_u8`.
        unsafe { AtomicU8::from_ptr(self.word(offset)) }.fetch_or(bits, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn load_u16(&self, offset: usize, order: Ordering) -> u16 {
        // SAFETY: `word` checked the range, and that it is aligned to its size from an area that begins on a multiple of it.
        u16::from_le(unsafe { AtomicU16::from_ptr(self.word(offset)) }.load(order))
    }

    #[inline]
    pub(crate) fn store_u16(&self, offset: usize, value: u16, order: Ordering) {
        // SAFETY: as for `load_u16`.
        unsafe { AtomicU16::from_ptr(self.word(offset)) }.store(value.to_le(), order);
    }

    #[inline]
    pub(crate) fn load_u32(&self, offset: usize, order: Ordering) -> u32 {
        // SAFETY: as for `load_u16`.
        u32::from_le(unsafe { AtomicU32::from_ptr(self.word(offset)) }.load(order))
    }

    #[inline]
    pub(crate) fn load_u64(&self, offset: usize, order: Ordering) -> u64 {
        // SAFETY: as for `load_u16`.
        u64::from_le(unsafe { AtomicU64::from_ptr(self.word(offset)) }.load(order))
    }

    #[inline]
    pub(crate) fn store_u64(&self, offset: usize, value: u64, order: Ordering) {
        // SAFETY: as for `load_u16`.
        unsafe { AtomicU64::from_ptr(self.word(offset)) }.store(value.to_le(), order);
    }

    /// Two words next to each other, in one store where the processor can; nobody reads them before an index says so.
    #[inline]
    pub(crate) fn write_pair(&self, offset: usize, first: u32, second: u32) {
        assert!(offset + 8 <= self.len, "word outside its ring");
        let pair = (u64::from(first) | u64::from(second) << 32).to_le();
        // SAFETY: the range was checked; any alignment will do.
        unsafe { self.start.as_ptr().wrapping_add(offset).cast::<u64>().write_unaligned(pair) };
    }

    /// The descriptor at `index`, each of its halves read once.
    #[inline]
    pub(crate) fn descriptor(&self, index: usize) -> Descriptor {
        self.descriptor_by(index, Ordering::Relaxed)
    }

    /// The same; its second half, where a packed ring says whether the first is there, before the first.
    #[inline]
    pub(crate) fn descriptor_in_place(&self, index: usize) -> Descriptor {
        self.descriptor_by(index, Ordering::Acquire)
    }

    #[inline]
    fn descriptor_by(&self, index: usize, order: Ordering) -> Descriptor {
        assert!(index < self.len / 16, "descriptor outside its table");
        let at = self.start.as_ptr().cast::<u64>().wrapping_add(2 * index);
        // SAFETY: the range was just checked, and a table is aligned to 16; otherwise as for `load_u8`.
        let rest = u64::from_le(unsafe { AtomicU64::from_ptr(at.wrapping_add(1)) }.load(order));
        // SAFETY: as above.
        let addr = u64::from_le(unsafe { AtomicU64::from_ptr(at) }.load(Ordering::Relaxed));
        Descriptor {
            addr,
            len: rest as u32,
            third: (rest >> 32) as u16,
            fourth: (rest >> 48) as u16,
        }
    }

    /// Asks for the line of `offset`.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize, purpose: For) {
        if let Some(at) = NonNull::new(self.start.as_ptr().wrapping_add(offset.min(self.len))) {
            prefetch_lines(at, 1, purpose);
        }
    }
}
