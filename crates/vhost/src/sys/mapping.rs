//! A shared mapping of someone else's file.

use super::guard::{self, Loss};
use super::holes::Holes;
use super::purse::{Mapped, Purse};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

/// `len` bytes of a file from `offset` on, for reading and writing, until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// First byte of `offset`; the mapping may begin before it, on a page's border.
    start: NonNull<u8>,
    len: usize,
    /// What was mapped.
    base: NonNull<u8>,
    mapped: usize,
    /// Bytes of a page of the file.
    page: usize,
    guard: guard::Guarded,
    /// Behind the guard, which looks at it.
    _holes: Option<Holes>,
    /// Who pays for them.
    _purse: Option<Arc<Purse>>,
}

// SAFETY: the mapping belongs to no thread; its bytes are only touched by copies and atomics (see `super`).
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` only hands out addresses.
unsafe impl Sync for Mapping {}

/// A file cannot be mapped.
#[derive(Debug)]
pub(crate) enum MapError {
    /// Nothing to map, or past the end of the address space.
    BadRange,
    /// The file is shorter.
    Short {
        /// Bytes from the file's beginning.
        needed: u64,
        /// Bytes there.
        available: u64,
    },
    /// The kernel refuses.
    System(io::Error),
}

impl From<rustix::io::Errno> for MapError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

/// Smallest page of any Linux machine.
const PAGE_MIN: usize = 4096;

/// File systems whose pages the kernel finds by itself (magic numbers of statfs(2)): tmpfs and memfds, hugetlbfs, ramfs, ext4, XFS, btrfs, F2FS.
/// On others a page may be what some program sends (FUSE) or some host (NFS, 9p): whoever touches it waits for that as long as it likes.
const LOCAL: [u64; 7] =
    [TMPFS, 0x9584_58f6, 0x8584_58f6, 0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// tmpfs and memfds.
const TMPFS: u64 = 0x0102_1994;

impl Mapping {
    /// Maps a front-end's file, as [`Mapping::new`], if no one can make a worker wait for its pages; those that it does not have yet are paid by
    /// `purse`.
    pub(crate) fn of_stranger(
        file: BorrowedFd<'_>,
        offset: u64,
        size: u64,
        purse: Option<&Arc<Purse>>,
    ) -> Result<Arc<Self>, MapError> {
        let kind = rustix::fs::fstatfs(file)?.f_type as u64;
        if !LOCAL.contains(&kind) {
            let why = format!(
                "its file is on a file system of type {kind:#x}, whose pages others could withhold: share a memfd, or a file on tmpfs, hugetlbfs or a local disk"
            );
            return Err(MapError::System(io::Error::new(io::ErrorKind::Unsupported, why)));
        }
        // Huge pages are the operator's pool, and files on disks are no memory.
        Self::paid(file, offset, size, purse.filter(|_| kind == TMPFS))
    }

    /// Maps `size` bytes of `file` from `offset` on, guarded.
    pub(crate) fn new(file: BorrowedFd<'_>, offset: u64, size: u64) -> Result<Arc<Self>, MapError> {
        Self::paid(file, offset, size, None)
    }

    fn paid(
        file: BorrowedFd<'_>,
        offset: u64,
        size: u64,
        purse: Option<&Arc<Purse>>,
    ) -> Result<Arc<Self>, MapError> {
        let needed = offset.checked_add(size).filter(|_| size > 0).ok_or(MapError::BadRange)?;
        let stat = rustix::fs::fstat(file)?;
        let available = u64::try_from(stat.st_size).unwrap_or(0);
        if needed > available {
            return Err(MapError::Short { needed, available });
        }
        // Memory files tell their page by the block size: mappings of huge pages begin and end on such borders.
        let page = usize::try_from(stat.st_blksize).unwrap_or(0).max(PAGE_MIN);
        let before = (offset as usize) & (page - 1);
        let mapped = (before as u64).checked_add(size).and_then(|len| usize::try_from(len).ok());
        let mapped = mapped.and_then(|len| len.checked_next_multiple_of(page));
        let mapped = mapped.filter(|&len| page.is_power_of_two() && len <= isize::MAX as usize);
        let mapped = mapped.ok_or(MapError::BadRange)?;
        let base = map(file, offset - before as u64, mapped)?;
        let guarded = || {
            let holes = purse.map(|purse| Holes::watch(base, mapped, purse)).transpose()?.flatten();
            let paid = holes.as_ref().zip(purse);
            let paid = paid.map(|(holes, purse)| (holes.words(), Arc::as_ptr(purse)));
            Ok((guard::watch(base, mapped, paid)?, holes))
        };
        let (guard, holes) = guarded().map_err(|error| {
            unmap(base, mapped);
            MapError::System(error)
        })?;
        // SAFETY: `before < mapped`.
        let start = unsafe { base.add(before) };
        let _purse = purse.cloned();
        let len = size as usize;
        Ok(Arc::new(Self { start, len, base, mapped, page, guard, _holes: holes, _purse }))
    }

    /// The address of `offset..offset + len`, if that lies inside.
    #[inline]
    pub(super) fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let room = (self.len as u64).checked_sub(offset)?;
        if len > room {
            return None;
        }
        // SAFETY: `offset <= self.len`, and from `start` on `self.len` bytes are mapped.
        Some(unsafe { self.start.add(offset as usize) })
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What it costs: 8 bytes of page tables for each page, on the machines that we know.
    pub(crate) fn cost(&self) -> Mapped {
        Mapped { bytes: self.mapped as u64, tables: (self.mapped / self.page * 8) as u64 }
    }

    /// Why its pages were replaced, if they were.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.guard.loss()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.guard.release();
        unmap(self.base, self.mapped);
    }
}

fn map(file: BorrowedFd<'_>, offset: u64, len: usize) -> Result<NonNull<u8>, MapError> {
    let (protection, flags) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
    let at = std::ptr::null_mut();
    // SAFETY: a new mapping where the kernel chooses touches no memory that anyone has.
    let base = unsafe { rustix::mm::mmap(at, len, protection, flags, file, offset) }?;
    // A guest's memory has no place in our core dumps. Refused only by kernels that lack the advice.
    // SAFETY: the advice changes neither content nor address of our mapping.
    let _ = unsafe { rustix::mm::madvise(base, len, Advice::LinuxDontDump) };
    Ok(NonNull::new(base.cast()).expect("mmap does not map page 0 unless told to"))
}

fn unmap(base: NonNull<u8>, len: usize) {
    // SAFETY: mapped by us, whole, and no one has an address into it any more (see `super`).
    let unmapped = unsafe { rustix::mm::munmap(base.as_ptr().cast(), len) };
    debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped: {unmapped:?}");
}
