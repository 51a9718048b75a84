//! The least that a switch can be: what one guest sends, the other gets.
//!
//! **Question answered**: how fast is the driver when nothing else is the limit?
//!
//! One thread plays the device's side of two guests' rings. It relies on what [`super::ring`] promises (slot `n` always describes
//! buffer `n`, in order), so that it reads no descriptor of a split ring, checks nothing, and looks at no frame. With
//! [`Effort::Indices`] it moves indices and used entries only: the receiver finds what was in its buffers before. With
//! [`Effort::Frames`] it copies header and frame, one line each, so that the lines travel between the cores as they must with any switch.
//!
//! VIRTIO 1.2 §2.7.8, §2.7.9 (split) and §2.8.7, §2.8.9 (packed, in order).

use super::frontend::Device;
use super::places::Buffers;
use super::ring::{Areas, Kind};
use super::sys::{self, LINE, Line, View};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64};

/// Most frames of a turn.
const BURST: u16 = 32;

/// Second word of a packed descriptor: id 32..48, flags 48..64.
const AVAIL: u64 = 1 << (48 + 7);
const USED: u64 = 1 << (48 + 15);

/// What the virtio-net header of a plain frame ends with: one buffer.
const ONE_BUFFER: u64 = 1 << 48;

/// How much it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Used entries and indices.
    Indices,
    /// The header and the first line of each frame, too.
    Frames,
}

/// The device's side of two guests.
pub struct Echo {
    wires: [Wire; 2],
    effort: Effort,
}

/// From one guest's transmit ring to the other's receive ring.
struct Wire {
    source: End,
    destination: End,
}

/// The device's side of one ring.
struct End {
    ring: Side,
    lines: View<Line>,
    buffers: Buffers,
    /// Next slot, and its number modulo the ring.
    next: u16,
    mask: u16,
    /// Bytes that a used entry tells.
    len: u32,
}

enum Side {
    Split { avail: View<AtomicU16>, used: View<AtomicU32> },
    Packed { descriptors: View<AtomicU64> },
}

impl Echo {
    /// Between two guests that were made alone ([`Device::alone`]) with rings of this kind.
    pub fn between(guests: &[Device; 2], kind: Kind, effort: Effort) -> Self {
        let wire = |from: usize, to: usize| {
            let (from, to) = (&guests[from], &guests[to]);
            let len = (super::frontend::HEADER + from.frame) as u32;
            let source = End::new(from, from.areas[1], from.transmit.buffers, kind, 0);
            let destination = End::new(to, to.areas[0], to.receive.buffers, kind, len);
            Wire { source, destination }
        };
        Self { wires: [wire(0, 1), wire(1, 0)], effort }
    }

    /// Works until told to stop.
    pub fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Relaxed) {
            for wire in &mut self.wires {
                wire.turn(self.effort);
            }
        }
    }
}

impl Wire {
    #[inline]
    fn turn(&mut self, effort: Effort) {
        let Self { source, destination } = self;
        let count = source.offered();
        // Frames that find no room are lost with any switch; here they wait, for the driver is to be the limit.
        let count = if count == 0 { 0 } else { count.min(destination.offered()) };
        if count == 0 {
            return;
        }
        if effort == Effort::Frames {
            (0..count).for_each(|n| source.fetch(n));
            (0..count).for_each(|n| destination.own(n));
            (0..count).for_each(|n| destination.copy(source, n));
        }
        destination.use_up(count);
        source.use_up(count);
    }
}

impl End {
    fn new(device: &Device, areas: Areas, buffers: Buffers, kind: Kind, len: u32) -> Self {
        let (memory, slots) = (&device.memory, usize::from(device.slots));
        let ring = match kind {
            Kind::Split => Side::Split {
                avail: memory.view(areas.driver, 2 + slots),
                used: memory.view(areas.device, 1 + 2 * slots),
            },
            Kind::Packed => Side::Packed { descriptors: memory.view(areas.descriptors, 2 * slots) },
        };
        // A split ring's driver is told once that notifications are not wanted; a packed ring's reads the words after the driver's.
        match &ring {
            Side::Split { used, .. } => used[0].store(1, Relaxed),
            Side::Packed { .. } => {
                memory.view::<AtomicU32>(areas.device, 1)[0].store(1 << 16, Relaxed)
            }
        }
        let lines = memory.view(0, memory.bytes() / LINE);
        Self { ring, lines, buffers, next: 0, mask: device.slots - 1, len }
    }

    /// Buffers that may be used now, at most a burst.
    #[inline]
    fn offered(&self) -> u16 {
        match &self.ring {
            Side::Split { avail, .. } => avail[1].load(Acquire).wrapping_sub(self.next).min(BURST),
            Side::Packed { descriptors } => {
                let is_offered = |n: &u16| {
                    let at = self.next.wrapping_add(*n);
                    let word = descriptors[2 * self.slot(at) + 1].load(Acquire);
                    word & (AVAIL | USED) == if self.wrap(at) { AVAIL } else { USED }
                };
                // The first is made available last: no line is looked at that is still being written.
                (0..BURST).take_while(is_offered).count() as u16
            }
        }
    }

