//! The four rings of an AF_XDP socket (linux/if_xdp.h): one side is ours, the other one the kernel's.
//!
//! `producer` and `consumer` count entries ever put and taken, modulo 2^32; an entry's place is its count modulo the ring's size, a power of
//! two. The kernel is trusted with the memory but not with our arithmetic: every count is masked before it becomes an index.

use super::memory::Mapping;
use rustix::net::xdp::XdpRingOffset;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const NEED_WAKEUP: u32 = 1;

/// What both sides need.
struct Ring<T> {
    entries: NonNull<T>,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    size: u32,
    _mapping: Mapping,
}

// SAFETY: the pointers lead into `_mapping`, which moves along with them; nothing is tied to a thread.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn map(
        fd: BorrowedFd<'_>,
        page_offset: u64,
        at: &XdpRingOffset,
        size: u32,
    ) -> io::Result<Self> {
        assert!(size.is_power_of_two(), "a ring of {size} entries");
        let offset = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let flags = at.flags.ok_or(io::ErrorKind::Unsupported)?;
        let len = offset(at.desc) + size_of::<T>() * size as usize;
        let mapping = Mapping::shared(fd, len, page_offset)?;
        let outside = || io::Error::from(io::ErrorKind::InvalidData);
        Ok(Self {
            entries: mapping.at(offset(at.desc), size as usize).ok_or_else(outside)?,
            producer: mapping.at(offset(at.producer), 1).ok_or_else(outside)?,
            consumer: mapping.at(offset(at.consumer), 1).ok_or_else(outside)?,
            flags: mapping.at(offset(flags), 1).ok_or_else(outside)?,
            size,
            _mapping: mapping,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: `map` checked place and alignment; the mapping lives as long as `self`; both sides use it atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { self.consumer.as_ref() }
    }

    fn flags(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { self.flags.as_ref() }
    }

    fn entry(&self, count: u32) -> NonNull<T> {
        // SAFETY: `map` checked that `size` entries lie in the mapping, and the index is below `size`.
        unsafe { self.entries.add((count & (self.size - 1)) as usize) }
    }
}

/// Our side of the fill and tx rings.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Entries written, of which those before the shared `producer` are published.
    written: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        page_offset: u64,
        at: &XdpRingOffset,
        size: u32,
    ) -> io::Result<Self> {
        Ok(Self { ring: Ring::map(fd, page_offset, at, size)?, written: 0 })
    }

    /// Entries that the kernel has not taken yet, unpublished ones included.
    pub(super) fn pending(&self) -> u32 {
        self.written.wrapping_sub(self.ring.consumer().load(Ordering::Acquire))
    }

    /// Writes an entry without publishing it; `false` when the ring is full.
    ///
    /// Callers own fewer buffers than the ring has entries, so that it never is; this is the proof that we overwrite nothing.
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.pending() >= self.ring.size {
            return false;
        }
        // SAFETY: the place is inside the ring; the kernel reads it only after `publish`, and has taken what was there before.
        unsafe { self.ring.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
        true
    }

    /// Hands everything written to the kernel.
    pub(super) fn publish(&mut self) {
        self.ring.producer().store(self.written, Ordering::Release);
    }

    /// Whether the kernel waits for a system call before it looks at the ring again.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.flags().load(Ordering::Acquire) & NEED_WAKEUP != 0
    }
}

/// Our side of the rx and completion rings.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    taken: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        page_offset: u64,
        at: &XdpRingOffset,
        size: u32,
    ) -> io::Result<Self> {
        Ok(Self { ring: Ring::map(fd, page_offset, at, size)?, taken: 0 })
    }

    /// Entries that wait, at most `most`.
    pub(super) fn waiting(&self, most: u32) -> u32 {
        self.ring
            .producer()
            .load(Ordering::Acquire)
            .wrapping_sub(self.taken)
            .min(self.ring.size)
            .min(most)
    }

    /// Takes the next entry; call at most as often as [`Consumer::waiting`] said.
    pub(super) fn pop(&mut self) -> T {
        // SAFETY: inside the ring, and any bit pattern is a `T` (plain integers). What the kernel has not written yet is
        // garbage, which callers must and do check.
        let entry = unsafe { self.ring.entry(self.taken).read() };
        self.taken = self.taken.wrapping_add(1);
        entry
    }

    /// Gives the places of everything taken back to the kernel.
    pub(super) fn release(&mut self) {
        self.ring.consumer().store(self.taken, Ordering::Release);
    }
}
