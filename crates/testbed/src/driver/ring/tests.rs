//! The rings against the simplest device: it uses what it is offered, in order.

use super::*;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

const SLOTS: u16 = 8;

/// Uses one buffer at a time, by the letter of VIRTIO 1.2 §2.7.8 and §2.8.7.
struct Device {
    kind: Kind,
    descriptors: crate::driver::sys::View<AtomicU64>,
    avail: crate::driver::sys::View<AtomicU16>,
    used: crate::driver::sys::View<AtomicU32>,
    next: u16,
    wrap: bool,
}

fn pair(kind: Kind) -> (Ring, Device) {
    let (areas, end) = Areas::at(0, SLOTS);
    let memory = Memory::new(end, Default::default()).unwrap();
    let mut ring = Ring::new(kind, &memory, areas, SLOTS);
    (0..SLOTS).for_each(|slot| ring.describe(slot, u64::from(slot) << 12, 100, Direction::Receive));
    let device = Device {
        kind,
        descriptors: memory.view(areas.descriptors, 2 * usize::from(SLOTS)),
        avail: memory.view(areas.driver, 2 + usize::from(SLOTS)),
        used: memory.view(areas.device, 1 + 2 * usize::from(SLOTS)),
        next: 0,
        wrap: true,
    };
    (ring, device)
}

impl Device {
    /// Uses the next buffer and writes `len` bytes to it, if one is offered.
    fn use_one(&mut self, len: u32) -> Option<u64> {
        match self.kind {
            Kind::Split => self.use_split(len),
            Kind::Packed => self.use_packed(len),
        }
    }

    fn use_split(&mut self, len: u32) -> Option<u64> {
        if self.avail[1].load(Ordering::Acquire) == self.next {
            return None;
        }
        let slot = usize::from(self.next % SLOTS);
        let id = self.avail[2 + slot].load(Ordering::Relaxed);
        self.used[1 + 2 * slot].store(id.into(), Ordering::Relaxed);
        self.used[2 + 2 * slot].store(len, Ordering::Relaxed);
        self.next = self.next.wrapping_add(1);
        self.used[0].store(u32::from(self.next) << 16, Ordering::Release);
        Some(self.descriptors[2 * usize::from(id)].load(Ordering::Relaxed))
    }

    fn use_packed(&mut self, len: u32) -> Option<u64> {
        let at = 2 * usize::from(self.next);
        let word = self.descriptors[at + 1].load(Ordering::Acquire);
        let (avail, used) = (word >> 55 & 1 == 1, word >> 63 == 1);
        if avail != self.wrap || used == self.wrap {
            return None;
        }
        let flags = if self.wrap { 1 << 55 | 1 << 63 } else { 0 };
        let word = u64::from(len) | word & 0xffff << 32 | flags;
        self.descriptors[at + 1].store(word, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        self.wrap ^= self.next == 0;
        Some(self.descriptors[at].load(Ordering::Relaxed))
    }
}

#[test]
fn buffers_come_back_in_order_many_times_around_the_ring() {
    for kind in [Kind::Split, Kind::Packed] {
        let (mut ring, mut device) = pair(kind);
        let (mut offered, mut returned) = (0_u32, 0_u32);
        for turn in 0..20_000_u32 {
            let count = (turn * 7 % 5) as u16;
            let count = count.min(ring.free());
            ring.offer(count);
            offered += u32::from(count);
            for _ in 0..turn % 4 {
                device.use_one(turn % 90);
            }
            let back = ring.returned(3);
            for n in 0..back {
                let slot = ring.next_to_return();
                assert_eq!(ring.entry(n).id, (slot + n) % SLOTS);
            }
            ring.reclaim(back);
            returned += u32::from(back);
            assert_eq!(u32::from(SLOTS - ring.free()), offered - returned);
        }
        assert!(returned > 10_000, "{kind:?}: {returned}");
    }
}

#[test]
fn an_entry_carries_the_written_length() {
    for kind in [Kind::Split, Kind::Packed] {
        let (mut ring, mut device) = pair(kind);
        ring.offer(3);
        assert_eq!(device.use_one(77), Some(0));
        assert_eq!(device.use_one(88), Some(1 << 12));
        assert_eq!(ring.returned(8), 2);
        assert_eq!(ring.entry(1), Entry { id: 1, len: 88 });
    }
}

#[test]
fn a_full_ring_offers_no_more() {
    for kind in [Kind::Split, Kind::Packed] {
        let (mut ring, mut device) = pair(kind);
        ring.offer(SLOTS);
        assert_eq!((ring.free(), ring.returned(8)), (0, 0));
        while device.use_one(1).is_some() {}
        assert_eq!(ring.returned(8), SLOTS);
        ring.reclaim(SLOTS);
        assert_eq!((ring.free(), ring.next_to_offer()), (SLOTS, 0));
    }
}

#[test]
fn a_base_is_the_first_buffer_that_was_not_used() {
    for kind in [Kind::Split, Kind::Packed] {
        let (mut ring, mut device) = pair(kind);
        assert_eq!(ring.base(), Ring::first_base(kind));
        for _ in 0..3 {
            ring.offer(SLOTS);
            (0..SLOTS).for_each(|_| assert!(device.use_one(1).is_some()));
            assert_eq!(ring.returned(SLOTS), SLOTS);
            ring.reclaim(SLOTS);
        }
        ring.offer(4);
        (0..3).for_each(|_| assert!(device.use_one(1).is_some()));
        let expected = match kind {
            Kind::Split => 27,
            // Slot 3 of the fourth turn, wrap counter 0.
            Kind::Packed => 0x0003_0003,
        };
        assert_eq!(ring.base(), expected, "{kind:?}");
    }
}
