//! Into a guest's receive queues.

use super::header;
use super::spread;
use crate::batch::Slot as RxSlot;
use crate::drops::Drops;
use crate::frame::{Sent, TxFrame};
use crate::plain::{self, Room};
use crate::queue::{RxQueue, TX_MAX, TxQueue, UnreadSent};
use crate::vnet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use vhost::{
    Attachment, Fault, Features, Frame, NetHeader, Outline, Payload, Put, Refused, Slot, Unread,
    Vring,
};
use wire::{DropReason, Offload, Pattern, checksum};

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
        self.send_all(frames.len(), &frames, drops)
    }

    fn tx_received(&mut self, slots: &[RxSlot], source: &dyn RxQueue, drops: &mut Drops) -> Sent {
        self.send_all(slots.len(), &Received { slots, source }, drops)
    }

    fn tx_unread(
        &mut self,
        frames: Unread<'_>,
        lengths: &RangeInclusive<usize>,
        pattern: Option<&Pattern>,
    ) -> UnreadSent {
        self.choose();
        let mut done = UnreadSent::default();
        // With several, a frame's flow says which.
        let &[pair] = &self.ours[..] else { return done };
        let mut contents = self.slots[pair].lock();
        let Some(ring) = contents.ring() else { return done };
        if let Err(fault) = put_unread(ring, (frames, lengths, pattern), &mut done) {
            contents.fail(fault);
        }
        done
    }
}

/// Fills one ring with the first of these frames, and notifies its driver once.
///
/// # Errors
/// The driver broke the rules, before it saw any of them or after all that were sent.
fn put_unread(
    ring: &mut Vring,
    (frames, lengths, pattern): (Unread<'_>, &RangeInclusive<usize>, Option<&Pattern>),
    done: &mut UnreadSent,
) -> Result<(), Fault> {
    let count = frames.len();
    ring.reserve(count)?;
    let Put { frames, bytes } = match pattern {
        None => ring.put_unread(frames, lengths),
        Some(pattern) => ring.put_alike(frames, lengths, pattern),
    };
    let sent = Sent { frames: frames as u64, bytes };
    *done = UnreadSent { sent, is_full: frames < count && !ring.has_room() };
    if frames == 0 {
        return Ok(());
    }
    // As in `send`.
    let next = ring.reserve(count);
    ring.publish();
    next
}

/// Frames, by their places in a batch.
trait Batch {
    /// What a driver of these features must know of a frame that it takes as it is; `None` if it does not.
    fn outline(&self, place: usize, features: Features) -> Option<Outline<'_>>;
    fn frame(&self, place: usize) -> TxFrame<'_>;
    fn body(&self, place: usize) -> Payload<'_>;
}

impl Batch for &[TxFrame<'_>] {
    #[inline(always)] // a frame is never put together in memory, to be read as it is still being written
    fn outline(&self, place: usize, features: Features) -> Option<Outline<'_>> {
        let TxFrame { head, body, .. } = self[place];
        outline(&self[place].offload, head, body.len(), || header::encode(&self[place], features))
    }

    fn frame(&self, place: usize) -> TxFrame<'_> {
        self[place]
    }

    #[inline]
    fn body(&self, place: usize) -> Payload<'_> {
        self[place].body.payload()
    }
}

/// A batch as it was received.
struct Received<'f> {
    slots: &'f [RxSlot],
    source: &'f dyn RxQueue,
}

impl Batch for Received<'_> {
    #[inline(always)] // likewise
    fn outline(&self, place: usize, features: Features) -> Option<Outline<'_>> {
        let slot = &self.slots[place];
        let (head, body) = (slot.head.bytes(), slot.body.len());
        outline(&slot.offload, head, body, || header::encode(&self.frame(place), features))
    }

    #[inline(never)]
    fn frame(&self, place: usize) -> TxFrame<'_> {
        self.slots[place].to_send(self.source)
    }

    #[inline]
    fn body(&self, place: usize) -> Payload<'_> {
        self.slots[place].to_send(self.source).body.payload()
    }
}

/// The outline of a frame with this state: of most there is nothing to encode.
#[inline(always)] // as for a batch
fn outline<'f>(
    offload: &Offload,
    head: &'f [u8],
    body: usize,
    encode: impl FnOnce() -> Option<NetHeader>,
) -> Option<Outline<'f>> {
    let header = if offload.is_none() { NetHeader::default() } else { encode()? };
    Some(Outline { header, head, body })
}

