//! What guests may cost this process: pages of their files that nobody had touched before it did, which the kernel charges to it.

use super::holes;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The bound for all guests of a process, and for each.
#[derive(Debug)]
pub struct FirstTouches {
    each: u32,
    all: u32,
    /// Pages that all of them have cost.
    pages: AtomicU32,
    /// What tells of such touches; `None` on kernels that cannot.
    faults: Option<OwnedFd>,
}

impl FirstTouches {
    /// At most so many pages of 4 KiB of one guest, and of all together.
    pub fn new(each: u32, all: u32) -> Arc<Self> {
        Arc::new(Self { each, all, pages: AtomicU32::new(0), faults: holes::open() })
    }
}

/// One guest's account. The SIGBUS handler pays from it: atomics only.
#[derive(Debug)]
pub(crate) struct Purse {
    bound: Arc<FirstTouches>,
    pages: AtomicU32,
}

impl Purse {
    /// An empty one.
    pub(crate) fn new(bound: Arc<FirstTouches>) -> Arc<Self> {
        Arc::new(Self { bound, pages: AtomicU32::new(0) })
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
    }
}
