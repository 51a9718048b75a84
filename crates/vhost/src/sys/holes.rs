//! Pages that a guest's file does not have yet, found when we touch them.
//!
//! The kernel would make such a page and charge it to us. Where the mapping is registered with a userfaultfd (`UFFD_FEATURE_SIGBUS`, Linux 4.14)
//! the touch raises SIGBUS instead, and [`super::guard`]'s handler decides: it pays from the guest's [`super::purse`] and has the page made, or
//! cuts the guest off. Pages that are there cost nothing, neither do huge pages, whose pool the operator filled.

use super::purse::Purse;
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Smallest page of any Linux machine, and what `UFFDIO_ZEROPAGE` makes of a file of small pages.
pub(super) const PAGE: usize = 4096;

// linux/userfaultfd.h: requests, the protocol's number, features, a mode, a flag.
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_ZEROPAGE: libc::c_ulong = 0xc020_aa04;
const API: u64 = 0xaa;
const FEATURE_SIGBUS: u64 = 1 << 7;
const FEATURE_MISSING_SHMEM: u64 = 1 << 5;
const MODE_MISSING: u64 = 1;
const USER_MODE_ONLY: libc::c_int = 1;

/// `struct uffdio_api`.
#[repr(C)]
#[derive(Default)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register` and `struct uffdio_zeropage`: a range, a mode, an answer.
#[repr(C)]
#[derive(Default)]
struct Ranged {
    start: u64,
    len: u64,
    mode: u64,
    answer: u64,
}

/// A mapping whose holes are watched, and which of its pages we have filled.
#[derive(Debug)]
pub(super) struct Holes {
    filled: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: a mapping of our own; its words are only touched as atomics.
unsafe impl Send for Holes {}
// SAFETY: as above.
unsafe impl Sync for Holes {}

impl Holes {
    /// Watches the holes of a mapping of `len` bytes from `base`; `None` where the kernel cannot, as for files on disks.
    pub(super) fn watch(base: NonNull<u8>, len: usize, purse: &Purse) -> io::Result<Option<Self>> {
        let start = base.addr().get() as u64;
        let mut range = Ranged { start, len: len as u64, mode: MODE_MISSING, answer: 0 };
        let is_told = purse.faults().is_some_and(|fd| ask(fd, UFFDIO_REGISTER, &mut range));
        if !is_told {
            return Ok(None);
        }
        let len = len.div_ceil(PAGE * 64) * size_of::<u64>();
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        let at = std::ptr::null_mut();
        // SAFETY: a new mapping where the kernel chooses touches no memory that anyone has.
        let filled = unsafe { rustix::mm::mmap_anonymous(at, len, protection, flags) }?;
        let filled = NonNull::new(filled.cast()).expect("mmap does not map page 0 unless told to");
        Ok(Some(Self { filled, len }))
    }

    /// The first of its words, for the handler.
    pub(super) fn words(&self) -> *mut AtomicU64 {
        self.filled.as_ptr()
    }
}

impl Drop for Holes {
    fn drop(&mut self) {
        // SAFETY: mapped by us, whole; the handler looks at it only while the guest's mapping is in its table, which it has left.
        let unmapped = unsafe { rustix::mm::munmap(self.filled.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped: {unmapped:?}");
    }
}

/// What became of a touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Touched {
    /// The page is there now.
    Filled,
    /// The guest may not cost more.
    Unpaid,
    /// It is no hole: the file was cut.
    Gone,
}

/// A guest's mapping as the handler knows it.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    /// First byte.
    pub(super) start: usize,
    /// Bytes.
    pub(super) len: usize,
    /// Which pages were filled: a bit each.
    pub(super) words: *mut AtomicU64,
    /// Who pays; a mapping in the table keeps it.
    pub(super) purse: *const Purse,
}

impl Watched {
    /// Fills the page of `address` if it may cost that. For the handler: atomics and system calls only.
    pub(super) fn touch(self, address: usize) -> Touched {
        // SAFETY: the mapping that was touched is in the table, and keeps its purse.
        let Some(purse) = (unsafe { self.purse.as_ref() }) else { return Touched::Gone };
        let is_paid = purse.pay() || self.look_again(purse) && purse.pay();
        if !is_paid {
            return Touched::Unpaid;
        }
        let page = address / PAGE * PAGE;
        let mut range = Ranged { start: page as u64, len: PAGE as u64, ..Ranged::default() };
        if purse.faults().is_some_and(|fd| ask(fd, UFFDIO_ZEROPAGE, &mut range)) {
            let index = (page - self.start) / PAGE;
            self.word(index / 64).fetch_or(1 << (index % 64), Ordering::AcqRel);
            return Touched::Filled;
        }
        purse.give_back(1);
        // Another thread, or the guest, was first.
        match -(range.answer as i64) == i64::from(libc::EEXIST) {
            true => Touched::Filled,
            false => Touched::Gone,
        }
    }

    /// Counts the filled pages that the guest has given back since, as machines that report free pages do; whether that was worth it.
    fn look_again(self, purse: &Purse) -> bool {
        let mut gone = 0;
        for index in 0..self.len.div_ceil(PAGE * 64) {
            let word = self.word(index);
            let filled = word.load(Ordering::Acquire);
            if filled != 0 {
                let empty = filled & !self.resident(index);
                gone += (word.fetch_and(!empty, Ordering::AcqRel) & empty).count_ones();
            }
        }
        purse.give_back(gone);
        gone > purse.worthwhile()
    }

