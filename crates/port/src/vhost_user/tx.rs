//! Into a guest's receive queues.

use super::header::{Header, LEN, takes};
use super::spread;
use crate::plain::{self, Room};
use crate::queue::{Drops, Sent, TxFrame, TxQueue};
use crate::vnet;
use std::sync::Arc;
use vhost::{Attachment, Fault, Features, Payload, Refused, Slot, Vring};
use wire::{DropReason, PartialChecksum, checksum};

/// Frames for which buffers are read ahead at once: as many as stay in the first cache until they are filled.
const AHEAD: usize = 32;

/// One worker's way into a guest.
pub(super) struct VhostTx {
    /// The receive queue of each pair.
    slots: Box<[Arc<Slot>]>,
    worker: usize,
    workers: usize,
    /// Those that are ours now.
    ours: Vec<usize>,
    scratch: Vec<u8>,
}

impl VhostTx {
    pub(super) fn new(attachment: &Attachment, worker: usize, workers: usize) -> Self {
        Self::of(attachment.slots().step_by(2).cloned().collect(), worker, workers)
    }

    /// Fills the rings in slots.
    pub(super) fn of(slots: Box<[Arc<Slot>]>, worker: usize, workers: usize) -> Self {
        let ours = Vec::with_capacity(slots.len());
        Self { slots, worker, workers, ours, scratch: Vec::new() }
    }
}

impl TxQueue for VhostTx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        let running = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_running());
        spread::choose(running.map(|(pair, _)| pair), (self.worker, self.workers), &mut self.ours);
        let (slots, scratch) = (&self.slots, &mut self.scratch);
        match self.ours[..] {
            [] => {
                drops.add(DropReason::PortDown, frames.len() as u64);
                Sent::default()
            }
            [pair] => send(&slots[pair], frames.iter(), scratch, drops),
            ref ours => {
                let mut sent = Sent::default();
                for (place, &pair) in ours.iter().enumerate() {
                    let its = frames
                        .iter()
                        .filter(|frame| spread::place(frame.head, ours.len()) == place);
                    sent.add(send(&slots[pair], its, scratch, drops));
                }
                sent
            }
        }
    }
}

/// Sends frames into one ring, and notifies its driver once.
fn send<'a, 'f: 'a>(
    slot: &Arc<Slot>,
    frames: impl Iterator<Item = &'a TxFrame<'f>> + Clone,
    scratch: &mut Vec<u8>,
    drops: &mut Drops,
) -> Sent {
    let mut guard = slot.lock();
    let Some(ring) = guard.ring() else {
        drops.add(DropReason::PortDown, frames.count() as u64);
        return Sent::default();
    };
    let mut run = Run { features: ring.features(), ring, scratch, fault: None };
    let (mut sent, mut lost) = (Sent::default(), 0);
    for (index, frame) in frames.clone().enumerate() {
        if index % AHEAD == 0 {
            run.reserve(frames.size_hint().0.saturating_sub(index).clamp(1, AHEAD));
        }
        match run.put(frame) {
            Ok(()) => sent.count(frame.len()),
            Err(_) if run.fault.is_some() => lost += 1,
            Err(reason) => drops.add(reason, 1),
        }
    }
    match run.fault {
        None => {
            run.ring.publish();
            sent
        }
        Some(fault) => {
            // The driver sees none of them any more.
            guard.fail(fault);
            drops.add(DropReason::PortDown, sent.frames + lost);
            Sent::default()
        }
    }
}

/// A batch on its way into one ring.
struct Run<'r> {
    ring: &'r mut Vring,
    features: Features,
    scratch: &'r mut Vec<u8>,
    /// Why the ring must stop.
    fault: Option<Fault>,
}

impl Run<'_> {
    fn reserve(&mut self, count: usize) {
        if let Err(fault) = self.ring.reserve(count) {
            self.fault = Some(fault);
        }
    }

    #[inline]
    fn put(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        if self.fault.is_some() {
            return Err(DropReason::PortDown);
        }
        if !takes(self.features, frame) {
            return plain::send(frame, usize::MAX, self);
        }
        let header = Header::encode(frame, self.features);
        let put = self.ring.put(&header.0, frame.head, frame.body.payload());
        put.map_err(|refused| self.reason(refused))
    }

    fn reason(&mut self, refused: Refused) -> DropReason {
        match refused {
            Refused::Full => DropReason::TxFull,
            Refused::TooSmall => DropReason::TooBig,
            Refused::Fault(fault) => {
                self.fault = Some(fault);
                DropReason::PortDown
            }
        }
    }
}

/// Segments, and frames that need their checksum completed, for a driver that takes nothing else.
impl Room for Run<'_> {
    fn fits(&mut self, count: usize) -> bool {
        match self.ring.has_buffers(count) {
            Ok(fits) => fits,
            Err(fault) => {
                self.fault = Some(fault);
                false
            }
        }
    }

    fn put(
        &mut self,
        len: usize,
        partial: Option<PartialChecksum>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason> {
        self.scratch.resize(len, 0);
        fill(self.scratch);
        let by_driver = self.features.contains(Features::GUEST_CSUM);
        let by_us = partial.filter(|partial| partial.is_crc() || !by_driver);
        if let Some(partial) = by_us {
            checksum::complete(self.scratch, partial).map_err(|_| DropReason::BadOffload)?;
        }
        let mut header = [0; LEN];
        header[..vnet::LEN].copy_from_slice(&vnet::plain(partial.filter(|_| by_us.is_none())));
        let put = self.ring.put(&header, self.scratch, Payload::default());
        put.map_err(|refused| self.reason(refused))
    }
}
