//! What a worker lost lately, whether or not anybody captured: the last [`SLOTS`] losses, with the beginning of each frame.
//!
//! Memory is asked for at once, and taken with the first losses. Only the worker writes, and never waits: what it loses while somebody reads, and what is more than [`PER_SECOND`],
//! is counted, and the next record says so.

use super::record::{Captured, Front, Words};
use flow::Nanos;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, TryLockError};

/// Losses that are remembered. Chosen: less than 1 MiB a worker.
const SLOTS: usize = 4096;
/// Bytes of each frame. Chosen: what packets' ids are made of, but for long TCP options.
const HEAD: usize = 160;
/// Losses in a second that are noted. Chosen: a flood of drops shall cost no more for being seen.
const PER_SECOND: u32 = 10_000;
/// In which so many of them are.
const WINDOW: u64 = 10_000_000;
const PER_WINDOW: u32 = PER_SECOND / (1_000_000_000 / WINDOW) as u32;

/// A worker's.
#[derive(Default)]
pub(crate) struct Flight {
    notes: Mutex<Notes>,
    /// Losses since the last note that are none.
    left_out: AtomicU32,
}

struct Notes {
    slots: Vec<Slot>,
    /// The oldest, once all are taken.
    next: usize,
    /// When the window began, and what was noted in it.
    since: u64,
    noted: u32,
}

impl Default for Notes {
    fn default() -> Self {
        Self { slots: Vec::with_capacity(SLOTS), next: 0, since: 0, noted: 0 }
    }
}

#[derive(Clone, Copy)]
struct Slot {
    words: Words,
    len: u8,
    head: [u8; HEAD],
}

/// A loss that was noted.
pub(crate) struct Noted {
    slot: Slot,
    worker: usize,
}

impl Noted {
    /// As a capture sees it.
    pub(crate) fn seen(&self) -> Captured<'_> {
        let Slot { words, len, head } = &self.slot;
        Captured::read(self.worker, *words, &head[..usize::from(*len)])
    }
}

impl Flight {
    /// Notes a loss.
    pub(super) fn note(&self, now: Nanos, front: Front, head: &[u8]) {
        let mut notes = match self.notes.try_lock() {
            Ok(notes) => notes,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.leave_out(),
        };
        if now.0.saturating_sub(notes.since) >= WINDOW {
            (notes.since, notes.noted) = (now.0, 0);
        }
        if notes.noted == PER_WINDOW {
            return self.leave_out();
        }
        notes.noted += 1;
        let words = front.words(self.left_out.swap(0, Relaxed));
        notes.put(words, &head[..head.len().min(HEAD)]);
    }

    fn leave_out(&self) {
        self.left_out.fetch_add(1, Relaxed);
    }

    /// What is noted from a moment on, the oldest first.
    pub(crate) fn since(&self, worker: usize, moment: Nanos) -> Vec<Noted> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let (newer, older) = notes.slots.split_at(notes.next);
        let all = older.iter().chain(newer).filter(|slot| slot.words[0] >= moment.0);
        all.map(|&slot| Noted { slot, worker }).collect()
    }
}

impl Notes {
    fn put(&mut self, words: Words, bytes: &[u8]) {
        let mut slot = Slot { words, len: bytes.len() as u8, head: [0; HEAD] };
        slot.head[..bytes.len()].copy_from_slice(bytes);
        if self.slots.len() < SLOTS {
            return self.slots.push(slot);
        }
        self.slots[self.next] = slot;
        self.next = (self.next + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{PortAt, SwitchId};
    use crate::taps::What;
    use port::Lost;
    use wire::DropReason;

    fn note(flight: &Flight, at: u64, byte: u8) {
        let bytes = [byte; 200];
        let lost = Lost::bytes(&bytes);
        let port = PortAt { switch: SwitchId(1), port: 2 };
        let front = Front::of_loss((0, port), DropReason::Meter, Nanos(at), &lost);
        flight.note(Nanos(at), front, &bytes);
    }

    #[test]
    fn the_last_losses_are_there_in_order_with_their_first_bytes() {
        let flight = Flight::default();
        let count = SLOTS as u64 + 1000;
        (0..count).for_each(|number| note(&flight, number * WINDOW, number as u8));
        let noted = flight.since(3, Nanos(0));
        assert_eq!(noted.len(), SLOTS);
        for (number, noted) in (1000..).zip(&noted) {
            let seen = noted.seen();
            assert_eq!((seen.at, seen.worker, seen.len), (Nanos(number * WINDOW), 3, 200));
            assert_eq!(
                (seen.what, seen.bytes),
                (What::Lost(DropReason::Meter), &[number as u8; HEAD][..])
            );
        }
        assert_eq!(flight.since(0, Nanos((count - 5) * WINDOW)).len(), 5);
    }

    #[test]
    fn what_a_flood_and_a_reader_leave_out_is_said_by_the_next_note() {
        let flight = Flight::default();
        (0..PER_WINDOW + 40).for_each(|_| note(&flight, 7, 0));
        let reader = flight.notes.lock().unwrap();
        note(&flight, 7 + WINDOW, 1);
        drop(reader);
        note(&flight, 8 + WINDOW, 2);
        let noted = flight.since(0, Nanos(0));
        assert_eq!(noted.len(), PER_WINDOW as usize + 1);
        assert_eq!(noted.last().unwrap().seen().lost_before, 41);
    }
}
