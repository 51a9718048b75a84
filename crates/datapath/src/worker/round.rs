//! A round: frames of one source, or a packet-out, through a pass.

use super::Worker;
use super::handed::pass_through;
use crate::clock::Clock;
use crate::command::Injected;
use crate::counters::WorkerBlock;
use crate::engine::Engine;
use crate::frames::Frames;
use crate::local::PortIx;
use crate::pass::{Done, Work};
use crate::queues::Queue;
use crate::steering::{Arrival, Handover};
use crate::touch::{QueueIx, Touch};
use crate::unseen::Onward;
use flow::Nanos;
use port::{BODY_MAX, RxBatch, Unread};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use wire::{DropReason, HEAD_MAX, Offload};

/// Timestamps within a round.
pub(super) struct Marks {
    pub(super) begin: u64,
    pub(super) received: u64,
    pub(super) decided: u64,
    pub(super) released: u64,
    /// Of the time until it had received: sending what was not read.
    pub(super) onward: u64,
    /// Of the time until it had decided: sending the others.
    pub(super) tx_cycles: u64,
}

impl Marks {
    /// Counts the round, which received so many frames.
    pub(super) fn count(&self, frames: usize, counters: &WorkerBlock) {
        let decide = self.decided.wrapping_sub(self.received);
        let rx = self
            .received
            .wrapping_sub(self.begin)
            .wrapping_sub(self.onward)
            .wrapping_add(self.released.wrapping_sub(self.decided));
        counters.frames.add(frames as u64);
        counters.batches.add(1);
        counters.cycles_rx.add(rx);
        counters.cycles_pipeline.add(decide.saturating_sub(self.tx_cycles));
        counters.cycles_tx.add(self.onward + self.tx_cycles);
    }
}

impl<C: Clock> Worker<C> {
    /// Receives from a queue and takes what came to its destinations; returns how many frames came, and the count at its end. `begin` is the count at its beginning, which is `now`.
    ///
    /// # Errors
    /// The source is gone or broken.
    pub(super) fn round(
        &mut self,
        ix: QueueIx,
        (begin, now): (u64, Nanos),
    ) -> io::Result<(usize, u64)> {
        let Some(queue) = self.queues.get_mut(ix) else { return Ok((0, begin)) };
        let (engine, clock) = (&mut self.engine, &self.clock);
        self.serving = Some(ix);
        engine.touching.set(Touch::Rx(ix));
        self.batch.clear();
        let steered = self.handover.as_ref().is_some_and(|by| by.steers(queue.switch));
        let Queue { rx, shared, switch, .. } = queue;
        let mut onward = Onward::default();
        let mut send = |frames: Unread<'_>| {
            onward = engine.send_unread(now, frames, (shared, *switch));
            onward.sent
        };
        let outcome = match steered {
            false => rx.rx_onward(&mut self.batch, &mut self.left_out, &mut send),
            true => rx.rx(&mut self.batch, &mut self.left_out).map(drop),
        };
        let counters = &shared.counters[engine.number];
        counters.rx_drops.take(&mut self.left_out);
        let batch = self.batch.frames().len();
        let count = onward.sent + batch;
        // Where all was sent on, no more was received.
        let received = if count > 0 && batch == 0 { onward.end } else { clock.cycles() };
        let mut end = received;
        if count > 0 {
            let (decided, released) = (received, 0);
            let mut marks =
                Marks { begin, received, decided, released, onward: onward.cycles, tx_cycles: 0 };
            if batch > 0 {
                engine.touching.set(Touch::Pipeline(ix));
                let Done { at, tx_cycles } =
                    decide(engine, &mut self.batch, queue, now, self.handover.as_deref_mut());
                (marks.decided, marks.tx_cycles) = (at.max(received), tx_cycles);
                self.mailbox.counters.cache.add(engine.cache.take_counts());
                engine.touching.set(Touch::Rx(ix));
            }
            queue.rx.release();
            marks.released = clock.cycles();
            end = marks.released;
            marks.count(count, &self.mailbox.counters);
        } else {
            self.mailbox.counters.empty_polls.add(1);
            self.mailbox.counters.cycles_polling.add(received.wrapping_sub(begin));
        }
        engine.touching.set(Touch::Nothing);
        self.serving = None;
        outcome.map(|()| (count, end))
    }

    /// Sends a controller's frame by its actions.
    pub(super) fn packet_out(&mut self, injected: &Injected) {
        let now = self.clock.now();
        let Some(switch) = self.engine.world.switch(injected.ix) else { return };
        let counters = switch.counters(self.engine.number);
        counters.packet_outs.add(1);
        if injected.frame.len() > HEAD_MAX + BODY_MAX {
            return counters.drops.add(DropReason::TooBig, 1);
        }
        fill(&mut self.batch, &injected.frame, injected.offload);
        let mut frames = Frames::default();
        frames.take(&mut self.batch, None, injected.in_port);
        counters.drops.add(DropReason::Runt, frames.runts);
        self.engine.touching.set(Touch::PacketOut);
        let work = Work::Actions(&injected.actions);
        self.engine.pass(now, &mut frames, injected.ix, work);
        self.engine.touching.set(Touch::Nothing);
    }

    /// Gives a source its buffers back after a panic in the midst of its round.
    pub(super) fn release_after_panic(&mut self) {
        let Some(ix) = self.unreleased.take() else { return };
        self.serving = Some(ix);
        self.engine.touching.set(Touch::Rx(ix));
        if let Some(queue) = self.queues.get_mut(ix) {
            queue.rx.release();
        }
        self.engine.touching.set(Touch::Nothing);
        self.serving = None;
    }
}

