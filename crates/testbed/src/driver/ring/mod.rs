//! The driver's side of a virtqueue whose buffers never move.
//!
//! Slot `n` of the ring always describes buffer `n`, and both sides go through the ring in order (VIRTIO_F_IN_ORDER, VIRTIO 1.2
//! §2.7.9 and §2.8.9), so that a burst costs the driver one index and no bookkeeping. A switch that uses buffers in another order
//! is found out: [`Entry::id`] is not the slot.
//!
//! A ring belongs to one thread. Notifications from the switch are off unless asked for ([`Ring::ask_for_calls`]).

mod packed;
mod split;

use super::sys::Memory;
use std::sync::Arc;

pub use packed::Packed;
pub use split::Split;

/// VIRTIO 1.2 §2.7.5 and §2.8.6: the switch writes this buffer.
const WRITABLE: u16 = 2;

/// Which layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Descriptor table, available ring, used ring.
    #[default]
    Split,
    /// One ring of descriptors.
    Packed,
}

/// Who writes the buffers of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The guest writes, the switch reads.
    Transmit,
    /// The switch writes, the guest reads.
    Receive,
}

/// Byte offsets of a ring's three areas in guest memory (VIRTIO 1.2's names: descriptor, driver, device area).
#[derive(Clone, Copy, Debug)]
pub struct Areas {
    /// Descriptors.
    pub descriptors: usize,
    /// What the driver writes.
    pub driver: usize,
    /// What the device writes.
    pub device: usize,
}

impl Areas {
    /// Areas of a ring of `size` that begins at `offset`, each on cache lines of its own, and where the next thing may begin.
    pub fn at(offset: usize, size: u16) -> (Self, usize) {
        let (size, descriptors) = (usize::from(size), offset.next_multiple_of(4096));
        let driver = descriptors + 16 * size;
        let device = (driver + 6 + 2 * size).next_multiple_of(128);
        (Self { descriptors, driver, device }, (device + 6 + 8 * size).next_multiple_of(128))
    }
}

/// A buffer that came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The buffer, by the switch's account.
    pub id: u16,
    /// Bytes that the switch wrote to it.
    pub len: u32,
}

/// Either layout.
pub enum Ring {
    /// Split.
    Split(Split),
    /// Packed.
    Packed(Packed),
}

/// The same call on either layout.
macro_rules! either {
    ($ring:expr, $one:ident => $call:expr) => {
        match $ring {
            Ring::Split($one) => $call,
            Ring::Packed($one) => $call,
        }
    };
}

impl Ring {
    /// A ring of `size` slots (a power of two) whose slots are to be described before they are offered.
    pub fn new(kind: Kind, memory: &Arc<Memory>, areas: Areas, size: u16) -> Self {
        assert!(size.is_power_of_two(), "the driver's rings have a power of two of slots");
        match kind {
            Kind::Split => Ring::Split(Split::new(memory, areas, size)),
            Kind::Packed => Ring::Packed(Packed::new(memory, areas, size)),
        }
    }

    /// Says where a slot's buffer is. Only while the slot is the guest's.
    pub fn describe(&mut self, slot: u16, address: u64, len: u32, direction: Direction) {
        let flags = if direction == Direction::Receive { WRITABLE } else { 0 };
        either!(self, ring => ring.describe(slot, address, len, flags));
    }

    /// Buffers that came back and were not reclaimed yet; looks no further than `max`.
    #[inline]
    pub fn returned(&mut self, max: u16) -> u16 {
        either!(self, ring => ring.returned(max))
    }

    /// What is known of the `n`-th buffer that came back.
    #[inline]
    pub fn entry(&self, n: u16) -> Entry {
        either!(self, ring => ring.entry(n))
    }

    /// Takes back the first `count` of the buffers that came back.
    #[inline]
    pub fn reclaim(&mut self, count: u16) {
        either!(self, ring => ring.reclaim(count));
    }

    /// Offers the next `count` slots to the switch.
    #[inline]
    pub fn offer(&mut self, count: u16) {
        either!(self, ring => ring.offer(count));
    }

    /// Whether the switch wants to be told of what was offered. A full fence comes before this: what was offered must be visible before the switch's wish
    /// is read, or both sides would wait for each other (§2.7.13, §2.8.21.3.1).
    #[inline]
    pub fn wants_kick(&self) -> bool {
        either!(self, ring => ring.wants_kick())
    }

    /// The slot that is offered next.
    #[inline]
    pub fn next_to_offer(&self) -> u16 {
        either!(self, ring => ring.next_to_offer())
    }

    /// The slot that comes back next.
    #[inline]
    pub fn next_to_return(&self) -> u16 {
        either!(self, ring => ring.next_to_return())
    }

    /// Slots that are the guest's: neither offered nor waiting to be reclaimed.
    #[inline]
    pub fn free(&self) -> u16 {
        either!(self, ring => ring.free())
    }

    /// Turns notifications by the switch on or off.
    pub fn ask_for_calls(&mut self, wanted: bool) {
        either!(self, ring => ring.ask_for_calls(wanted));
    }

    /// Index and wrap counters as SET_VRING_BASE carries them, from which another switch goes on: the first buffer that was not used.
    pub fn base(&mut self) -> u32 {
        either!(self, ring => ring.base())
    }

    /// First index and wrap counters as SET_VRING_BASE carries them: the start of an unused ring.
    pub const fn first_base(kind: Kind) -> u32 {
        match kind {
            Kind::Split => 0,
            Kind::Packed => 0x8000_8000,
        }
    }
}

#[cfg(test)]
mod tests;
