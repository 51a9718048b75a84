//! The two halves of a port's queue, and a frame on its way out.

use crate::batch::RxBatch;
use std::io;
use std::os::fd::BorrowedFd;
use wire::{DropReason, Offload};

/// The bytes of a frame after its head, in their source buffer.
///
/// Opaque, so that guest memory (several segments that change while we look) can become a second source without touching a user.
#[derive(Clone, Copy, Debug, Default)]
pub struct Body<'a> {
    bytes: &'a [u8],
}

impl<'a> Body<'a> {
    /// A body in memory that no one else writes.
    pub fn private(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the frame ends inside its head.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Copies `into.len()` bytes from offset `at` on; the only way to the bytes besides [`Body::slices`].
    ///
    /// # Panics
    /// When the range lies outside: lengths are ours, checked at rx.
    pub fn copy_to(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
    }

    /// The segments, for a vectored write.
    pub fn slices(&self) -> impl Iterator<Item = &'a [u8]> {
        std::iter::once(self.bytes).filter(|bytes| !bytes.is_empty())
    }
}

/// A frame to send: head and body are gathered by the destination.
#[derive(Clone, Copy)]
pub struct TxFrame<'a> {
    /// First bytes, as the actions left them.
    pub head: &'a [u8],
    /// The rest, in the source buffer.
    pub body: Body<'a>,
    /// What is still to be done to it.
    pub offload: Offload,
}

impl TxFrame<'_> {
    /// Bytes of the whole frame.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Never true of a frame; here because clippy asks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Frames lost at a port, by reason.
#[derive(Clone, Debug)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Default for Drops {
    fn default() -> Self {
        Self([0; DropReason::ALL.len()])
    }
}

impl Drops {
    /// Counts `count` frames lost.
    pub fn add(&mut self, reason: DropReason, count: u64) {
        self.0[reason as usize] += count;
    }

    /// Reasons with frames, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL
            .iter()
            .map(|&reason| (reason, self.0[reason as usize]))
            .filter(|&(_, count)| count > 0)
    }
}

/// The receiving half of a port's queue, owned by one worker.
pub trait RxQueue: Send {
    /// Receives into the batch's free slots without waiting; 0 means that nothing is there now.
    ///
    /// Frames that the source forbids are counted in `drops` and left out.
    ///
    /// # Errors
    /// The interface is gone or broken; the worker reports it and stops polling this queue.
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize>;

    /// The bytes that [`crate::BodyAt::Port`] names; only ports that hand out such addresses implement it.
    fn body(&self, at: u64, len: u32) -> Body<'_> {
        let _ = (at, len);
        Body::default()
    }

    /// Returns the buffers of the last round to the source.
    fn release(&mut self) {}

    /// Readable when a frame waits: what a sleeping worker waits for.
    fn readiness(&self) -> BorrowedFd<'_>;
}

/// The sending half of a port, one for each worker.
pub trait TxQueue: Send {
    /// Sends the frames, in order; each frame not sent is counted in `drops`. Returns frames and bytes sent
    /// (a large frame that is segmented counts once, with its own length).
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent;
}

/// What a [`TxQueue`] got rid of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Bytes, Ethernet header included, no FCS.
    pub bytes: u64,
}

impl Sent {
    /// What is left when `refused` of the frames were not sent; which ones is not told: their bytes are taken to be average.
    pub(crate) fn without(self, refused: u64) -> Self {
        let refused = refused.min(self.frames);
        let bytes = self.bytes - self.bytes * refused / self.frames.max(1);
        Self { frames: self.frames - refused, bytes }
    }

    /// Adds `more`.
    pub(crate) fn add(&mut self, more: Self) {
        self.frames += more.frames;
        self.bytes += more.bytes;
    }

    /// Adds a frame of `len` bytes.
    pub fn count(&mut self, len: usize) {
        self.frames += 1;
        self.bytes += len as u64;
    }
}
