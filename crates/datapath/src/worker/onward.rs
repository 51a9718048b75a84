//! Rounds of frames that have crossed as many vlinks as a pass allows and go on.

use super::Worker;
use super::round::Marks;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::frames::Frames;
use crate::ladder::Done;
use crate::onward::{Place, Waiting};
use crate::touch::Touch;
use flow::{Nanos, Snapshot};
use port::{Body, Lost, RxBatch, Sent, TxFrame};
use std::sync::atomic::Ordering::Relaxed;
use wire::{BATCH, DropReason};

/// Frames of a round while other sources have frames, too: a frame may cause hundreds of deliveries, and others wait meanwhile. Chosen.
const FEW: usize = 4;

impl<C: Clock> Worker<C> {
    /// A round of frames that go on; of few if others have frames.
    #[cold]
    pub(super) fn go_on(&mut self, now: Nanos, others: bool) {
        let begin = self.clock.cycles();
        let (engine, batch, taken) = (&mut self.engine, &mut self.batch, &mut self.going_on);
        engine.scratch.onward.take(if others { FEW } else { BATCH }, taken);
        let received = self.clock.cycles();
        let Done { at, tx_cycles } = go_on(engine, batch, taken, now);
        self.mailbox.counters.went_on.add(taken.len() as u64);
        self.mailbox.counters.cache.add(engine.workspace.take_counts());
        engine.scratch.onward.recycle(taken);
        let released = self.clock.cycles();
        let (decided, forwarding) = (at.max(received), 0);
        let marks = Marks { begin, received, decided, released, forwarding, tx_cycles };
        marks.count(0, &self.mailbox.counters);
    }
}

/// Takes frames, all of which enter one switch by one port, through a pass.
fn go_on<C: Clock>(
    engine: &mut Engine<C>,
    batch: &mut RxBatch,
    taken: &[Waiting],
    now: Nanos,
) -> Done {
    let Some(Waiting { place, .. }) = taken.first() else { return Done::default() };
    // Either may have gone, and its place be another one's.
    let switch = engine.world.switch(place.switch);
    let Some(switch) = switch.filter(|switch| switch.shared.id == place.at.switch) else {
        return Done::default();
    };
    let tables = switch.shared.tables.load();
    let port = engine.world.port(place.into).filter(|port| port.shared.at == place.at);
    let is_up = port.is_some_and(|port| port.shared.up.load(Relaxed));
    if !is_up {
        let drops = engine.scratch.verdicts.at(place.at);
        taken.iter().for_each(|one| drops.lose(DropReason::PortDown, Lost::bytes(&one.bytes)));
        switch.counters(engine.number).drops.take(drops);
        return Done::default();
    }
    let mut sum = Sent::default();
    taken.iter().for_each(|one| sum.count(one.bytes.len()));
    if let Some(port) = port {
        port.shared.counters[engine.number].rx.add(sum);
    }
    batch.clear();
    let mut frames = Frames::default();
    for (slot, one) in batch.free().iter_mut().zip(taken) {
        frames.push(&mut slot.head, &one.bytes, one.offload, place.at.port);
    }
    if engine.taps.is_on() {
        show(engine, place, taken, now, &tables);
    }
    engine.touching.set(Touch::Handed);
    let past = taken.iter().map(|one| one.past);
    let done = engine.pass_on(now, &mut frames, (place.switch, &tables), past);
    engine.touching.set(Touch::Nothing);
    done
}

/// Shows frames that crossed the vlink to this place.
#[cold]
fn show<C>(engine: &Engine<C>, place: &Place, taken: &[Waiting], now: Nanos, tables: &Snapshot) {
    let Some(far) = engine.world.port(place.into) else { return };
    let near = far.far_end().and_then(|near| engine.world.port(near)).map(|near| &*near.shared);
    for Waiting { bytes, offload, .. } in taken {
        let (body, offload) = (Body::default(), *offload);
        let frame = TxFrame { head: bytes, body, offload, tunnel_id: 0, tun_dst: 0 };
        engine.taps.crossed((near, &far.shared), now, frame, Some(tables));
    }
}
