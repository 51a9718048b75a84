//! What a worker lost lately, and a sample of what passed, whether or not anybody captured: the last [`LOSSES`] losses, and the last [`PASSED`] of one
//! passed frame in [`EVERY`], with the beginning of each.
//!
//! Losses have memory of their own: no traffic makes one forgotten. Memory is asked for at once, and taken with the first notes. Only the worker writes, and
//! never waits: what it loses while somebody reads, and what is more than [`PER_SECOND`], is counted, and the next record says so. Passed frames that come
//! meanwhile are left out.
//!
//! What rules did with a passed frame is not asked on the worker. Its note has the number of the tables that it went through, and who reads it asks them if they
//! are the same still.

use super::What;
use super::record::{COOKIE, Captured, Front, WAY, Words, way_with};
use super::verdict::{Verdict, verdict_then};
use crate::id::PortAt;
use crate::rung::Rung;
use arrayvec::ArrayVec;
use flow::{Nanos, Snapshot};
use port::{RxQueue, Slot as Frame};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, TryLockError};
use wire::BATCH;

/// Losses that are remembered. Chosen: less than 1 MiB a worker.
const LOSSES: usize = 4096;
/// Passed frames that are remembered. Chosen: half as many.
const PASSED: usize = 2048;
/// One passed frame in so many is noted.
pub(super) const EVERY: usize = 32;
/// Bytes of each frame. Chosen: what packets' ids are made of, but for long TCP options.
const HEAD: usize = 160;
/// Losses in a second that are noted. Chosen: a flood of drops shall cost no more for being seen.
const PER_SECOND: u32 = 10_000;
/// In which so many of them are.
const WINDOW: u64 = 10_000_000;
const PER_WINDOW: u32 = PER_SECOND / (1_000_000_000 / WINDOW) as u32;

/// A worker's.
pub(crate) struct Flight {
    losses: Mutex<Notes>,
    passed: Mutex<Notes>,
    /// Losses since the last note that are none.
    left_out: AtomicU32,
}

impl Default for Flight {
    fn default() -> Self {
        let notes = |most| Mutex::new(Notes::new(most));
        Self { losses: notes(LOSSES), passed: notes(PASSED), left_out: AtomicU32::new(0) }
    }
}

/// A worker's count of the frames that came, until the next one that is noted. No more than [`PER_SECOND`] are: a fast worker's memory would reach back some
/// milliseconds only, and each note costs it some 200 cycles.
#[derive(Default)]
pub(crate) struct Turns {
    left: usize,
    /// When the window began, and what was noted in it.
    since: u64,
    noted: u32,
}

impl Turns {
    /// Counts frames that came: which of them is the next one that is noted, [`EVERY`]th ones behind it too. None if it is not one of them.
    #[inline]
    pub(crate) fn next(&mut self, frames: usize, now: Nanos) -> Option<usize> {
        let turn = self.left;
        if turn >= frames {
            self.left = turn - frames;
            return None;
        }
        self.left = EVERY - 1 - (frames - 1 - turn) % EVERY;
        if now.0.saturating_sub(self.since) >= WINDOW {
            (self.since, self.noted) = (now.0, 0);
        }
        self.noted += 1;
        (self.noted <= PER_WINDOW).then_some(turn)
    }
}

/// Those of a batch.
pub(crate) type Passings = ArrayVec<Passing, { BATCH / EVERY }>;

/// A frame that passes, from when it came in until it has left.
pub(crate) struct Passing {
    pub(super) front: Front,
    /// Number of the tables that it goes through; 0 if its bytes do not tell what those do with it.
    tables: u64,
    len: usize,
    head: [u8; HEAD],
}

impl Passing {
    /// A received frame. A tunnel's key is not in its bytes.
    pub(super) fn of_frame(
        (at, now): (PortAt, Nanos),
        (frame, source): (&Frame, &dyn RxQueue),
        tables: Option<&Snapshot>,
        is_tunnel: bool,
    ) -> Self {
        let front = Front::of_received(at, now, &frame.to_send(source));
        let tables = tables.filter(|_| !is_tunnel).map_or(0, Snapshot::serial);
        let bytes = frame.head.bytes();
        let mut passing = Self { front, tables, len: bytes.len().min(HEAD), head: [0; HEAD] };
        passing.head[..passing.len].copy_from_slice(&bytes[..passing.len]);
        passing
    }

    /// Frames that went on unread.
    pub(super) fn of_unread((at, now): (PortAt, Nanos), frames: usize) -> Self {
        Self { front: Front::of_unread(at, now, frames), tables: 0, len: 0, head: [0; HEAD] }
    }

    /// Its first bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.head[..self.len]
    }
}

struct Notes {
    slots: Vec<Slot>,
    most: usize,
    /// The oldest, once all are taken.
    next: usize,
    /// When the window began, and what was noted in it.
    since: u64,
    noted: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    words: Words,
    len: u8,
    head: [u8; HEAD],
}

/// What was noted.
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

    /// What rules did with a passed frame, if its switch's tables still tell.
    pub(crate) fn verdict(&self, tables: &Snapshot, now: Nanos) -> Option<Verdict> {
        let (serial, seen) = (self.slot.words[COOKIE], self.seen());
        let is_told = matches!(seen.what, What::Received) && serial != 0;
        is_told.then(|| verdict_then(tables, serial, (seen.port, seen.bytes), now))?
    }
}