    /// Uses the next buffers. A packed ring's last descriptor that is written is the first: the driver waits for it.
    #[inline]
    fn use_up(&mut self, count: u16) {
        match &self.ring {
            Side::Split { used, .. } => {
                for at in (0..count).map(|n| self.next.wrapping_add(n)) {
                    let slot = self.slot(at);
                    used[1 + 2 * slot].store(slot as u32, Relaxed);
                    used[2 + 2 * slot].store(self.len, Relaxed);
                }
                let next = self.next.wrapping_add(count);
                used[0].store(u32::from(next) << 16 | 1, Release);
            }
            // What was sent needs no lengths: one used descriptor stands for all, by the number of the last.
            Side::Packed { descriptors } if self.len == 0 => {
                let last = self.slot(self.next.wrapping_add(count - 1));
                self.publish(descriptors, self.next, last);
            }
            Side::Packed { descriptors } => {
                for at in (0..count).rev().map(|n| self.next.wrapping_add(n)) {
                    self.publish(descriptors, at, self.slot(at));
                }
            }
        }
        self.next = self.next.wrapping_add(count);
    }

    #[inline]
    fn publish(&self, descriptors: &View<AtomicU64>, at: u16, id: usize) {
        let flags = if self.wrap(at) { AVAIL | USED } else { 0 };
        let word = u64::from(self.len) | (id as u64) << 32 | flags;
        descriptors[2 * self.slot(at) + 1].store(word, Release);
    }

    #[inline]
    fn slot(&self, at: u16) -> usize {
        usize::from(at & self.mask)
    }

    /// The wrap counter of a place: 65 536 is an even number of turns around any ring that is shorter than that.
    #[inline]
    fn wrap(&self, at: u16) -> bool {
        at & (self.mask + 1) == 0
    }

    /// The line of the `n`-th next frame; its header ends the line before.
    #[inline]
    fn line(&self, n: u16) -> usize {
        self.buffers.frame(self.next.wrapping_add(n) & self.mask) / LINE
    }

    #[inline]
    fn fetch(&self, n: u16) {
        let at = self.line(n);
        sys::fetch(&self.lines[at - 1]);
        sys::fetch(&self.lines[at]);
    }

    #[inline]
    fn own(&self, n: u16) {
        let at = self.line(n);
        sys::own(&self.lines[at - 1]);
        sys::own(&self.lines[at]);
    }

    #[inline]
    fn copy(&self, source: &Self, n: u16) {
        let (from, to) = (source.line(n), self.line(n));
        self.lines[to - 1].0[7]
            .store(ONE_BUFFER | source.lines[from - 1].0[7].load(Relaxed), Relaxed);
        let (from, to) = (&source.lines[from], &self.lines[to]);
        from.0.iter().zip(&to.0).for_each(|(from, to)| to.store(from.load(Relaxed), Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::flows::{Pattern, order};
    use super::super::frontend::Shape;
    use super::super::latency::Pace;
    use super::super::lean::Lean;
    use super::super::traffic::{Touch, Traffic};
    use super::super::verify::{Check, unchanged};
    use super::*;

    /// Two guests with an echo between them on another thread, while `work` runs.
    fn with_echo<T>(kind: Kind, effort: Effort, work: impl FnOnce(&mut Lean, Traffic) -> T) -> T {
        let shape = Shape { ring: kind, frame: 64, buffer: 64, slots: 64, ..Shape::default() };
        let guests = [(); 2].map(|()| Device::alone(&shape).unwrap());
        let (echo, stop) = (Echo::between(&guests, kind, effort), AtomicBool::new(false));
        let traffic = Traffic {
            frame: 64,
            touch: Touch::Head,
            segment: None,
            pattern: Pattern::Addresses,
            order: order(100),
        };
        let mut lean = Lean::new(guests, traffic.clone());
        std::thread::scope(|scope| {
            scope.spawn(|| echo.run(&stop));
            let _stop = Stop(&stop);
            work(&mut lean, traffic)
        })
    }

    /// Ends the echo, also when a check fails.
    struct Stop<'a>(&'a AtomicBool);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    /// More than every ring holds; a loaded machine may need many windows for that.
    const ENOUGH: u64 = 1000;

    #[test]
    fn every_frame_reaches_the_other_guest_as_it_was_sent() {
        for kind in [Kind::Split, Kind::Packed] {
            with_echo(kind, Effort::Frames, |lean, traffic| {
                let mut seen = 0;
                while seen < ENOUGH {
                    let check = Check::new(traffic.clone(), unchanged);
                    let (totals, check) = lean.verify(40_000_000, Pace::new(1e6, 2e9), check);
                    let wrong = (check.lost, check.reordered, check.damaged);
                    assert_eq!((check.good, wrong), (totals.sent, (0, 0, 0)), "{kind:?}");
                    seen += check.good;
                }
            });
        }
    }

    #[test]
    fn without_frames_the_buffers_come_back_all_the_same() {
        for kind in [Kind::Split, Kind::Packed] {
            with_echo(kind, Effort::Indices, |lean, _| {
                let mut seen = 0;
                while seen < ENOUGH {
                    seen += lean.flood(10_000_000).received;
                }
            });
        }
    }
}
