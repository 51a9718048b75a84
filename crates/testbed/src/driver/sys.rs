//! Guest memory, and the few instructions on it that no safe function offers.
//!
//! The switch, another process, reads and writes this memory at any time. So it is only ever seen as atomics: a [`View`] is a slice of
//! them that keeps the mapping alive. Each byte is viewed with one width, except by [`Memory::fill`] and [`Memory::copy_in`].
#![expect(unsafe_code, reason = "mmap, and memory that another process writes")]

use crate::hugepages;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_mm512_mask_storeu_epi8, _mm512_set1_epi8, _mm512_storeu_si512};
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use vmm_sys_util::eventfd::EventFd;

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// What the guest's memory is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pages {
    /// Pages of 4 KiB, as every process has them.
    #[default]
    Plain,
    /// Pages of 2 MiB, which somebody must have reserved (`vm.nr_hugepages`).
    Huge,
}

/// One cache line of eight words.
#[repr(C, align(64))]
pub struct Line(pub [AtomicU64; 8]);

/// What guest memory may be viewed as: plain atomics without padding, valid for any bit pattern.
pub trait Cell: sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! cells {
    ($($cell:ty),*) => { $(impl sealed::Sealed for $cell {} impl Cell for $cell {})* };
}
cells!(AtomicU16, AtomicU32, AtomicU64, Line);

/// A shared mapping of a memory file.
pub struct Memory {
    base: NonNull<u8>,
    len: usize,
    file: OwnedFd,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is only handed out as atomics.
unsafe impl Send for Memory {}
// SAFETY: as above; all access through `&Memory` is atomic or, in `fill`, `copy_in` and `copy_out`, to bytes that no view covers
// at that moment by the protocol of the ring.
unsafe impl Sync for Memory {}

impl Memory {
    /// `len` bytes of zeros, rounded up to whole pages.
    ///
    /// # Errors
    /// What the kernel says; with [`Pages::Huge`] that there are none left.
    pub fn new(len: usize, pages: Pages) -> io::Result<Arc<Self>> {
        let (flags, page) = match pages {
            Pages::Plain => (MemfdFlags::CLOEXEC, 4096),
            Pages::Huge => {
                (MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB, hugepages::BYTES)
            }
        };
        let len = len.max(1).next_multiple_of(page);
        let file = memfd_create("suiro-guest", flags)?;
        ftruncate(&file, len as u64)?;
        Self::map(file, len)
    }

    /// The first `len` bytes of a file that several processes share, which has as many.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn shared(file: impl Into<OwnedFd>, len: usize) -> io::Result<Arc<Self>> {
        Self::map(file.into(), len)
    }

    fn map(file: OwnedFd, len: usize) -> io::Result<Arc<Self>> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let map = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory that exists.
        let base = unsafe { mmap(std::ptr::null_mut(), len, protection, map, &file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Arc::new(Self { base, len, file }))
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// The file behind it, for the switch to map.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where byte 0 is in this process: vhost-user's "user address".
    pub fn user_address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// `count` cells from byte `offset` on.
    ///
    /// # Panics
    /// If they are not inside, or not aligned.
    pub fn view<T: Cell>(self: &Arc<Self>, offset: usize, count: usize) -> View<T> {
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        assert!(end.is_some_and(|end| end <= self.len), "a view beyond the guest's memory");
        assert!(offset.is_multiple_of(align_of::<T>()), "a view that is not aligned");
        // SAFETY: `offset` is inside the mapping, as the assertion above checked.
        let first = unsafe { self.base.add(offset) }.cast();
        View { first, count, memory: Arc::clone(self), cell: PhantomData }
    }

    /// Writes `byte` to a range that belongs to the guest now, as fast as the processor can.
    ///
    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub fn fill(&self, offset: usize, len: usize, byte: u8) {
        let at = self.range(offset, len);
        // SAFETY: `range` checked that these bytes are inside the mapping; the ring has given them to the guest, so that the switch
        // does not use them, and if it did nevertheless, it is another process: this one's memory model does not see it.
        unsafe { fill(at, len, byte) }
    }

    /// Writes a frame into a buffer that belongs to the guest now.
    ///
    /// # Panics
    /// If the range is not inside.
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) {
        let at = self.range(offset, bytes.len());
        // SAFETY: as for `fill`; `bytes` is ordinary memory, which never overlaps a mapping that is only handed out as atomics.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) }
    }

