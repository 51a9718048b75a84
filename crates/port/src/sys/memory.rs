//! Mapped memory.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// The size of a huge page on the machines that have any: memory aligned to it costs one TLB entry.
const HUGE: usize = 2 << 20;

/// A mapping of our own address space; unmapped when dropped.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone; whoever builds references into it says why they are exclusive or shared.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives out nothing but the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Fresh zeroed memory, in whole huge pages.
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        let len = len.next_multiple_of(HUGE);
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: no address is asked for, so no memory of others is replaced.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, flags) }?;
        // SAFETY: the range was just mapped; the advice changes no content. A kernel without huge pages refuses, which is fine.
        let _ = unsafe { madvise(start, len, Advice::LinuxHugepage) };
        Ok(Self::own(start, len))
    }

    /// Memory that the kernel shares through a descriptor.
    pub(super) fn shared(fd: BorrowedFd<'_>, len: usize, offset: u64) -> io::Result<Self> {
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: no address is asked for, so no memory of others is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), len, access, flags, fd, offset) }?;
        Ok(Self::own(start, len))
    }

    fn own(start: *mut std::ffi::c_void, len: usize) -> Self {
        Self { start: NonNull::new(start.cast()).expect("mmap never returns null"), len }
    }

    /// The address of `count` values of type `T` from byte `offset` on; `None` when they do not lie inside, aligned.
    pub(super) fn at<T>(&self, offset: usize, count: usize) -> Option<NonNull<T>> {
        let end = size_of::<T>().checked_mul(count)?.checked_add(offset)?;
        if end > self.len || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: `offset <= end <= len`: inside the mapping or at its end.
        Some(unsafe { self.start.add(offset) }.cast())
    }

    /// Bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Its address.
    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are those of the mmap, and nothing borrowed from it outlives `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}
