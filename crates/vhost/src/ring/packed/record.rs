//! A packed ring's line in the port's record ([`crate::Records`]): where a process that was killed stopped.
//!
//! Line: `state` u64 0, `positions` u64 8, `desc` u64 16, `driver` u64 24, `device` u64 32, then in the u64 at 40 `said` (bits 0..32, a base as the
//! message has it), `size` (32..48) and `mark` (48..64). A position is a place (bits 0..15) and its wrap counter (bit 15). `positions` holds two:
//! from where (bits 0..16) to where (16..32) the used position was last moved. What is available and not used needs no note: we give back in
//! the ring's order, so what was taken beyond the used position lies there unchanged, to be taken again.
//!
//! ## When it is believed
//!
//! All of this must hold, or the front-end's base counts, as it does without a record:
//!
//! * No one was told where the ring stands since: a stop by `GET_VRING_BASE` and a reset make the line void.
//! * The front-end starts the ring at the base that it said when the line was begun: it knows nothing newer. One that keeps count itself says another.
//! * Size and addresses are those of the line.
//! * The line's *mark* is in the ring. The device's event suppression area has a word of ours, `desc`, that the driver reads only next to the flag
//!   `RING_EVENT_FLAGS_DESC` (VIRTIO 1.2 §2.8.10), which we never set; a number there tells our ring from one that was made anew at the same address
//!   (a guest that booted again in the same QEMU, DPDK's rings after a new connection): a driver that makes a ring clears it.
//! * The descriptor where the ring goes on does not look as if it had been used in this lap.
//!
//! ## A kill between any two stores
//!
//! A process that is killed leaves its stores in the order of its program, so only the compiler has to keep it. The order of a batch that moves
//! the used position from *old* to *new*: `positions` in one store; the used descriptors from the last one *back* to the second; the first one's,
//! at *old*, which makes the others visible to the driver (§2.8.6). What the next process finds:
//!
//! * The descriptor at *old* is not available: it was used, and the driver has seen the batch (if it has made the place available again, then
//!   in its next lap, where both marks differ). The ring goes on at *new*.
//! * It is available, and so is every chain from there to *new*: the driver has seen nothing, and nothing was overwritten. The ring goes on at *old*;
//!   frames are sent once more, receive buffers filled anew.
//! * It is available, and behind some chains that are, the rest up to *new* is written, whose lengths are lost. The chains before it are
//!   given back without data, the first one last, and the ring goes on at *new*: their frames are lost, no buffer is. A kill in the midst of
//!   that leaves the same picture with fewer chains.

use super::position::Position;
use crate::record::{RingRecord, STATE, VALID};
use crate::ring::{Base, Places};
use crate::sys::Area;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::compiler_fence;

const POSITIONS: usize = 8;
const PARTS: [usize; 3] = [16, 24, 32];
const SAID: usize = 40;

/// One ring's line.
pub(super) struct Record {
    area: Area,
}

impl Position {
    fn word(self) -> u64 {
        u64::from(self.place) | u64::from(self.wrap) << 15
    }

    fn of_word(word: u64) -> Self {
        Self { place: word as u16 & 0x7fff, wrap: word >> 15 & 1 == 1 }
    }
}

/// What a ring is known by.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    parts: [u64; 3],
    size: u16,
    mark: u16,
}

impl Record {
    /// The line of a ring that starts at `base`; `mark` is what the ring has. Also returns, if the line is believed, from where to where the used
    /// position was last moved.
    pub(super) fn open(
        ring: RingRecord,
        places: &Places,
        base: Base,
        mark: u16,
    ) -> (Self, Option<(Position, Position)>) {
        let record = Self { area: ring.area };
        let identity = Identity {
            parts: [places.desc, places.driver, places.device],
            size: places.size,
            mark,
        };
        let is_same = record.is_valid() && mark != 0 && record.identity() == identity;
        let left = match ring.said {
            Some(said) if is_same && said.bits() == record.said() => Some(record.positions()),
            // Ours, from where we stopped it: nothing is known better.
            None if is_same => None,
            _ => {
                record.begin(identity, ring.said.unwrap_or(base));
                None
            }
        };
        (record, left.filter(|(old, new)| old.place.max(new.place) < places.size))
    }

    /// The number that the ring shall have.
    pub(super) fn mark(&self) -> u16 {
        self.identity().mark
    }

    /// The used position is about to move. The only store of a batch.
    #[inline]
    pub(super) fn moves(&self, old: Position, new: Position) {
        self.area.store_u64(POSITIONS, old.word() | new.word() << 16, Relaxed);
        compiler_fence(SeqCst);
    }

    /// The ring stands here and has its mark: from now on the line counts.
    pub(super) fn holds(&self, used: Position) {
        self.moves(used, used);
        self.area.store_u64(STATE, VALID, Relaxed);
    }

    /// A void line with a mark that the ring does not have yet. A kill from here to [`Record::holds`] leaves the front-end's base, which is right:
    /// nothing was used since.
    fn begin(&self, identity: Identity, said: Base) {
        self.area.store_u64(STATE, 0, Relaxed);
        compiler_fence(SeqCst);
        let mark = self.identity().mark.max(identity.mark).wrapping_add(1).max(1);
        for (offset, part) in PARTS.into_iter().zip(identity.parts) {
            self.area.store_u64(offset, part, Relaxed);
        }
        let word = u64::from(said.bits()) | u64::from(identity.size) << 32 | u64::from(mark) << 48;
        self.area.store_u64(SAID, word, Relaxed);
    }

    fn is_valid(&self) -> bool {
        self.area.load_u64(STATE, Relaxed) == VALID
    }

    fn identity(&self) -> Identity {
        let word = self.area.load_u64(SAID, Relaxed);
        let parts = PARTS.map(|offset| self.area.load_u64(offset, Relaxed));
        Identity { parts, size: (word >> 32) as u16, mark: (word >> 48) as u16 }
    }

    fn said(&self) -> u32 {
        self.area.load_u64(SAID, Relaxed) as u32
    }

    fn positions(&self) -> (Position, Position) {
        let word = self.area.load_u64(POSITIONS, Relaxed);
        (Position::of_word(word), Position::of_word(word >> 16))
    }
}