    /// Reads a frame out of a buffer that belongs to the guest now.
    ///
    /// # Panics
    /// If the range is not inside.
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        let at = self.range(offset, bytes.len());
        // SAFETY: as for `copy_in`.
        unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()) }
    }

    fn range(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "beyond the memory");
        // SAFETY: `offset` is inside the mapping, as the assertion above checked.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this mapping was made by `new`; every view of it holds the memory, so none is left.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Cells of guest memory.
pub struct View<T: Cell> {
    first: NonNull<T>,
    count: usize,
    memory: Arc<Memory>,
    cell: PhantomData<T>,
}

// SAFETY: a view is a shared reference to atomics that keeps them alive.
unsafe impl<T: Cell + Sync> Send for View<T> {}

impl<T: Cell> View<T> {
    /// Guest address of a cell: our guests number their memory from 0.
    pub fn address(&self, cell: usize) -> u64 {
        let first = self.first.as_ptr() as u64 - self.memory.user_address();
        first + (cell * size_of::<T>()) as u64
    }
}

impl<T: Cell> Deref for View<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `Memory::view` checked range and alignment, `self.memory` keeps the mapping, and `T` is atomics only.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

/// Asks for a line in a state in which it can be written at once.
#[inline]
pub fn own(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHW changes no register and no memory; processors that lack it treat it as a no-operation.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Asks for the line of a cell, to read.
#[inline]
pub fn fetch<T: Cell>(line: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes no register and no memory, and faults on no address.
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// What was written before is visible before anything after is read: a guest's `virtio_mb`, as Linux has it on this architecture.
#[inline(always)]
pub fn full_fence() {
    #[cfg(target_arch = "x86_64")]
    {
        let mut word = 0_u32;
        // SAFETY: a locked instruction orders all ordinary memory; it leaves the word, which is ours, as it is.
        unsafe {
            std::arch::asm!("lock or dword ptr [{}], 0", in(reg) &raw mut word, options(nostack));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// The descriptor of an event counter, which its crate gives out as a number only.
pub fn descriptor(event: &EventFd) -> BorrowedFd<'_> {
    // SAFETY: `event` owns the descriptor and is borrowed for as long as the result lives.
    unsafe { BorrowedFd::borrow_raw(event.as_raw_fd()) }
}

/// Bytes that are filled here, at most, where the processor has registers of a line: of more the library's way is faster (Zen 4, with the switch between, Mpps, the same cache and another: 256 bytes
/// 21.9 instead of 19.0, 10.6 instead of 9.6; 1518 bytes 8.7 instead of 9.4, 3.9 instead of 3.6).
const FEW: usize = 4 * LINE;

/// Writes `byte` to each of the `len` bytes from `at` on.
///
/// # Safety
/// They can be written.
#[inline]
unsafe fn fill(at: *mut u8, len: usize, byte: u8) {
    #[cfg(target_arch = "x86_64")]
    if len <= FEW && is_x86_feature_detected!("avx512bw") {
        // SAFETY: the caller's promise, and the processor can.
        return unsafe { fill_lines(at, len, byte) };
    }
    // SAFETY: the caller's promise.
    unsafe { std::ptr::write_bytes(at, byte, len) }
}

/// # Safety
/// As for [`fill`]; AVX-512 is there, for bytes too.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn fill_lines(at: *mut u8, len: usize, byte: u8) {
    let all = _mm512_set1_epi8(byte.cast_signed());
    let (whole, rest) = (len / LINE * LINE, len % LINE);
    for start in (0..whole).step_by(LINE) {
        // SAFETY: `start + LINE <= len`.
        unsafe { _mm512_storeu_si512(at.wrapping_add(start).cast(), all) };
    }
    if rest > 0 {
        // SAFETY: the mask has the bytes that are left, and no other is written.
        unsafe { _mm512_mask_storeu_epi8(at.wrapping_add(whole).cast(), !(u64::MAX << rest), all) };
    }
}

/// Reads each line of a range once.
pub fn touch(lines: &[Line]) -> u64 {
    lines.iter().fold(0, |sum, line| sum ^ line.0[0].load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_is_filled_to_its_end_and_no_further() {
        for len in 0..2 * FEW {
            for start in [0, 1, 63] {
                let mut bytes = vec![0; start + len + LINE];
                // SAFETY: the vector has them.
                unsafe { fill(bytes.as_mut_ptr().wrapping_add(start), len, 7) };
                let expected = (0..bytes.len())
                    .map(|at| if (start..start + len).contains(&at) { 7 } else { 0 });
                assert!(bytes.iter().copied().eq(expected), "{len} from {start}");
            }
        }
    }
}
