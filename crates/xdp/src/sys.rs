//! The crate's only `unsafe`: which of our types may be read from map memory, the memory of a burst, and a namespace for a thread.

#![expect(
    unsafe_code,
    reason = "aya's `Pod` is an unsafe trait; map memory is shared with the kernel"
)]

pub(crate) mod mapped;
pub(crate) mod schedule;
pub(crate) mod steer;

use crate::abi::{BURST_MAX, Burst, Slot, VerdictCount};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

// SAFETY: `VerdictCount` is `repr(C)`, made of two `u64`: no padding, and every bit pattern is a value.
unsafe impl aya::Pod for VerdictCount {}

/// The value of map `bursts`, mapped: ours between two runs of the program, the kernel's during one.
pub(crate) struct BurstMemory {
    start: NonNull<Burst>,
}

/// What the program and the kernel say of a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Frames handed to a driver.
    pub(crate) flushed: u32,
    /// Frames that it took.
    pub(crate) sent: u32,
    /// `errno` of the last refusal, or 0.
    pub(crate) error: u32,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for BurstMemory {}

impl BurstMemory {
    /// Maps the map `bursts` of that descriptor.
    pub(crate) fn map(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: no address is asked for, so no memory of others is replaced. The map has one value of at least this size: `abi.h` and
        // its mirror are compared by a test, and the kernel refuses a length beyond the map's.
        let start =
            unsafe { mmap(std::ptr::null_mut(), size_of::<Burst>(), access, flags, fd, 0) }?;
        Ok(Self { start: NonNull::new(start.cast()).expect("mmap never returns null") })
    }

    /// The frames, to write; the programs only read them, and only inside a system call of ours, which `&mut self` excludes.
    pub(crate) fn slots(&mut self) -> &mut [Slot; BURST_MAX] {
        // SAFETY: mapped, aligned to a page, every bit pattern is a value, and nobody writes it (above).
        unsafe { &mut (*self.start.as_ptr()).slots }
    }

    fn burst(&self) -> &Burst {
        // SAFETY: mapped, aligned to a page, every bit pattern is a value; the kernel changes nothing but the atomic numbers.
        unsafe { self.start.as_ref() }
    }

    /// Zeroes the numbers: a run of 0 frames, of which the counting program counts nothing.
    pub(crate) fn reset(&mut self) {
        let burst = self.burst();
        for number in [&burst.run, &burst.flushed, &burst.sent, &burst.error] {
            number.store(0, Relaxed);
        }
    }

    /// The numbers now.
    pub(crate) fn counted(&self) -> Counted {
        let burst = self.burst();
        Counted {
            flushed: burst.flushed.load(Relaxed),
            sent: burst.sent.load(Relaxed),
            error: burst.error.load(Relaxed),
        }
    }
}

impl Drop for BurstMemory {
    fn drop(&mut self) {
        // SAFETY: start and length are those of the mmap, and nothing borrowed from it outlives `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), size_of::<Burst>()) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}

/// Moves the calling thread, which must be about to end, into a new network namespace; the file keeps it.
pub(crate) fn own_netns() -> io::Result<File> {
    // SAFETY: only the network namespace is unshared, so no descriptor table is, which is what this call is unsafe for.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    File::open("/proc/thread-self/ns/net")
}