/// Takes a received batch to its destinations.
fn decide<C: Clock>(
    engine: &mut Engine<C>,
    batch: &mut RxBatch,
    queue: &Queue,
    now: Nanos,
    handover: Option<&mut Handover>,
) -> Done {
    let handover = handover.filter(|handover| handover.steers(queue.switch));
    if handover.is_none()
        && let Some(done) = engine.send_unseen(now, batch, queue)
    {
        return done;
    }
    let (done, whole) = decide_seen(engine, batch, queue, now, handover);
    whole.map_or(done, |to| engine.send_whole(to, batch, queue))
}

/// The same by a pass. With a port: all of it leaves there as it came, and nothing was sent.
fn decide_seen<C: Clock>(
    engine: &mut Engine<C>,
    batch: &mut RxBatch,
    queue: &Queue,
    now: Nanos,
    handover: Option<&mut Handover>,
) -> (Done, Option<PortIx>) {
    let counters = &queue.shared.counters[engine.number];
    let mut frames = Frames::default();
    frames.take(batch, Some(&*queue.rx), queue.shared.at.port);
    if frames.runts > 0 {
        counters.rx_drops.add(DropReason::Runt, frames.runts);
    }
    if !queue.shared.up.load(Relaxed) {
        counters.rx_drops.add(DropReason::PortDown, frames.received.frames);
        return (Done::default(), None);
    }
    counters.rx.add(frames.received);
    match handover {
        Some(handover) => (decide_steered(engine, &mut frames, queue, now, handover), None),
        // Its places must be those of the packets.
        None if frames.runts == 0 => engine.pass_whole(now, &mut frames, queue.switch),
        None => (engine.pass(now, &mut frames, queue.switch, Work::Tables), None),
    }
}

/// Takes to their destinations the frames that are this worker's to process, and hands over the others.
#[inline(never)]
fn decide_steered<C: Clock>(
    engine: &mut Engine<C>,
    frames: &mut Frames<'_>,
    queue: &Queue,
    now: Nanos,
    handover: &mut Handover,
) -> Done {
    let Some(switch) = engine.world.switch(queue.switch) else { return Done::default() };
    let drops = &switch.counters(engine.number).drops;
    let in_port = queue.shared.at.port;
    handover.sort(frames, Arrival { ix: queue.switch, in_port, now, drops });
    if frames.packets.is_empty() {
        return Done::default();
    }
    let done = engine.pass(now, frames, queue.switch, Work::Tables);
    handover.passed();
    pass_through(engine, handover);
    done
}

/// Makes `frame` the batch's only frame.
fn fill(batch: &mut RxBatch, frame: &[u8], offload: Offload) {
    batch.clear();
    let Some(slot) = batch.free().first_mut() else { return };
    let (head, body) = frame.split_at(frame.len().min(HEAD_MAX));
    slot.head.area()[..head.len()].copy_from_slice(head);
    slot.buffer[..body.len()].copy_from_slice(body);
    slot.offload = offload;
    slot.filled(frame.len());
    batch.advance(1);
}
