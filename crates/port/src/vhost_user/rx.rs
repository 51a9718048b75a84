//! From a guest's transmit queue.
//!
//! The head is copied to private memory before anyone looks at it; the body stays in the guest's memory until tx copies it once. Where nobody looks at any
//! frame, or its bytes are compared while they are copied, neither comes here. The slot is locked from `rx` until `release`, so the session cannot stop the ring in between: what it takes away has been given back.

use super::announce;
use super::header;
use crate::batch::{BODY_MAX, BodyAt, Lengths, RxBatch, Slot as RxSlot};
use crate::drops::{Drops, Lost};
use crate::frame::Body;
use crate::queue::RxQueue;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use vhost::{Attachment, Chains, Contents, Fault, Features, NetHeader, Slot, SlotKeeper, Unread};
use wire::{DropReason, HEAD_MAX, Offload};

/// Sends frames from where they are; how many.
type Forward<'o> = dyn FnMut(Unread<'_>) -> usize + 'o;

/// Receives from one queue pair.
pub(super) struct VhostRx {
    slot: Arc<Slot>,
    /// Where announcements come from; the first pair makes them frames.
    announcements: Option<Arc<Attachment>>,
    /// The round's frames.
    chains: Chains,
    /// The slot's lock, kept while there are any.
    keeper: SlotKeeper,
}

impl VhostRx {
    pub(super) fn new(attachment: &Arc<Attachment>, pair: u16) -> Self {
        let slot = attachment.slots().nth(2 * usize::from(pair) + 1);
        let slot = Arc::clone(slot.expect("a slot for each ring of each pair"));
        let announcements = (pair == 0).then(|| attachment.clone());
        Self { announcements, ..Self::of(slot) }
    }

    /// Serves the ring in a slot.
    pub(super) fn of(slot: Arc<Slot>) -> Self {
        let keeper = slot.keeper();
        Self { slot, announcements: None, chains: Chains::default(), keeper }
    }

    /// An address that the front-end wants announced, as a frame.
    fn announce(&self, batch: &mut RxBatch) -> bool {
        let Some(mac) = self.announcements.as_ref().and_then(|of| of.take_announcement()) else {
            return false;
        };
        let Some(slot) = batch.free().first_mut() else { return false };
        announce::fill(slot, mac);
        batch.advance(1);
        true
    }

    /// Takes a round's frames, or stops the ring.
    fn receive(&mut self, batch: &mut RxBatch, drops: &mut Drops, forward: &mut Forward<'_>) {
        self.release();
        if self.announce(batch) {
            return;
        }
        let contents = self.keeper.keep();
        match take(contents, &mut self.chains, batch, drops, forward) {
            Ok(0) => self.release(),
            Ok(_) => {}
            Err(fault) => {
                self.chains.forget();
                contents.fail(fault);
                self.keeper.release();
            }
        }
    }
}

impl RxQueue for VhostRx {
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        let before = batch.frames().len();
        self.receive(batch, drops, &mut |_| 0);
        Ok(batch.frames().len() - before)
    }

    fn rx_unread(
        &mut self,
        batch: &mut RxBatch,
        drops: &mut Drops,
        forward: &mut Forward<'_>,
    ) -> io::Result<()> {
        self.receive(batch, drops, forward);
        Ok(())
    }

    fn body(&self, at: u64, _: u32) -> Body<'_> {
        Body::guest(self.chains.slices(at as usize))
    }

    fn release(&mut self) {
        let Some(contents) = self.keeper.kept() else { return };
        if let Some(ring) = contents.ring() {
            ring.give_back();
        }
        self.keeper.release();
    }

    fn arm(&mut self) -> bool {
        self.release();
        // Nothing of the guest's is kept while it sleeps.
        self.chains.forget();
        let quiet = self.slot.arm();
        quiet && !self.announcements.as_ref().is_some_and(|of| of.has_announcement())
    }

    fn has_frames(&mut self) -> Option<bool> {
        match self.announcements.as_ref().is_some_and(|of| of.has_announcement()) {
            true => Some(true),
            false => self.slot.has_frames(),
        }
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.slot.readiness()
    }
}

/// Takes a round's frames from the ring in a slot, the first ones forward, as many as are sent from where they are, and the others to the batch. Returns how many
/// that is, of those whose buffers must be kept.
///
/// # Errors
/// The ring must stop.
fn take(
    contents: &mut Contents,
    chains: &mut Chains,
    batch: &mut RxBatch,
    drops: &mut Drops,
    forward: &mut Forward<'_>,
) -> Result<usize, Fault> {
    let Some(ring) = contents.ring() else {
        drops.lose(DropReason::PortDown, Lost::Elsewhere(contents.discard()));
        return Ok(0);
    };
    let slots = batch.free();
    let taken = ring.take(slots.len(), chains)?;
    if taken == 0 {
        return Ok(0);
    }
    let features = ring.features();
    let sent = forward(Unread::new(chains, features));
    let (mut index, mut kept, mut lengths) = (sent, 0, Lengths::default());
    while index < taken && kept < slots.len() {
        let counted = |slot: &mut RxSlot, index, head, body| {
            lengths.count(head + body);
            plain(slot, index, head, body);
        };
        let plain = chains.take_plain(index, features, &mut slots[kept..], area, counted);
        (index, kept) = (index + plain, kept + plain);
        let Some(slot) = slots.get_mut(kept).filter(|_| index < taken) else { break };
        match fill(slot, chains, index, features)? {
            Ok(()) => {
                lengths.count(slot.frame_len());
                kept += 1;
            }
            Err(reason) => {
                let body = Body::guest(chains.slices(index));
                drops.lose(reason, Lost::Frame { head: slot.head.bytes(), body });
            }
        }
        index += 1;
    }
    batch.advance_counted(kept, lengths);
    Ok(sent + kept)
}

/// Where a slot's head goes.
#[inline(always)]
fn area(slot: &mut RxSlot) -> &mut [u8; HEAD_MAX] {
    slot.head.area()
}

/// Makes a slot of chain `index`, of which nothing is said and whose head is in its place.
#[inline(always)]
fn plain(slot: &mut RxSlot, index: usize, head: usize, body: usize) {
    slot.head.set_len(head);
    slot.offload = Offload::default();
    slot.body = match body {
        0 => BodyAt::Nowhere,
        rest => BodyAt::Port { at: index as u64, len: rest as u32 },
    };
}

/// Makes a slot of chain `index`: header and head are copied, once.
///
/// # Errors
/// Outside: the ring must stop. Inside: only this frame is wrong.
#[inline(never)]
fn fill(
    slot: &mut RxSlot,
    chains: &mut Chains,
    index: usize,
    features: Features,
) -> Result<Result<(), DropReason>, Fault> {
    let Some((header, head)) = chains.take_head(index, features, slot.head.area()) else {
        return Err(Fault::NoHeader(chains.remaining(index) as u32));
    };
    let body = chains.remaining(index);
    plain(slot, index, head, body);
    Ok(set_offload(slot, header, head + body, features))
}

fn set_offload(
    slot: &mut RxSlot,
    header: NetHeader,
    len: usize,
    features: Features,
) -> Result<(), DropReason> {
    if len > HEAD_MAX + BODY_MAX {
        return Err(DropReason::TooBig);
    }
    slot.offload = header::decode(header, len, features)?;
    Ok(())
}
