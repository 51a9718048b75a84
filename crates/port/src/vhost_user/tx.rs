//! Into a guest's receive queues.

use super::header;
use super::spread;
use crate::plain::{self, Room};
use crate::queue::{Drops, Sent, TxFrame, TxQueue};
use crate::vnet;
use std::sync::Arc;
use vhost::{Attachment, Fault, Features, Frame, NetHeader, Put, Refused, Slot, Vring};
use wire::{DropReason, PartialChecksum, checksum};

/// One worker's way into a guest.
pub(super) struct VhostTx {
    /// The receive queue of each pair.
    slots: Box<[Arc<Slot>]>,
    worker: usize,
    workers: usize,
    /// Those that are ours now.
    ours: Vec<usize>,
    /// Which of them each frame of a batch goes to.
    places: Vec<usize>,
    scratch: Vec<u8>,
}

impl VhostTx {
    pub(super) fn new(attachment: &Attachment, worker: usize, workers: usize) -> Self {
        Self::of(attachment.slots().step_by(2).cloned().collect(), worker, workers)
    }

    /// Fills the rings in slots.
    pub(super) fn of(slots: Box<[Arc<Slot>]>, worker: usize, workers: usize) -> Self {
        let ours = Vec::with_capacity(slots.len());
        Self { slots, worker, workers, ours, places: Vec::new(), scratch: Vec::new() }
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
                let (places, mut sent) = (&mut self.places, Sent::default());
                places.clear();
                places.extend(frames.iter().map(|frame| spread::place(frame.head, ours.len())));
                for (place, &pair) in ours.iter().enumerate() {
                    let its = frames.iter().zip(&*places).filter(|&(_, &its)| its == place);
                    let its = its.map(|(frame, _)| frame);
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
    mut frames: impl Iterator<Item = &'a TxFrame<'f>> + Clone,
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
    let count = frames.size_hint().1.unwrap_or(1);
    run.reserve(count);
    while run.fault.is_none() {
        sent.add(run.put_run(&mut frames));
        let Some(frame) = frames.next() else { break };
        match run.put(frame) {
            Ok(()) => sent.count(frame.len()),
            Err(_) if run.fault.is_some() => lost += 1,
            Err(reason) => drops.add(reason, 1),
        }
    }
    match run.fault {
        None => {
            // The next batch is most often as large as this one, and its buffers are there by the time it comes. Before the driver is told of
            // this one: while we read, the stores to its memory get where they are going.
            run.reserve(count);
            run.ring.publish();
            if let Some(fault) = run.fault {
                guard.fail(fault);
            }
            sent
        }
        Some(fault) => {
            // The driver sees none of them any more.
            guard.fail(fault);
            drops.add(DropReason::PortDown, sent.frames + lost + frames.count() as u64);
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

    /// Sends the first of the frames, as many as the driver takes as they are and has a buffer for.
    #[inline]
    fn put_run<'a, 'f: 'a>(
        &mut self,
        frames: &mut (impl Iterator<Item = &'a TxFrame<'f>> + Clone),
    ) -> Sent {
        let features = self.features;
        let as_it_is = frames.clone().map_while(|frame| as_it_is(frame, features));
        let Put { frames: count, bytes } = self.ring.put_run(as_it_is);
        if count > 0 {
            frames.nth(count - 1);
        }
        Sent { frames: count as u64, bytes }
    }

    /// Sends a frame in another form, or into more than one buffer.
    fn put(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        match as_it_is(frame, self.features) {
            Some(frame) => self.ring.put(frame).map_err(|refused| self.reason(refused)),
            None => plain::send(frame, usize::MAX, self),
        }
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

/// The frame for a driver that takes it as it is; `None` if this one does not.
#[inline]
fn as_it_is<'f>(frame: &TxFrame<'f>, features: Features) -> Option<Frame<'f>> {
    let header = match frame.offload.is_none() {
        true => NetHeader::default(),
        false => header::encode(frame, features)?,
    };
    Some(Frame { header, head: frame.head, body: frame.body.payload() })
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
        let header = NetHeader(vnet::plain_number(partial.filter(|_| by_us.is_none())));
        let frame = Frame { header, head: self.scratch, ..Frame::default() };
        self.ring.put(frame).map_err(|refused| self.reason(refused))
    }
}
