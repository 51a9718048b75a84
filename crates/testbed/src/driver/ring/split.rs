//! VIRTIO 1.2 §2.7, the driver's side.

use super::{Areas, Entry};
use crate::driver::sys::{Memory, View, full_fence};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// `VIRTQ_AVAIL_F_NO_INTERRUPT` and `VIRTQ_USED_F_NO_NOTIFY`.
const QUIET: u16 = 1;

/// A split ring. Its available ring names the slots in order once and for all.
pub struct Split {
    mask: u16,
    /// Two words each: address; length, flags, next.
    descriptors: View<AtomicU64>,
    /// Flags, index, slots.
    avail: View<AtomicU16>,
    /// Flags and index in one word, then id and length of each entry.
    used: View<AtomicU32>,
    offered: u16,
    reclaimed: u16,
}

impl Split {
    pub(super) fn new(memory: &Arc<Memory>, areas: Areas, size: u16) -> Self {
        let slots = usize::from(size);
        let ring = Self {
            mask: size - 1,
            descriptors: memory.view(areas.descriptors, 2 * slots),
            avail: memory.view(areas.driver, 2 + slots),
            used: memory.view(areas.device, 1 + 2 * slots),
            offered: 0,
            reclaimed: 0,
        };
        ring.avail[0].store(QUIET, Ordering::Relaxed);
        (0..size).for_each(|slot| ring.avail[2 + usize::from(slot)].store(slot, Ordering::Relaxed));
        ring
    }

    pub(super) fn describe(&mut self, slot: u16, address: u64, len: u32, flags: u16) {
        let at = 2 * usize::from(slot);
        self.descriptors[at].store(address, Ordering::Relaxed);
        self.descriptors[at + 1].store(u64::from(len) | u64::from(flags) << 32, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn returned(&mut self, max: u16) -> u16 {
        let used = (self.used[0].load(Ordering::Acquire) >> 16) as u16;
        used.wrapping_sub(self.reclaimed).min(max)
    }

    pub(super) fn base(&mut self) -> u32 {
        self.used[0].load(Ordering::Acquire) >> 16
    }

    #[inline]
    pub(super) fn entry(&self, n: u16) -> Entry {
        let at = 1 + 2 * usize::from(self.reclaimed.wrapping_add(n) & self.mask);
        let load = |at: usize| self.used[at].load(Ordering::Relaxed);
        Entry { id: load(at) as u16, len: load(at + 1) }
    }

    #[inline]
    pub(super) fn reclaim(&mut self, count: u16) {
        self.reclaimed = self.reclaimed.wrapping_add(count);
    }

    #[inline]
    pub(super) fn offer(&mut self, count: u16) {
        self.offered = self.offered.wrapping_add(count);
        self.avail[1].store(self.offered, Ordering::Release);
    }

    #[inline]
    pub(super) fn wants_kick(&self) -> bool {
        self.used[0].load(Ordering::Relaxed) as u16 & QUIET == 0
    }

    #[inline]
    pub(super) fn next_to_offer(&self) -> u16 {
        self.offered & self.mask
    }

    #[inline]
    pub(super) fn next_to_return(&self) -> u16 {
        self.reclaimed & self.mask
    }

    #[inline]
    pub(super) fn free(&self) -> u16 {
        self.mask + 1 - self.offered.wrapping_sub(self.reclaimed)
    }

    pub(super) fn ask_for_calls(&mut self, wanted: bool) {
        self.avail[0].store(if wanted { 0 } else { QUIET }, Ordering::Relaxed);
        full_fence();
    }
}