impl Flight {
    /// Notes a loss.
    pub(super) fn note(&self, now: Nanos, front: Front, head: &[u8]) {
        let mut notes = match self.losses.try_lock() {
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

    /// Notes a frame that passed, which this rung took. Left out while somebody reads.
    pub(super) fn note_passed(&self, passing: &Passing, rung: Option<Rung>, wait: Nanos) {
        let mut notes = match self.passed.try_lock() {
            Ok(notes) => notes,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let mut words = passing.front.words(0);
        words[WAY] = way_with(words[WAY], rung, wait);
        words[COOKIE] = passing.tables;
        notes.put(words, passing.bytes());
    }

    fn leave_out(&self) {
        self.left_out.fetch_add(1, Relaxed);
    }

    /// What is noted from a moment on: losses, the oldest first, then passed frames.
    pub(crate) fn since(&self, worker: usize, moment: Nanos) -> Vec<Noted> {
        let mut noted = noted_since(&self.losses, worker, moment);
        noted.append(&mut self.passed_since(worker, moment));
        noted
    }

    /// The passed frames among them.
    pub(crate) fn passed_since(&self, worker: usize, moment: Nanos) -> Vec<Noted> {
        noted_since(&self.passed, worker, moment)
    }
}

fn noted_since(notes: &Mutex<Notes>, worker: usize, moment: Nanos) -> Vec<Noted> {
    let notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    let (newer, older) = notes.slots.split_at(notes.next);
    let all = older.iter().chain(newer).filter(|slot| slot.words[0] >= moment.0);
    all.map(|&slot| Noted { slot, worker }).collect()
}

impl Notes {
    fn new(most: usize) -> Self {
        Self { slots: Vec::with_capacity(most), most, next: 0, since: 0, noted: 0 }
    }

    fn put(&mut self, words: Words, bytes: &[u8]) {
        let mut slot = Slot { words, len: bytes.len() as u8, head: [0; HEAD] };
        slot.head[..bytes.len()].copy_from_slice(bytes);
        if self.slots.len() < self.most {
            return self.slots.push(slot);
        }
        self.slots[self.next] = slot;
        self.next = (self.next + 1) % self.most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{PortAt, SwitchId};
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
        let count = LOSSES as u64 + 1000;
        (0..count).for_each(|number| note(&flight, number * WINDOW, number as u8));
        let noted = flight.since(3, Nanos(0));
        assert_eq!(noted.len(), LOSSES);
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
    fn one_frame_in_32_has_its_turn_however_they_come() {
        for batches in [[32, 32, 32], [1, 5, 7], [64, 3, 64], [31, 33, 40]] {
            let (mut turns, mut before, mut noted) = (Turns::default(), 0, Vec::new());
            for batch in batches.into_iter().cycle().take(3000) {
                let first = turns.next(batch, Nanos(before as u64 * WINDOW)).into_iter();
                noted.extend(
                    first.flat_map(|first| (before + first..before + batch).step_by(EVERY)),
                );
                before += batch;
            }
            let all: Vec<_> = (0..before).step_by(EVERY).collect();
            assert!(noted == all, "{batches:?}");
        }
    }

    #[test]
    fn no_more_have_their_turn_than_so_many_in_a_window() {
        let mut turns = Turns::default();
        let window = |turns: &mut Turns, at: u64| {
            (0..1000).filter(|_| turns.next(EVERY, Nanos(at)).is_some()).count()
        };
        assert_eq!(window(&mut turns, WINDOW), PER_WINDOW as usize);
        assert_eq!(window(&mut turns, 2 * WINDOW - 1), 0);
        assert_eq!(window(&mut turns, 2 * WINDOW), PER_WINDOW as usize);
    }

    #[test]
    fn passed_frames_take_no_place_of_losses() {
        let flight = Flight::default();
        note(&flight, 1, 1);
        let at = PortAt { switch: SwitchId(1), port: 2 };
        for number in 0..PASSED as u64 + 10 {
            let passing = Passing::of_unread((at, Nanos(2 + number)), 32);
            flight.note_passed(&passing, Some(Rung::Port), Nanos(700));
        }
        let noted = flight.since(0, Nanos(0));
        assert_eq!(noted.len(), 1 + PASSED);
        assert_eq!(noted[0].seen().what, What::Lost(DropReason::Meter));
        let last = noted.last().unwrap().seen();
        assert_eq!((last.what, last.rung), (What::Unread(32), Some(Rung::Port)));
        assert_eq!((last.at, last.wait), (Nanos(2057 + 2), Nanos(700)));
    }

    #[test]
    fn what_a_flood_and_a_reader_leave_out_is_said_by_the_next_note() {
        let flight = Flight::default();
        (0..PER_WINDOW + 40).for_each(|_| note(&flight, 7, 0));
        let reader = flight.losses.lock().unwrap();
        note(&flight, 7 + WINDOW, 1);
        drop(reader);
        note(&flight, 8 + WINDOW, 2);
        let noted = flight.since(0, Nanos(0));
        assert_eq!(noted.len(), PER_WINDOW as usize + 1);
        assert_eq!(noted.last().unwrap().seen().lost_before, 41);
    }
}
