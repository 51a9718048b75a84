//! VIRTIO 1.2 §2.8, the driver's side.

use super::{Areas, Entry};
use crate::driver::sys::{self, Memory, View, full_fence};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bits of a descriptor's second word: length 0..32, id 32..48, flags 48..64.
const AVAIL: u64 = 1 << (48 + 7);
const USED: u64 = 1 << (48 + 15);

/// Descriptors of a cache line.
const LINE: u16 = 4;

/// Event suppression (§2.8.10): flags in the upper half of the word.
const EVENTS_OFF: u32 = 1 << 16;
const EVENTS: u32 = 3 << 16;

/// A packed ring. Descriptors are offered with one store each; the first of a burst last.
pub struct Packed {
    size: u16,
    descriptors: View<AtomicU64>,
    driver: View<AtomicU32>,
    device: View<AtomicU32>,
    /// Second words without the two wrap bits.
    described: Vec<u64>,
    offered: Place,
    reclaimed: Place,
    /// Buffers offered and not reclaimed.
    out: u16,
    /// Of these, seen to have come back.
    seen: u16,
}

/// A slot, and the wrap counter when one passes it.
#[derive(Clone, Copy)]
struct Place {
    slot: u16,
    wrap: bool,
}

impl Place {
    #[inline]
    fn plus(self, count: u16, size: u16) -> Self {
        let slot = self.slot + count;
        if slot >= size {
            Self { slot: slot - size, wrap: !self.wrap }
        } else {
            Self { slot, ..self }
        }
    }

    /// The marks of an available descriptor here.
    #[inline]
    fn available(self) -> u64 {
        if self.wrap { AVAIL } else { USED }
    }
}

impl Packed {
    pub(super) fn new(memory: &Arc<Memory>, areas: Areas, size: u16) -> Self {
        let slots = usize::from(size);
        let start = Place { slot: 0, wrap: true };
        let ring = Self {
            size,
            descriptors: memory.view(areas.descriptors, 2 * slots),
            driver: memory.view(areas.driver, 1),
            device: memory.view(areas.device, 1),
            described: vec![0; slots],
            offered: start,
            reclaimed: start,
            out: 0,
            seen: 0,
        };
        ring.driver[0].store(EVENTS_OFF, Ordering::Relaxed);
        ring
    }

    pub(super) fn describe(&mut self, slot: u16, address: u64, len: u32, flags: u16) {
        let at = usize::from(slot);
        self.descriptors[2 * at].store(address, Ordering::Relaxed);
        self.described[at] = u64::from(len) | u64::from(slot) << 32 | u64::from(flags) << 48;
    }

    /// A used descriptor of a burst may stand for those before it: its id is the last of them (§2.8.9).
    #[inline]
    pub(super) fn returned(&mut self, max: u16) -> u16 {
        while self.seen < max.min(self.out) {
            let place = self.reclaimed.plus(self.seen, self.size);
            let word = self.descriptors[2 * usize::from(place.slot) + 1].load(Ordering::Acquire);
            let used = if place.wrap { AVAIL | USED } else { 0 };
            if word & (AVAIL | USED) != used {
                break;
            }
            if self.seen == 0 {
                self.expect(max);
            }
            let id = (word >> 32) as u16;
            // A branch, so that the processor need not know this word to look at the next.
            let count = if id == place.slot { 1 } else { self.until(id, place) };
            self.seen = (self.seen + count).min(self.out);
        }
        self.seen.min(max)
    }

    /// Buffers from a place to the one of this number.
    #[inline(never)]
    fn until(&self, id: u16, place: Place) -> u16 {
        (id.wrapping_sub(place.slot) & (self.size - 1)) + 1
    }

    /// Asks for the lines behind the first of `max` descriptors: where one has come back there are more.
    #[inline]
    fn expect(&self, max: u16) {
        for n in (LINE..max.min(self.out)).step_by(LINE.into()) {
            let slot = self.reclaimed.plus(n, self.size).slot;
            sys::fetch(&self.descriptors[2 * usize::from(slot)]);
        }
    }

    pub(super) fn base(&mut self) -> u32 {
        let used = self.returned(self.size);
        let place = self.reclaimed.plus(used, self.size);
        let half = u32::from(place.slot) | u32::from(place.wrap) << 15;
        half | half << 16
    }

    #[inline]
    pub(super) fn entry(&self, n: u16) -> Entry {
        let slot = self.reclaimed.plus(n, self.size).slot;
        let word = self.descriptors[2 * usize::from(slot) + 1].load(Ordering::Relaxed);
        Entry { id: (word >> 32) as u16, len: word as u32 }
    }

    #[inline]
    pub(super) fn reclaim(&mut self, count: u16) {
        self.reclaimed = self.reclaimed.plus(count, self.size);
        self.seen -= count;
        self.out -= count;
    }

    #[inline]
    pub(super) fn offer(&mut self, count: u16) {
        let first = self.offered;
        self.offered = first.plus(count, self.size);
        if count > 0 {
            let before_the_end = count.min(self.size - first.slot);
            self.publish(first.plus(1, self.size), before_the_end - 1);
            self.publish(first.plus(before_the_end, self.size), count - before_the_end);
            let (at, marks) = (usize::from(first.slot), first.available());
            self.descriptors[2 * at + 1].store(self.described[at] | marks, Ordering::Release);
        }
        self.out += count;
    }

    #[inline]
    pub(super) fn wants_kick(&self) -> bool {
        self.device[0].load(Ordering::Relaxed) & EVENTS != EVENTS_OFF
    }

    /// Makes `count` places from `first` on available, none of them behind the ring's end.
    #[inline]
    fn publish(&self, first: Place, count: u16) {
        let (at, count) = (usize::from(first.slot), usize::from(count));
        let marks = first.available();
        let words = self.descriptors[2 * at..2 * (at + count)].chunks_exact(2);
        for (word, described) in words.zip(&self.described[at..at + count]) {
            word[1].store(described | marks, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn next_to_offer(&self) -> u16 {
        self.offered.slot
    }

    #[inline]
    pub(super) fn next_to_return(&self) -> u16 {
        self.reclaimed.slot
    }

    #[inline]
    pub(super) fn free(&self) -> u16 {
        self.size - self.out
    }

    pub(super) fn ask_for_calls(&mut self, wanted: bool) {
        self.driver[0].store(if wanted { 0 } else { EVENTS_OFF }, Ordering::Relaxed);
        full_fence();
    }
}