    /// Which of 64 pages the file has.
    fn resident(self, index: usize) -> u64 {
        let from = index * 64 * PAGE;
        let len = (self.len - from).min(64 * PAGE);
        let mut pages = [1_u8; 64];
        let at = std::ptr::without_provenance_mut(self.start + from);
        // SAFETY: `pages` has a byte for each page of the range, which lies in a live mapping.
        if unsafe { libc::mincore(at, len, pages.as_mut_ptr()) } != 0 {
            return u64::MAX;
        }
        pages.iter().rev().fold(0, |bits, page| bits << 1 | u64::from(page & 1))
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        let word = self.words.wrapping_add(index);
        // SAFETY: `index` is of a page of the mapping, for which there is a bit; the words live while the mapping is in the table.
        unsafe { &*word }
    }
}

/// A userfaultfd for this process's mappings, if the kernel has any.
///
/// It only needs to see what user code touches, which nobody needs a privilege for (Linux 5.11); before that, root may.
pub(super) fn open() -> Option<OwnedFd> {
    [libc::O_CLOEXEC | USER_MODE_ONLY, libc::O_CLOEXEC].into_iter().find_map(open_with)
}

fn open_with(flags: libc::c_int) -> Option<OwnedFd> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as i32;
    // SAFETY: `fd` was just made and belongs to no one else.
    let fd = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })?;
    let mut api = Api { api: API, features: FEATURE_SIGBUS | FEATURE_MISSING_SHMEM, ioctls: 0 };
    // SAFETY: `api` is what the request reads and writes, and lives for the whole call.
    let answered = unsafe { libc::ioctl(fd.as_raw_fd(), UFFDIO_API, &raw mut api) };
    (answered == 0).then_some(fd)
}

/// Whether the kernel did it.
fn ask(fd: i32, request: libc::c_ulong, range: &mut Ranged) -> bool {
    // SAFETY: `range` is what these requests read and write, and lives for the whole call.
    unsafe { libc::ioctl(fd, request, std::ptr::from_mut(range)) == 0 }
}

#[cfg(test)]
mod tests {
    use crate::sys::{Area, GuestBounds, Loss, Mapping, Purse};
    use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fstat, ftruncate, memfd_create};
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    const PAGES: usize = 1024;

    fn guest(bound: &Arc<GuestBounds>) -> (OwnedFd, Arc<Purse>, Arc<Mapping>, Area) {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, (PAGES * 4096) as u64).unwrap();
        let purse = Purse::new(bound.clone());
        let len = PAGES * 4096;
        let mapping = Mapping::of_stranger(file.as_fd(), 0, len as u64, Some(&purse)).unwrap();
        let area = Area::new(&mapping, 0, len, 8).unwrap();
        (file, purse, mapping, area)
    }

    fn touch(area: &Area, pages: std::ops::Range<usize>) {
        pages.for_each(|page| assert_eq!(area.load_u16(page * 4096, Ordering::Relaxed), 0));
    }

    /// Pages that the file has.
    fn there(file: &OwnedFd) -> i64 {
        fstat(file).unwrap().st_blocks / 8
    }

    #[test]
    fn a_guest_that_has_us_touch_too_much_first_is_cut_off_and_another_is_not() {
        let bound = GuestBounds::new(16, 64, u64::MAX, 1 << 40);
        let ((file, purse, mapping, area), other) = (guest(&bound), guest(&bound));
        touch(&area, 0..16);
        assert_eq!((mapping.loss(), purse.pages(), there(&file)), (None, 16, 16));
        touch(&area, 16..PAGES);
        assert_eq!(mapping.loss(), Some(Loss::Unpaid));
        assert_eq!(there(&file), 16, "nothing more was charged");
        touch(&other.3, 0..16);
        assert_eq!(other.2.loss(), None);
    }

    #[test]
    fn all_guests_together_have_a_bound() {
        let bound = GuestBounds::new(16, 20, u64::MAX, 1 << 40);
        let (one, other) = (guest(&bound), guest(&bound));
        touch(&one.3, 0..16);
        touch(&other.3, 0..5);
        assert_eq!((one.2.loss(), other.2.loss()), (None, Some(Loss::Unpaid)));
        drop(one);
        let next = guest(&bound);
        touch(&next.3, 0..4);
        assert_eq!(next.2.loss(), None, "a guest that went takes its pages with it");
    }

    #[test]
    fn what_a_guest_touched_itself_or_gave_back_costs_nothing() {
        let (file, purse, mapping, area) = guest(&GuestBounds::new(16, 64, u64::MAX, 1 << 40));
        rustix::io::pwrite(&file, &[0; 100 * 4096], 0).unwrap();
        touch(&area, 0..100);
        assert_eq!((mapping.loss(), purse.pages()), (None, 0));
        for round in 0..10 {
            touch(&area, 100 + 16 * round..116 + 16 * round);
            let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let (from, len) = ((100 + 16 * round) as u64 * 4096, 16 * 4096);
            fallocate(&file, punch, from, len).unwrap();
        }
        assert_eq!((mapping.loss(), there(&file)), (None, 100));
    }
}
