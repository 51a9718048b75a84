//! The two halves of a port's queue, and a frame on its way out.

use crate::batch::{BATCH, RxBatch, Slot};
use arrayvec::ArrayVec;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use vhost::{GuestSlice, Payload, Unread};
use wire::{DropReason, Offload, Pattern};

/// The bytes of a frame after its head, in their source buffer: private, or segments of a guest's memory, which change while we look.
///
/// Either way they can only be copied out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Body<'a> {
    payload: Payload<'a>,
}

impl<'a> Body<'a> {
    /// A body in memory that no one else writes.
    #[inline]
    pub fn private(bytes: &'a [u8]) -> Self {
        Self { payload: Payload::Private(bytes) }
    }

    /// A body in a guest's memory.
    #[inline]
    pub fn guest(segments: &'a [GuestSlice<'a>]) -> Self {
        Self { payload: Payload::Guest(segments) }
    }

    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    /// Whether the frame ends inside its head.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Copies `into.len()` bytes from offset `at` on.
    ///
    /// # Panics
    /// When the range lies outside: lengths are ours, checked at rx.
    pub fn copy_to(&self, at: usize, into: &mut [u8]) {
        match self.payload {
            Payload::Private(bytes) => into.copy_from_slice(&bytes[at..at + into.len()]),
            Payload::Guest(segments) => copy_segments(segments, at, into),
        }
    }

    /// Appends all bytes.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        let at = bytes.len();
        bytes.resize(at + self.len(), 0);
        self.copy_to(0, &mut bytes[at..]);
    }

    /// The bytes where they lie, for a destination that copies them itself.
    #[inline]
    pub(crate) fn payload(&self) -> Payload<'a> {
        self.payload
    }
}

fn copy_segments(segments: &[GuestSlice<'_>], mut at: usize, mut into: &mut [u8]) {
    for segment in segments {
        if into.is_empty() {
            return;
        }
        let (_, from) = segment.split_at(at.min(segment.len()));
        at -= segment.len() - from.len();
        let (part, rest) = into.split_at_mut(from.len().min(into.len()));
        from.read(part);
        into = rest;
    }
    assert!(into.is_empty(), "copy past the end of a body");
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
    /// The tunnel's key that rules chose; only for a [`TxQueue::wants_tunnel_ids`], else 0.
    pub tunnel_id: u32,
    /// Number of the tunnel's end that rules chose ([`Ends`](crate::Ends)), likewise.
    pub tun_dst: u16,
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
pub struct Drops {
    counts: [u64; DropReason::ALL.len()],
    /// Something was counted: a look at one word tells a batch without losses from any other.
    any: bool,
}

impl Default for Drops {
    fn default() -> Self {
        Self { counts: [0; DropReason::ALL.len()], any: false }
    }
}

impl Drops {
    /// Counts `count` frames lost.
    pub fn add(&mut self, reason: DropReason, count: u64) {
        self.counts[reason as usize] += count;
        self.any |= count > 0;
    }

    /// Whether no frame was lost.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Reasons with frames, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL
            .iter()
            .map(|&reason| (reason, self.counts[reason as usize]))
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

    /// The same, but a source whose frames lie in memory that a destination can copy from shows them to `onward` first, where they are. As many as
    /// that says it sent, from the first on, do not come into the batch.
    ///
    /// # Errors
    /// As [`RxQueue::rx`].
    fn rx_onward(
        &mut self,
        batch: &mut RxBatch,
        drops: &mut Drops,
        onward: &mut dyn FnMut(Unread<'_>) -> usize,
    ) -> io::Result<()> {
        let _ = onward;
        self.rx(batch, drops).map(drop)
    }

    /// The bytes that [`crate::BodyAt::Port`] names; only ports that hand out such addresses implement it.
    fn body(&self, at: u64, len: u32) -> Body<'_> {
        let _ = (at, len);
        Body::default()
    }

    /// Returns the buffers of the last round to the source.
    fn release(&mut self) {}

    /// Before the kernel watches the queue instead of the worker: asks the source to notify. False when frames came meanwhile, or when
    /// it cannot: the worker goes on polling.
    fn arm(&mut self) -> bool {
        true
    }

    /// Whether a frame waits, of a source that can tell without a system call; else `None`.
    fn has_frames(&mut self) -> Option<bool> {
        None
    }

    /// Readable when a frame waits: what a sleeping worker waits for.
    fn readiness(&self) -> BorrowedFd<'_>;
}

/// The sending half of a port, one for each worker.
pub trait TxQueue: Send {
    /// Sends the frames, in order; each frame not sent is counted in `drops`. Returns frames and bytes sent
    /// (a large frame that is segmented counts once, with its own length).
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent;

    /// Sends received frames as they are, likewise; `source` is where they came from. No tunnel ids are told.
    fn tx_received(&mut self, slots: &[Slot], source: &dyn RxQueue, drops: &mut Drops) -> Sent {
        let frames: ArrayVec<_, BATCH> = slots.iter().map(|slot| slot.to_send(source)).collect();
        self.tx(&frames, drops)
    }

    /// Sends frames of these lengths from where their source has them, as they are: the first ones, up to one that it cannot send so, or that is not like the pattern's, if there is one: what is compared is
    /// what leaves. It drops none; what is left comes by the other ways.
    fn tx_unread(
        &mut self,
        frames: Unread<'_>,
        lengths: &RangeInclusive<usize>,
        pattern: Option<&Pattern>,
    ) -> Straight {
        let _ = (frames, lengths, pattern);
        Straight::default()
    }

    /// Whether [`TxFrame::tunnel_id`] and [`TxFrame::tun_dst`] shall be told: always the same answer.
    fn wants_tunnel_ids(&self) -> bool {
        false
    }
}

/// Sends frames one by one; each that was not sent is counted in `drops`.
pub(crate) fn send_each<'a>(
    frames: &[TxFrame<'a>],
    drops: &mut Drops,
    mut send: impl FnMut(&TxFrame<'a>) -> Result<(), DropReason>,
) -> Sent {
    let mut sent = Sent::default();
    for frame in frames {
        match send(frame) {
            Ok(()) => sent.count(frame.len()),
            Err(reason) => drops.add(reason, 1),
        }
    }
    sent
}

/// What a [`TxQueue`] got rid of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Bytes, Ethernet header included, no FCS.
    pub bytes: u64,
}

/// What a [`TxQueue`] sent of frames that were not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Straight {
    /// The first ones.
    pub sent: Sent,
    /// There was no room for the next, whatever it is.
    pub is_full: bool,
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
