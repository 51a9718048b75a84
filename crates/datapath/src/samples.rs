//! Frames that workers show to whoever looks for heavy flows: one in so many, its head alone.
//!
//! A worker shows frames that it read; those that go by unread from guest to guest are not among them. What nobody takes in time is left out.

use crate::id::PortAt;
use arrayvec::ArrayVec;
use crossbeam_queue::ArrayQueue;
use flow::Nanos;
use port::RxBatch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes of a head that are shown: in a tunnel's packet, up to the ports behind a tag and IPv6, with room.
pub const SAMPLE_HEAD: usize = 160;

/// Samples that may wait. Chosen: what four busy workers show in 20 ms at one in 64.
const WAITING: usize = 4096;

/// A frame that a worker saw.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Where it came in.
    pub at: PortAt,
    /// Its first bytes.
    pub head: ArrayVec<u8, SAMPLE_HEAD>,
    /// Bytes of all of it.
    pub frame_len: u32,
    /// How many frames it stands for.
    pub frames: u32,
    /// When it came.
    pub when: Nanos,
}

/// What workers show, one for all of them.
#[derive(Debug)]
pub struct Samples {
    ring: ArrayQueue<Sample>,
    every: AtomicU32,
}

impl Samples {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { ring: ArrayQueue::new(WAITING), every: AtomicU32::new(0) })
    }

    /// From now on one frame in `every` is shown; none if that is 0.
    pub fn show_one_in(&self, every: u32) {
        self.every.store(every, Relaxed);
    }

    /// The oldest that waits.
    pub fn pop(&self) -> Option<Sample> {
        self.ring.pop()
    }
}

/// A worker's part: it counts the frames until the next one that it shows.
pub(crate) struct Sampler {
    samples: Arc<Samples>,
    left: u32,
}

impl Sampler {
    pub(crate) fn new(samples: Arc<Samples>) -> Self {
        Self { samples, left: 0 }
    }

    /// Shows those of a batch whose turn it is.
    #[inline]
    pub(crate) fn look(&mut self, at: PortAt, batch: &RxBatch, when: Nanos) {
        let every = self.samples.every.load(Relaxed);
        if every > 0 {
            self.show(every, at, batch, when);
        }
    }

    fn show(&mut self, every: u32, at: PortAt, batch: &RxBatch, when: Nanos) {
        let frames = batch.frames();
        let mut index = self.left.min(every - 1) as usize;
        while let Some(slot) = frames.get(index) {
            let bytes = slot.head.bytes();
            let head = bytes[..bytes.len().min(SAMPLE_HEAD)].iter().copied().collect();
            let frame_len = slot.frame_len() as u32;
            // A full ring has enough to go on.
            let _ = self.samples.ring.push(Sample { at, head, frame_len, frames: every, when });
            index += every as usize;
        }
        self.left = (index - frames.len()) as u32;
    }
}
