//! A round: frames of one source, or a packet-out, through a pass.

use super::Worker;
use super::handed::pass_through;
use crate::clock::Clock;
use crate::command::Injected;
use crate::counters::WorkerBlock;
use crate::engine::Engine;
use crate::frames::Frames;
use crate::id::PortAt;
use crate::ladder::{Done, Forwarded, Round, Work};
use crate::queues::Queue;
use crate::rung::Rungs;
use crate::shared::PortShared;
use crate::steering::{Arrival, Handover};
use crate::taps::{Passings, Side, Spent, Taps};
use crate::touch::{QueueIx, Touch};
use flow::Nanos;
use port::{BODY_MAX, Body, Lost, RxBatch, RxQueue, TxFrame, Unread};
use std::io;
use wire::{DropReason, HEAD_MAX, Offload};

/// Timestamps within a round.
pub(super) struct Marks {
    pub(super) begin: u64,
    pub(super) received: u64,
    pub(super) decided: u64,
    pub(super) released: u64,
    /// Of the time until it had received: forwarding unread frames.
    pub(super) forwarding: u64,
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
            .wrapping_sub(self.forwarding)
            .wrapping_add(self.released.wrapping_sub(self.decided));
        counters.frames.add(frames as u64);
        counters.batches.add(1);
        counters.cycles_rx.add(rx);
        counters.cycles_pipeline.add(decide.saturating_sub(self.tx_cycles));
        counters.cycles_tx.add(self.forwarding + self.tx_cycles);
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
        let (from, switch) = ((&**shared, *switch), *switch);
        let rungs = if steered { Rungs::PASS } else { self.mailbox.rungs() };
        shared.at(&mut self.left_out);
        let (mut round, mut forwarded) = (None, Forwarded::default());
        let mut forward = |frames: Unread<'_>| {
            round = Round::begin(&engine.world, from, now, rungs);
            if let Some(round) = &round {
                forwarded = engine.climb_unread(round, frames);
            }
            forwarded.frames
        };
        let timed = shared.is_tapped(Side::Timed);
        let tapped = shared.is_tapped(Side::Rx) || timed;
        let seen = tapped || shared.is_tapped(Side::Outside);
        let outcome = match steered || tapped {
            false => rx.rx_unread(&mut self.batch, &mut self.left_out, &mut forward),
            true => rx.rx(&mut self.batch, &mut self.left_out).map(drop),
        };
        let counters = &shared.counters[engine.number];
        counters.rx_drops.take(&mut self.left_out);
        let batch = self.batch.frames().len();
        let count = forwarded.frames + batch;
        // Where all was forwarded, no more was received.
        let received = if count > 0 && batch == 0 { forwarded.end } else { clock.cycles() };
        let mut end = received;
        if count > 0 {
            let (decided, released) = (received, 0);
            let forwarding = forwarded.cycles;
            let mut stayed = count;
            let mut marks = Marks { begin, received, decided, released, forwarding, tx_cycles: 0 };
            let turn = self.turns.next(count, now);
            if turn.is_some_and(|turn| turn < forwarded.frames) {
                engine.taps.note_unread(shared.at, now, forwarded.frames, engine.last.get());
            }
            if batch > 0 {
                // What is seen comes after it was sent, whenever the round began.
                let now = if seen { clock.now() } else { now };
                self.sampler.look(shared.at, &self.batch, now);
                let handover = self.handover.as_deref_mut().filter(|_| steered);
                let round = round.or_else(|| Round::begin(&engine.world, from, now, rungs));
                let tables = round.as_ref().map(|round| &**round.tables);
                if tapped {
                    engine.taps.received(shared.at, now, (&self.batch, &**rx), tables);
                }
                let noted = turn.map_or_else(Passings::new, |turn| {
                    let turn = (turn, forwarded.frames);
                    Taps::begin_notes((shared.at, now), (&self.batch, &**rx), turn, tables)
                });
                if tapped || !noted.is_empty() {
                    engine.last.set(None);
                }
                let looked = match timed {
                    true => engine.look_timed(from.0, handover.is_some(), (&self.batch, &**rx)),
                    false => received,
                };
                engine.touching.set(Touch::Pipeline(ix));
                let Done { at, tx_cycles } = match (&round, handover) {
                    (None, _) => Done::default(),
                    (Some(round), None) => engine.climb(round, &mut self.batch, &**rx),
                    (Some(round), Some(handover)) => {
                        let (done, own) = steer(engine, round, (&mut self.batch, &**rx), handover);
                        stayed = own;
                        done
                    }
                };
                (marks.decided, marks.tx_cycles) = (at.max(received), tx_cycles);
                if timed {
                    engine.note_timed(&marks, looked, stayed);
                }
                self.mailbox.counters.cache.add(engine.workspace.take_counts());
                engine.touching.set(Touch::Rx(ix));
                if tapped || !noted.is_empty() {
                    let (rung, wait) = (engine.last.get(), Nanos(clock.now().since(now)));
                    if tapped {
                        engine.taps.decided(rung, wait);
                    }
                    noted.iter().for_each(|passing| engine.taps.note(passing, rung, wait));
                }
            }
            if let Some(ns) = clock.between(begin, marks.decided) {
                engine.stayed(switch, stayed as u64, ns);
            }
            rx.release();
            marks.released = clock.cycles();
            end = marks.released;
            marks.count(count, &self.mailbox.counters);
        } else {
            self.mailbox.counters.empty_polls.add(1);
            self.mailbox.counters.cycles_polling.add(received.wrapping_sub(begin));
        }
        engine.touching.set(Touch::Nothing);
        self.serving = None;
        if let Some(to) = engine.touching.take_sent() {
            self.queues.expect(to, now);
        }
        outcome.map(|()| (count, end))
    }

    /// Sends a controller's frame by its actions.
    pub(super) fn packet_out(&mut self, injected: &Injected) {
        let now = self.clock.now();
        let Some(switch) = self.engine.world.switch(injected.ix) else { return };
        let tables = switch.shared.tables.load();
        let counters = switch.counters(self.engine.number);
        counters.packet_outs.add(1);
        let at = PortAt { switch: injected.switch, port: injected.in_port };
        let drops = self.engine.scratch.verdicts.at(at);
        if injected.frame.len() > HEAD_MAX + BODY_MAX {
            drops.lose(DropReason::TooBig, Lost::bytes(&injected.frame));
            return counters.drops.take(drops);
        }
        if self.engine.taps.is_on() {
            let (head, body) = injected.frame.split_at(injected.frame.len().min(HEAD_MAX));
            let (body, offload) = (Body::private(body), injected.offload);
            let frame = TxFrame { head, body, offload, tunnel_id: 0, tun_dst: 0 };
            self.engine.taps.packet_out(at, now, &frame);
        }
        fill(&mut self.batch, &injected.frame, injected.offload);
        let mut frames = Frames::default();
        frames.take(&mut self.batch, None, injected.in_port, drops);
        counters.drops.take(drops);
        self.engine.touching.set(Touch::PacketOut);
        let work = Work::Actions(&injected.actions);
        self.engine.pass(now, &mut frames, (injected.ix, &tables), work);
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

impl<C: Clock> Engine<C> {
    /// Looks which frames of a round are timed, unless it is to be sorted first; the count then.
    #[cold]
    fn look_timed(
        &self,
        from: &PortShared,
        is_sorted: bool,
        (batch, source): (&RxBatch, &dyn RxQueue),
    ) -> u64 {
        if !is_sorted {
            let frames = batch.frames().iter().map(|slot| {
                let frame = slot.to_send(source);
                (from.at.port, frame.head, frame.body)
            });
            self.taps.look_timed(from.at.switch, frames);
        }
        self.clock.cycles()
    }

    /// Notes what a round took whose frames were looked at by this count.
    #[cold]
    fn note_timed(&self, marks: &Marks, looked: u64, frames: usize) {
        let ns = |from, to| self.clock.between(from, to);
        let (receive, send) = (ns(marks.begin, marks.received), ns(0, marks.tx_cycles));
        let (Some(rest), Some(send)) = (ns(looked, marks.decided), send) else { return };
        let tables = rest.saturating_sub(send);
        let spent = Spent { receive, tables, send, frames: frames as u64 };
        self.taps.note_timed(spent, std::iter::empty());
    }
}

/// Takes the frames of a steered switch to their destinations that are this worker's to process, and hands over the others. Says how many were its own.
#[inline(never)]
fn steer<C: Clock>(
    engine: &mut Engine<C>,
    round: &Round<'_>,
    (batch, source): (&mut RxBatch, &dyn RxQueue),
    handover: &mut Handover,
) -> (Done, usize) {
    let mut frames = Frames::default();
    if !engine.receive(round, &mut frames, batch, source) {
        return Default::default();
    }
    let &Round { switch: ix, now, .. } = round;
    let Some(switch) = engine.world.switch(ix) else { return Default::default() };
    let (in_port, drops) = (round.from.at.port, engine.scratch.verdicts.at(round.from.at));
    handover.sort(&mut frames, Arrival { ix, in_port, now, drops });
    switch.counters(engine.number).drops.take(drops);
    if engine.taps.is_timing() {
        engine.taps.look_timed(round.from.at.switch, frames.each());
    }
    let own = frames.packets.len();
    if own == 0 {
        return Default::default();
    }
    let done = engine.pass(now, &mut frames, (ix, &round.tables), Work::Tables);
    handover.passed();
    pass_through(engine, handover);
    (done, own)
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
