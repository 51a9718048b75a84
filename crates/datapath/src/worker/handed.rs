//! Rounds of frames that other workers handed over, or that waited for a move; and what steering needs between rounds.

use super::Worker;
use super::round::Marks;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::frames::Frames;
use crate::id::{PortAt, SwitchIx};
use crate::ladder::{Done, Work};
use crate::steering::{Classifier, Handover, Inlet, Label, Release, Settled};
use crate::taps::Spent;
use crate::touch::Touch;
use arrayvec::ArrayVec;
use flow::Nanos;
use port::{Lost, RxBatch};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use wire::{BATCH, DropReason};

/// What a round took of a ring.
struct Taken {
    label: Label,
    frames: u64,
    bytes: u64,
    /// When the frames were out of the ring, in cycles.
    received: u64,
    done: Done,
}

impl<C: Clock> Worker<C> {
    /// A round of what each other worker handed over; returns the time then.
    pub(super) fn take_handed(&mut self, now: Nanos) -> Nanos {
        let Some(handover) = self.handover.as_deref_mut() else { return now };
        let (engine, batch, mut now) = (&mut self.engine, &mut self.batch, now);
        let mut any = false;
        for from in 0..handover.inlets.len() {
            let Some(inlet) = &mut handover.inlets[from] else { continue };
            if !inlet.reader.look() {
                continue;
            }
            if any {
                now = self.clock.now();
            }
            any = true;
            let begin = self.clock.cycles();
            let Some(taken) = take(engine, batch, inlet, now) else { continue };
            self.mailbox.counters.taken_over.add(taken.frames);
            self.mailbox.counters.cache.add(engine.workspace.take_counts());
            taken.marks(begin, self.clock.cycles()).count(0, &self.mailbox.counters);
            handover.count_taken(from, &taken.label, taken.frames);
        }
        if any {
            handover.hear(now);
        }
        now
    }

    /// Between rounds: tells others what has left, gives free what waited for it.
    pub(super) fn settle(&mut self, now: Nanos) {
        let Some(handover) = self.handover.as_deref_mut() else { return };
        let (engine, batch) = (&mut self.engine, &mut self.batch);
        pass_through(engine, handover);
        for hold in 0..handover.holds.len() {
            while handover.release(hold, now) == Release::Pass {
                let Some(taken) = take(engine, batch, &mut handover.holds[hold].inlet, now) else {
                    break;
                };
                handover.passed();
                handover.count_passed(&taken.label, taken.frames, taken.bytes);
            }
        }
        pass_through(engine, handover);
        while let Some((steered, reply)) = handover.settle_changes(now) {
            // Who asked may have gone; then it ends here.
            let _ = reply.send(Settled::Steered(steered));
        }
    }

    /// Answered when no order is lost.
    pub(super) fn change_steering(
        &mut self,
        ix: SwitchIx,
        classifier: Option<Arc<Classifier>>,
        reply: Sender<Settled>,
    ) {
        if let Some(handover) = &mut self.handover {
            handover.change(ix, classifier, reply);
        }
    }

    /// After a panic.
    pub(super) fn recover_handed(&mut self) {
        let Some(handover) = self.handover.as_deref_mut() else { return };
        let engine = &mut self.engine;
        handover.recover(|label, frames| {
            let switch = engine.world.switch(label.ix);
            if let Some(switch) = switch.filter(|switch| switch.shared.id == label.switch) {
                let at = PortAt { switch: label.switch, port: label.in_port };
                let drops = engine.scratch.verdicts.at(at);
                drops.lose(DropReason::WorkerFault, Lost::Elsewhere(frames));
                switch.counters(engine.number).drops.take(drops);
            }
        });
    }
}

impl Taken {
    fn marks(&self, begin: u64, released: u64) -> Marks {
        let Self { received, done: Done { at, tx_cycles }, .. } = *self;
        Marks { begin, received, decided: at.max(received), released, forwarding: 0, tx_cycles }
    }
}

/// What was passed has left, if nothing waits in queues of ports or goes on later.
pub(super) fn pass_through<C: Clock>(engine: &Engine<C>, handover: &mut Handover) {
    if engine.scratch.backlog.next().is_none() && engine.scratch.onward.is_empty() {
        handover.pass_through();
    }
}

/// Notes what a pass took of frames that were handed over, which was looked at by this count, and how long they had waited.
#[cold]
fn note_timed<C: Clock>(
    engine: &Engine<C>,
    (looked, done): (u64, Done),
    (now, came, frames): (Nanos, &[(Nanos, u64)], u64),
) {
    let ns = |from, to| engine.clock.between(from, to);
    let (Some(rest), Some(send)) = (ns(looked, done.at), ns(0, done.tx_cycles)) else { return };
    let spent = Spent { receive: None, tables: rest.saturating_sub(send), send, frames };
    let waits = came
        .iter()
        .flat_map(|&(since, frames)| std::iter::repeat_n(now.since(since), frames as usize));
    engine.taps.note_timed(spent, waits);
}

/// Takes up to a batch of frames of one switch out of a ring, through a pass, and gives them back.
fn take<C: Clock>(
    engine: &mut Engine<C>,
    batch: &mut RxBatch,
    inlet: &mut Inlet,
    now: Nanos,
) -> Option<Taken> {
    batch.clear();
    let Inlet { reader, round } = inlet;
    let mut records = reader.records();
    let label = Label::of(&records.peek()?);
    let mut frames = Frames::default();
    let mut came = ArrayVec::<(Nanos, u64), BATCH>::new();
    for slot in batch.free() {
        let of = records.peek().map(|words| Label::of(&words));
        let Some(of) = of.filter(|of| (of.ix, of.switch) == (label.ix, label.switch)) else {
            break;
        };
        let Some((_, bytes)) = records.next() else { break };
        frames.push(&mut slot.head, bytes, of.offload, of.in_port);
        frames.push_tunnel(of.tunnel_id, of.tun_src);
        match came.last_mut() {
            Some((since, frames)) if *since == of.since => *frames += 1,
            _ => came.push((of.since, 1)),
        }
    }
    let end = records.position();
    let port::Sent { frames: count, bytes } = frames.received;
    *round = Some((end, count));
    let received = engine.clock.cycles();
    engine.touching.set(Touch::Handed);
    let switch = engine.world.switch(label.ix).filter(|switch| switch.shared.id == label.switch);
    let done = match switch.map(|switch| switch.shared.tables.load()) {
        Some(tables) => {
            let is_timing = engine.taps.is_timing();
            if is_timing {
                engine.taps.look_timed(label.switch, frames.each());
            }
            let looked = if is_timing { engine.clock.cycles() } else { received };
            let done = engine.pass(now, &mut frames, (label.ix, &tables), Work::Tables);
            let left = engine.clock.time_of(done.at.max(received));
            came.iter().for_each(|&(since, frames)| {
                engine.stayed_handed(label.ix, frames, left.since(since));
            });
            if is_timing {
                note_timed(engine, (looked, done), (now, &came[..], count));
            }
            done
        }
        None => Done::default(), // it went out of service, and its counters with it
    };
    engine.touching.set(Touch::Nothing);
    drop(frames);
    *round = None;
    reader.release(end);
    Some(Taken { label, frames: count, bytes, received, done })
}