impl VhostTx {
    /// Finds the pairs that are ours now.
    #[inline]
    fn choose(&mut self) {
        if let [only] = &*self.slots {
            self.ours.clear();
            return self.ours.extend(only.is_running().then_some(0));
        }
        let running = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_running());
        spread::choose(running.map(|(pair, _)| pair), (self.worker, self.workers), &mut self.ours);
    }

    /// Sends the first `count` frames of a batch.
    fn send_all(&mut self, count: usize, batch: &impl Batch, drops: &mut Drops) -> Sent {
        self.choose();
        let (slots, scratch) = (&self.slots, &mut self.scratch);
        match self.ours[..] {
            [] => {
                lose_all(0..count, batch, drops);
                Sent::default()
            }
            [pair] => send(&slots[pair], (0..count, batch), scratch, drops),
            ref ours => {
                let (places, mut sent) = (&mut self.places, Sent::default());
                places.clear();
                places.extend((0..count).map(|at| spread::place(batch.frame(at).head, ours.len())));
                for (place, &pair) in ours.iter().enumerate() {
                    let its = (0..count).filter(|&at| places[at] == place);
                    sent.add(send(&slots[pair], (its, batch), scratch, drops));
                }
                sent
            }
        }
    }
}

/// Sends the frames of these places into one ring, and notifies its driver once.
fn send(
    slot: &Arc<Slot>,
    (mut places, batch): (impl Iterator<Item = usize> + Clone, &impl Batch),
    scratch: &mut Vec<u8>,
    drops: &mut Drops,
) -> Sent {
    let mut contents = slot.lock();
    let Some(ring) = contents.ring() else {
        lose_all(places, batch, drops);
        return Sent::default();
    };
    let mut run = Run { features: ring.features(), ring, scratch, fault: None };
    let (all, mut refused, mut sent) = (places.clone(), 0_u128, Sent::default());
    let count = places.size_hint().1.unwrap_or(1);
    run.reserve(count);
    while run.fault.is_none() {
        sent.add(run.put_run(&mut places, batch));
        let Some(place) = places.next() else { break };
        let frame = batch.frame(place);
        match run.put(&frame) {
            Ok(()) => sent.count(frame.len()),
            Err(_) if run.fault.is_some() => {}
            Err(reason) => {
                refused |= 1 << place;
                drops.lose(reason, &frame);
            }
        }
    }
    match run.fault {
        None => {
            // The next batch is most often as large as this one, and its buffers are there by the time it comes. Before the driver is told of
            // this one: while we read, the stores to its memory get where they are going.
            run.reserve(count);
            run.ring.publish();
            if let Some(fault) = run.fault {
                contents.fail(fault);
            }
            sent
        }
        Some(fault) => {
            // The driver sees none of them any more.
            contents.fail(fault);
            let was_refused = |place: usize| refused >> place & 1 == 1;
            lose_all(all.filter(|&place| !was_refused(place)), batch, drops);
            Sent::default()
        }
    }
}

const _: () = assert!(TX_MAX <= u128::BITS as usize); // a bit for each frame of a call

/// Loses the frames of these places: their ring does not run.
#[cold]
fn lose_all(places: impl Iterator<Item = usize>, batch: &impl Batch, drops: &mut Drops) {
    places.for_each(|place| drops.lose(DropReason::PortDown, &batch.frame(place)));
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
    fn put_run(
        &mut self,
        places: &mut (impl Iterator<Item = usize> + Clone),
        batch: &impl Batch,
    ) -> Sent {
        let outlines = AsTheyAre { places: places.clone(), batch, features: self.features };
        let bodies = places.clone().map(|place| batch.body(place));
        let Put { frames: count, bytes } = self.ring.put_run(outlines, bodies);
        if count > 0 {
            places.nth(count - 1);
        }
        Sent { frames: count as u64, bytes }
    }

    /// Sends a frame in another form, or into more than one buffer.
    fn put(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        let encode = || header::encode(frame, self.features);
        match outline(&frame.offload, frame.head, 0, encode) {
            Some(Outline { header, head, .. }) => {
                let frame = Frame { header, head, body: frame.body.payload() };
                self.ring.put(frame).map_err(|refused| self.reason(refused))
            }
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

/// The frames of these places, up to the first that a driver of these features does not take as it is.
struct AsTheyAre<'f, I, B> {
    places: I,
    batch: &'f B,
    features: Features,
}

impl<'f, I: Iterator<Item = usize>, B: Batch> Iterator for AsTheyAre<'f, I, B> {
    type Item = Outline<'f>;

    #[inline(always)] // as for a batch
    fn next(&mut self) -> Option<Outline<'f>> {
        self.batch.outline(self.places.next()?, self.features)
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
        Offload { checksum: partial, .. }: Offload,
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
