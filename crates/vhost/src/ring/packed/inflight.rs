//! What a packed ring notes in the inflight region (vhost-user protocol, "Inflight I/O tracking", packed virtqueue).
//!
//! Header: `features` u64 0, `version` u16 8, `desc_num` u16 10, `free_head` u16 12, `old_free_head` u16 14, `used_idx` u16 16, `old_used_idx` u16 18,
//! `used_wrap_counter` u8 20, `old_used_wrap_counter` u8 21. A copy of each descriptor taken could follow, for devices that give back out of
//! order and so write over descriptors that they still hold. We never do: everything behind the used position is intact in the ring itself,
//! but for a batch that was being given back, and that one is finished (module `record` tells how). So the position is all that has to be kept.

use super::position::Position;
use crate::fault::Fault;
use crate::inflight::{InflightRing, Layout};
use crate::sys::Area;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{Ordering, compiler_fence};

const VERSION: usize = 8;
const SIZE: usize = 10;
const USED_INDEX: usize = 16;
const OLD_USED_INDEX: usize = 18;
const USED_WRAP: usize = 20;
const OLD_USED_WRAP: usize = 21;

/// The version of this layout.
const VERSION_1: u16 = 1;

/// One ring's notes.
pub(super) struct Inflight {
    area: Area,
    /// Nothing was noted before.
    is_new: bool,
}

impl Inflight {
    /// # Errors
    /// The region is another kind of ring's, or another size's.
    pub(super) fn new(ring: InflightRing, size: u16) -> Result<Self, Fault> {
        let InflightRing { area, layout, size: entries } = ring;
        if layout != Layout::Packed || entries < size {
            return Err(Fault::Inflight("it was made for another kind or size of ring"));
        }
        match area.load_u16(VERSION, Relaxed) {
            0 => {
                area.store_u16(SIZE, entries, Relaxed);
                area.store_u16(VERSION, VERSION_1, Release);
                Ok(Self { area, is_new: true })
            }
            VERSION_1 => Ok(Self { area, is_new: false }),
            _ => Err(Fault::Inflight("its version is unknown")),
        }
    }

    /// From where to where the process before us last moved the used position; `None` when there was none. Twice the same when it had finished.
    ///
    /// # Errors
    /// The place lies outside the ring.
    pub(super) fn left(&self, size: u16) -> Result<Option<(Position, Position)>, Fault> {
        if self.is_new {
            return Ok(None);
        }
        let (old, new) = (self.get(OLD_USED_INDEX, OLD_USED_WRAP), self.get(USED_INDEX, USED_WRAP));
        if old.place >= size || new.place >= size {
            return Err(Fault::Inflight("its used index lies outside the ring"));
        }
        Ok(Some((old, new)))
    }

    fn get(&self, index: usize, wrap: usize) -> Position {
        Position {
            place: self.area.load_u16(index, Relaxed),
            wrap: self.area.load_u8(wrap, Relaxed) != 0,
        }
    }

    fn set(&self, index: usize, wrap: usize, to: Position) {
        self.area.store_u16(index, to.place, Relaxed);
        self.area.store_u8(wrap, to.wrap.into(), Release);
    }

    /// The used position is about to move to `end`.
    pub(super) fn begin_giving_back(&mut self, end: Position) {
        self.set(USED_INDEX, USED_WRAP, end);
        // A process killed at any instruction leaves its stores in program order: only the compiler must not change it.
        compiler_fence(Ordering::SeqCst);
    }

    /// It has moved.
    pub(super) fn end_giving_back(&mut self, end: Position) {
        compiler_fence(Ordering::SeqCst);
        self.set(OLD_USED_INDEX, OLD_USED_WRAP, end);
    }
}
