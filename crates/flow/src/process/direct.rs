//! The short way of a batch whose first table is also its last: look up, count, run.

use super::walk::Walker;
use super::{BATCH, forward};
use crate::cache::Cache;
use crate::exec::Run;
use crate::packet::{Packet, Sink};
use crate::program::Program;
use crate::snapshot::Snapshot;
use crate::store::{Line, RecordId, tick};
use crate::template::{Found, TableView};
use crate::time::Nanos;
use wire::Key;

/// What table 0 has for each packet of a batch.
pub(super) fn search(
    snapshot: &Snapshot,
    view: &TableView,
    cache: &mut Cache,
    keys: &[&Key],
) -> Found {
    let mut found = [RecordId::NONE; BATCH];
    let probes = view.template.search(snapshot.searched(), keys, &mut cache.scratch, &mut found);
    let matches = found[..keys.len()].iter().filter(|id| id.is_some()).count();
    view.counters.add(keys.len() as u64, matches as u64, u64::from(probes));
    found
}

/// Counts a batch, none of which was refused, and runs what was found.
pub(super) fn run(
    snapshot: &Snapshot,
    cache: &mut Cache,
    packets: &mut [Packet<'_>],
    found: &Found,
    now: Nanos,
    sink: &mut impl Sink,
) {
    let env = snapshot.env(now);
    let counter = Counter { snapshot, worker: cache.worker, tick: tick(now) };
    let mut walker = Walker::new(snapshot, cache.worker, &mut cache.scratch, now);
    let mut neighbours = Neighbours::default();
    let mut program: Option<&Program> = None;
    for (index, (packet, &id)) in packets.iter_mut().zip(found).enumerate() {
        if counter.add(&mut neighbours, id, packet.frame_len) {
            let number = neighbours.line.map(|line| line.rule().program);
            program = number.map(|number| &**snapshot.programs.get(number));
        }
        let Some(program) = program else {
            walker.miss_first(Run::new(&env, index, packet, sink));
            continue;
        };
        match program.forwards_to {
            Some(port) => forward(snapshot, index, packet, port, sink),
            None => walker.run_only(&env, index, packet, sink, (id, program)),
        }
    }
    counter.settle(&neighbours);
}

/// Counts a batch and does nothing with it.
pub(super) fn count(
    snapshot: &Snapshot,
    worker: u8,
    packets: &[Packet<'_>],
    found: &Found,
    now: Nanos,
) {
    let counter = Counter { snapshot, worker, tick: tick(now) };
    let mut neighbours = Neighbours::default();
    for (packet, &id) in packets.iter().zip(found) {
        counter.add(&mut neighbours, id, packet.frame_len);
    }
    counter.settle(&neighbours);
}

/// Packets one after the other that hit the same entry: counted at once.
#[derive(Default)]
struct Neighbours<'s> {
    id: RecordId,
    line: Option<&'s Line>,
    packets: u64,
    bytes: u64,
}

/// Counts on the entries of a snapshot.
struct Counter<'s> {
    snapshot: &'s Snapshot,
    worker: u8,
    tick: u32,
}

impl<'s> Counter<'s> {
    /// Counts one packet more. Returns whether its entry is another than that of the one before.
    #[inline]
    fn add(&self, neighbours: &mut Neighbours<'s>, id: RecordId, frame_len: u32) -> bool {
        let other = id != neighbours.id;
        if other {
            self.settle(neighbours);
            let line = id.is_some().then(|| self.snapshot.line(id));
            *neighbours = Neighbours { id, line, packets: 0, bytes: 0 };
        }
        neighbours.packets += 1;
        neighbours.bytes += u64::from(frame_len);
        other
    }

    #[inline]
    fn settle(&self, &Neighbours { id, line, packets, bytes, .. }: &Neighbours<'_>) {
        if let Some(line) = line {
            self.snapshot.arena.count(id, line, self.worker, packets, bytes, self.tick);
        }
    }
}
