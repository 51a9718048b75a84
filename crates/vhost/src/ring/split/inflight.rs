//! What a split ring notes in the inflight region (vhost-user protocol, "Inflight I/O tracking", split virtqueue).
//!
//! Header: `features` u64 0, `version` u16 8, `desc_num` u16 10, `last_batch_head` u16 12, `used_idx` u16 14. Then for each descriptor, 16 bytes:
//! `inflight` u8 0, `next` u16 6, `counter` u64 8.

use crate::fault::Fault;
use crate::inflight::{InflightRing, Layout};
use crate::ring::Used;
use crate::sys::Area;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{Ordering, compiler_fence};

const VERSION: usize = 8;
const SIZE: usize = 10;
const LAST_BATCH_HEAD: usize = 12;
const USED_INDEX: usize = 14;
const HEADER: usize = 16;
const ENTRY: usize = 16;
const NEXT: usize = 6;
const COUNTER: usize = 8;

/// The version of this layout.
const VERSION_1: u16 = 1;

/// One ring's notes.
pub(super) struct Inflight {
    area: Area,
    size: u16,
    /// Goes up with every buffer taken: their order.
    counter: u64,
}

impl Inflight {
    /// # Errors
    /// The region is another kind of ring's, or another size's.
    pub(super) fn new(ring: InflightRing, size: u16) -> Result<Self, Fault> {
        let InflightRing { area, layout, size: entries } = ring;
        if layout != Layout::Split || entries < size {
            return Err(Fault::Inflight("it was made for another kind or size of ring"));
        }
        if area.load_u16(VERSION, Relaxed) == 0 {
            area.store_u16(VERSION, VERSION_1, Relaxed);
            area.store_u16(SIZE, entries, Relaxed);
        }
        if area.load_u16(VERSION, Relaxed) != VERSION_1 {
            return Err(Fault::Inflight("its version is unknown"));
        }
        Ok(Self { area, size, counter: 1 })
    }

    fn entry(head: u16) -> usize {
        HEADER + ENTRY * usize::from(head)
    }

    /// The buffers that were taken and not given back, in order of taking.
    ///
    /// # Errors
    /// Its list leaves the ring.
    pub(super) fn recover(&self, used_index: u16) -> Result<Vec<u16>, Fault> {
        self.finish_last_batch(used_index)?;
        let noted = |&head: &u16| self.area.load_u8(Self::entry(head), Relaxed) != 0;
        let mut heads: Vec<_> = (0..self.size).filter(noted).collect();
        heads.sort_by_key(|&head| self.area.load_u64(Self::entry(head) + COUNTER, Relaxed));
        Ok(heads)
    }

    /// The process died between the index and the notes: what the index says was given back, was.
    fn finish_last_batch(&self, used_index: u16) -> Result<(), Fault> {
        let count = used_index.wrapping_sub(self.area.load_u16(USED_INDEX, Relaxed));
        let mut head = self.area.load_u16(LAST_BATCH_HEAD, Relaxed);
        for _ in 0..count.min(self.size) {
            if head >= self.size {
                return Err(Fault::Inflight("its last batch names a descriptor that is not there"));
            }
            self.area.store_u8(Self::entry(head), 0, Relaxed);
            head = self.area.load_u16(Self::entry(head) + NEXT, Relaxed);
        }
        self.area.store_u16(USED_INDEX, used_index, Release);
        Ok(())
    }

    /// A buffer is taken.
    pub(super) fn take(&mut self, head: u16) {
        let at = Self::entry(head);
        self.area.store_u64(at + COUNTER, self.counter, Relaxed);
        self.area.store_u8(at, 1, Release);
        self.counter += 1;
    }

    /// The used index is about to move past these: links them, so that the notes can be finished if we die.
    pub(super) fn begin_giving_back(&mut self, used: &[Used]) {
        for one in used {
            let last = self.area.load_u16(LAST_BATCH_HEAD, Relaxed);
            self.area.store_u16(Self::entry(one.id) + NEXT, last, Relaxed);
            self.area.store_u16(LAST_BATCH_HEAD, one.id, Release);
        }
    }

    /// It has moved.
    pub(super) fn end_giving_back(&mut self, used: &[Used], used_index: u16) {
        // A process killed at any instruction leaves its stores in program order: only the compiler must not change it.
        compiler_fence(Ordering::SeqCst);
        for one in used {
            self.area.store_u8(Self::entry(one.id), 0, Relaxed);
        }
        self.area.store_u16(USED_INDEX, used_index, Release);
    }
}
