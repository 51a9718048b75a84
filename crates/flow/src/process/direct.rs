//! The short way of a batch whose first table is also its last: look up, count, run.

use super::walk::Walker;
use super::{BATCH, forward};
use crate::cache::Cache;
use crate::exec::Run;
use crate::packet::{Packet, Sink};
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::template::TableView;
use crate::time::Nanos;
use wire::Key;

/// Sends a batch, none of which was refused, through table 0.
pub(super) fn process_batch(
    snapshot: &Snapshot,
    view: &TableView,
    cache: &mut Cache,
    packets: &mut [Packet<'_>],
    now: Nanos,
    sink: &mut impl Sink,
) {
    let mut found = [RecordId::NONE; BATCH];
    search(snapshot, view, cache, packets, &mut found);
    let (tick, env) = (tick(now), snapshot.env(now));
    let mut walker = Walker::new(snapshot, cache.worker, &mut cache.scratch, now);
    let mut counted = Neighbours::default();
    for (index, (packet, &id)) in packets.iter_mut().zip(&found).enumerate() {
        counted.add(snapshot, cache.worker, tick, id, packet);
        if !id.is_some() {
            walker.miss_first(Run::new(&env, index, packet, sink));
            continue;
        }
        let program = snapshot.programs.get(snapshot.line(id).rule().program);
        match program.forwards_to {
            Some(port) => forward(snapshot, index, packet, port, sink),
            None => walker.run_only(&env, index, packet, sink, (id, program)),
        }
    }
    counted.settle(snapshot, cache.worker, tick);
}

/// Looks up and counts.
pub(super) fn classify(
    snapshot: &Snapshot,
    view: &TableView,
    cache: &mut Cache,
    packets: &[Packet<'_>],
    now: Nanos,
) {
    let mut found = [RecordId::NONE; BATCH];
    search(snapshot, view, cache, packets, &mut found);
    let mut counted = Neighbours::default();
    for (packet, &id) in packets.iter().zip(&found) {
        counted.add(snapshot, cache.worker, tick(now), id, packet);
    }
    counted.settle(snapshot, cache.worker, tick(now));
}

fn search(
    snapshot: &Snapshot,
    view: &TableView,
    cache: &mut Cache,
    packets: &[Packet<'_>],
    found: &mut [RecordId; BATCH],
) {
    let Some(first) = packets.first() else { return };
    let mut keys: [&Key; BATCH] = [&first.key; BATCH];
    keys.iter_mut().zip(packets).for_each(|(key, packet)| *key = &packet.key);
    let probes = view.template.search(
        snapshot.searched(),
        &keys[..packets.len()],
        &mut cache.scratch,
        found,
    );
    let matches = found[..packets.len()].iter().filter(|id| id.is_some()).count();
    view.counters.add(packets.len() as u64, matches as u64, u64::from(probes));
}

/// Packets one after the other that hit the same entry: counted at once.
#[derive(Default)]
struct Neighbours {
    id: RecordId,
    packets: u64,
    bytes: u64,
}

impl Neighbours {
    fn add(
        &mut self,
        snapshot: &Snapshot,
        worker: u8,
        tick: u32,
        id: RecordId,
        packet: &Packet<'_>,
    ) {
        if id != self.id {
            self.settle(snapshot, worker, tick);
            *self = Self { id, packets: 0, bytes: 0 };
        }
        self.packets += 1;
        self.bytes += u64::from(packet.frame_len);
    }

    fn settle(&self, snapshot: &Snapshot, worker: u8, tick: u32) {
        if self.id.is_some() {
            snapshot.arena.count(
                self.id,
                snapshot.line(self.id),
                worker,
                self.packets,
                self.bytes,
                tick,
            );
        }
    }
}
