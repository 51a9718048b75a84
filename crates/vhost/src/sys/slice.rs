//! Bytes in a guest's memory.

use super::copy::copy;
use std::fmt;
use std::marker::PhantomData;
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
        assert!(at <= self.len, "split at {at} of {} bytes", self.len);
        // SAFETY: `at <= self.len`, so the address is inside or just behind.
        let rest = unsafe { self.start.add(at) };
        (Self { len: at, ..self }, Self { start: rest, len: self.len - at, ..self })
    }

    /// Copies the first `into.len()` bytes to private memory. They are read once.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn read(self, into: &mut [u8]) {
        assert!(into.len() <= self.len, "read of {} of {} bytes", into.len(), self.len);
        // SAFETY: source and destination are `into.len()` bytes; private memory does not overlap a mapping.
        unsafe { copy(into.as_mut_ptr(), self.start.as_ptr(), into.len()) };
        // What is looked at from here on is the copy: the compiler may not fetch a value from the source again.
        compiler_fence(Ordering::SeqCst);
    }

    /// Copies `from` to the first bytes.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn write(self, from: &[u8]) {
        assert!(from.len() <= self.len, "write of {} to {} bytes", from.len(), self.len);
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
        assert!(from.len <= self.len, "copy of {} to {} bytes", from.len, self.len);
        // SAFETY: both ranges are mapped; `copy` reads and writes exactly `from.len` bytes, in whatever order.
        unsafe { copy(self.start.as_ptr(), from.start.as_ptr(), from.len) };
    }
}

impl fmt::Debug for GuestSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuestSlice({:?}, {} bytes)", self.start, self.len)
    }
}
