//! What guests may cost this process: pages of their files that nobody had touched before it did, which the kernel charges to it, and what it maps.
//!
//! A mapping costs addresses, of which a process has 128 TiB however empty the file is, and page tables: 8 bytes for each page, charged to the
//! process that maps them. Of both a guest may hold a quarter of what is free for all, so there is always room for who comes later.

use super::holes;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The bound for all guests of a process, and for each.
#[derive(Debug)]
pub struct GuestBounds {
    each: u32,
    all: u32,
    /// Pages that all of them have cost.
    pages: AtomicU32,
    /// What tells of such touches; `None` on kernels that cannot.
    faults: Option<OwnedFd>,
    /// Bytes that one may share.
    shared: u64,
    /// What all of them map, and its page tables.
    mapped: Room,
    tables: Room,
}

/// Bytes of something that there is a bounded number of.
#[derive(Debug)]
struct Room {
    limit: u64,
    used: AtomicU64,
}

impl Room {
    fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    /// Takes `wanted` bytes in the place of `held` ones, if that is at most a quarter of what others leave.
    fn exchange(&self, held: u64, wanted: u64) -> bool {
        let change = |used: u64| {
            let others = used - held;
            let is_fair = wanted <= held || wanted <= self.limit.saturating_sub(others) / 4;
            is_fair.then_some(others + wanted)
        };
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
    }
}

/// What a guest has mapped.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Mapped {
    /// Bytes of addresses.
    pub(crate) bytes: u64,
    /// Bytes of page tables, when all of it is touched.
    pub(crate) tables: u64,
}

impl std::iter::Sum for Mapped {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        let add = |all: Self, part: Self| Self {
            bytes: all.bytes.saturating_add(part.bytes),
            tables: all.tables.saturating_add(part.tables),
        };
        parts.fold(Self::default(), add)
    }
}

/// Most that all guests together may map: half of a process's addresses (x86-64 and arm64 with four levels of page tables: 128 TiB and more).
const ALL: u64 = 1 << 46;

impl GuestBounds {
    /// At most so many pages of 4 KiB of one guest, and of all together; page tables of at most `tables` bytes; a guest shares `shared` bytes at most.
    pub fn new(each: u32, all: u32, tables: u64, shared: u64) -> Arc<Self> {
        Arc::new(Self {
            each,
            all,
            pages: AtomicU32::new(0),
            faults: holes::open(),
            shared,
            mapped: Room::new(ALL),
            tables: Room::new(tables),
        })
    }
}

/// One guest's account. The SIGBUS handler pays from it: atomics only.
#[derive(Debug)]
pub(crate) struct Purse {
    bound: Arc<GuestBounds>,
    pages: AtomicU32,
    mapped: Mutex<Mapped>,
}

impl Purse {
    /// An empty one.
    pub(crate) fn new(bound: Arc<GuestBounds>) -> Arc<Self> {
        Arc::new(Self { bound, pages: AtomicU32::new(0), mapped: Mutex::default() })
    }

    /// Bytes that a guest may share.
    pub(crate) fn shared_at_most(&self) -> u64 {
        self.bound.shared
    }

    /// Accounts for a memory table in the place of the one before; false, and as before, when that is more than a bound allows.
    pub(crate) fn map(&self, wanted: Mapped) -> bool {
        let mut held = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.bytes > self.shared_at_most()
            || !self.bound.mapped.exchange(held.bytes, wanted.bytes)
        {
            return false;
        }
        if !self.bound.tables.exchange(held.tables, wanted.tables) {
            self.bound.mapped.used.fetch_add(held.bytes, Ordering::AcqRel);
            self.bound.mapped.used.fetch_sub(wanted.bytes, Ordering::AcqRel);
            return false;
        }
        *held = wanted;
        true
    }

    /// What tells of first touches, if anything does.
    pub(super) fn faults(&self) -> Option<i32> {
        self.bound.faults.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Pays for a page; false when that is more than a bound allows.
    pub(super) fn pay(&self) -> bool {
        let own = self.pages.fetch_add(1, Ordering::AcqRel);
        let all = self.bound.pages.fetch_add(1, Ordering::AcqRel);
        let is_paid = own < self.bound.each && all < self.bound.all;
        if !is_paid {
            self.give_back(1);
        }
        is_paid
    }

    /// Gives pages back that cost nothing, or no more.
    pub(super) fn give_back(&self, pages: u32) {
        self.pages.fetch_sub(pages, Ordering::AcqRel);
        self.bound.pages.fetch_sub(pages, Ordering::AcqRel);
    }

    /// Fewer than this found free again are not worth a look.
    pub(super) fn worthwhile(&self) -> u32 {
        self.bound.each / 8
    }

    /// Pages that it has paid.
    #[cfg(test)]
    pub(super) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Relaxed)
    }
}

impl Drop for Purse {
    fn drop(&mut self) {
        self.bound.pages.fetch_sub(*self.pages.get_mut(), Ordering::AcqRel);
        let held = *self.mapped.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.bound.mapped.used.fetch_sub(held.bytes, Ordering::AcqRel);
        self.bound.tables.used.fetch_sub(held.tables, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn small(gib: u64) -> Mapped {
        Mapped { bytes: gib * GIB, tables: gib * GIB / 512 }
    }

    #[test]
    fn a_guest_maps_at_most_a_tebibyte() {
        let purse = Purse::new(GuestBounds::new(0, 0, u64::MAX, 1 << 40));
        assert!(purse.map(small(1024)));
        assert!(!purse.map(small(1025)));
    }

    #[test]
    fn greedy_guests_leave_room_for_the_next_one() {
        let bound = GuestBounds::new(0, 0, u64::MAX, 1 << 40);
        let greedy: Vec<_> = (0..64)
            .map(|_| {
                let purse = Purse::new(bound.clone());
                (0..=40).rev().find(|&power| purse.map(Mapped { bytes: 1 << power, tables: 0 }));
                purse
            })
            .collect();
        assert!(Purse::new(bound.clone()).map(small(64)));
        drop(greedy);
        assert_eq!(bound.mapped.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn page_tables_are_bounded_by_the_nodes_memory_and_huge_pages_have_small_ones() {
        let bound = GuestBounds::new(0, 0, 24 << 20, 1 << 40);
        let [one, other] = [(); 2].map(|()| Purse::new(bound.clone()));
        assert!(!one.map(small(4)));
        assert_eq!(bound.mapped.used.load(Ordering::Relaxed), 0, "a refusal changes nothing");
        assert!(one.map(small(3)) && one.map(small(3)), "a table replaces the one before");
        assert!(!other.map(small(3)));
        assert!(other.map(small(2)));
        assert!(other.map(Mapped { bytes: 64 * GIB, tables: 64 * GIB / (2 << 20) * 8 }));
    }
}
