//! The two halves of a port's queue.

use crate::batch::{BodyAt, RxBatch, Slot};
use crate::drops::Drops;
use crate::frame::{Body, Sent, TxFrame};
use arrayvec::ArrayVec;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use vhost::Unread;
use wire::{BATCH, DropReason, Pattern};

impl Slot {
    /// The frame as it came, to be sent; `source` has the bodies that are not in the batch.
    #[inline]
    pub fn to_send<'a>(&'a self, source: &'a dyn RxQueue) -> TxFrame<'a> {
        let body = match self.body {
            BodyAt::Nowhere => Body::default(),
            BodyAt::Slot(len) => Body::private(&self.buffer[..len as usize]),
            BodyAt::Port { at, len } => source.body(at, len),
        };
        TxFrame { head: self.head.bytes(), body, offload: self.offload, tunnel_id: 0, tun_dst: 0 }
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

    /// Receives, but shows unread frames to `forward` first, if a destination can copy them from where they are.
    /// As many as that says it sent, from the first on, do not come into the batch.
    ///
    /// # Errors
    /// As [`RxQueue::rx`].
    fn rx_unread(
        &mut self,
        batch: &mut RxBatch,
        drops: &mut Drops,
        forward: &mut dyn FnMut(Unread<'_>) -> usize,
    ) -> io::Result<()> {
        let _ = forward;
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

/// Most frames of one call of [`TxQueue::tx`]: a batch, and as many again when its frames leave twice.
pub const TX_MAX: usize = 2 * BATCH;

/// The sending half of a port, one for each worker.
pub trait TxQueue: Send {
    /// Sends the frames, [`TX_MAX`] at most, in order; each frame not sent is lost in `drops`. Returns frames and bytes sent
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
    ) -> UnreadSent {
        let _ = (frames, lengths, pattern);
        UnreadSent::default()
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
            Err(reason) => drops.lose(reason, frame),
        }
    }
    sent
}

/// Unread frames that a [`TxQueue`] sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnreadSent {
    /// The first ones.
    pub sent: Sent,
    /// There was no room for the next, whatever it is.
    pub is_full: bool,
}
