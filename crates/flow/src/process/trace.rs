//! Looks up a whole batch, table by table, before any packet is touched.
//!
//! A packet's *trace* is the entries it hits one after the other. It goes on through programs that leave the key as it is
//! but for metadata, which is written to a private copy of the key. What it depends on is the key the packet came
//! with and the tables, nothing else: so a trace can be cached.

use super::BATCH;
use crate::cache::Cache;
use crate::packet::Packet;
use crate::program::Onward;
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::time::Nanos;
use wire::{Field, Key};

/// Entries one trace holds; longer ways are looked up while they are walked. Chosen: pipelines of real controllers have
/// up to about this many tables that a packet visits.
pub(crate) const STEPS: usize = 8;

/// How a trace ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum End {
    /// With the program of its last entry.
    #[default]
    Done,
    /// At a table without an entry for the packet.
    Miss(u8),
    /// Before a table that must be searched when the programs so far have been run.
    Resume(u8),
}

/// The entries a packet hits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace {
    hits: [RecordId; STEPS],
    len: u8,
    pub end: End,
}

impl Default for Trace {
    fn default() -> Self {
        Self { hits: [RecordId::NONE; STEPS], len: 0, end: End::Done }
    }
}

impl Trace {
    /// The entries, in order.
    pub fn hits(&self) -> &[RecordId] {
        &self.hits[..usize::from(self.len)]
    }

    fn is_full(&self) -> bool {
        usize::from(self.len) == STEPS
    }

    fn push(&mut self, id: RecordId) {
        self.hits[usize::from(self.len)] = id;
        self.len += 1;
    }
}

/// The traces of a batch.
#[derive(Default)]
pub(crate) struct Traces([Trace; BATCH]);

impl Traces {
    /// The trace of packet `index`.
    pub fn of(&self, index: usize) -> &Trace {
        &self.0[index]
    }
}

/// Table number of packets whose trace is complete.
const NOWHERE: u8 = u8::MAX;

/// Traces every packet but those of `skip`, and counts the entries hit.
pub(super) fn trace(snapshot: &Snapshot, cache: &mut Cache, packets: &[Packet<'_>], skip: u32, now: Nanos, traces: &mut Traces) {
    let mut at = [NOWHERE; BATCH];
    for (lane, table) in at.iter_mut().enumerate().take(packets.len()) {
        *table = if skip & 1 << lane == 0 { 0 } else { NOWHERE };
    }
    let mut written = 0; // packets with metadata
    loop {
        let table = at[..packets.len()].iter().copied().min().unwrap_or(NOWHERE);
        if table == NOWHERE {
            return;
        }
        visit(snapshot, cache, packets, table, now, &mut Visit { at: &mut at, written: &mut written, traces });
    }
}

struct Visit<'a> {
    at: &'a mut [u8; BATCH],
    written: &'a mut u32,
    traces: &'a mut Traces,
}

/// Searches one table for the packets that are there and sends each on.
fn visit(snapshot: &Snapshot, cache: &mut Cache, packets: &[Packet<'_>], table: u8, now: Nanos, visit: &mut Visit<'_>) {
    let mut lanes = [0_u8; BATCH];
    let mut count = 0;
    for lane in 0..packets.len() {
        lanes[count % BATCH] = lane as u8;
        count += usize::from(visit.at[lane] == table);
    }
    let lanes = &lanes[..count];
    let mut found = [RecordId::NONE; BATCH];
    if let Some(view) = snapshot.view.table(table) {
        let first = &packets[0].key;
        let mut keys: [&Key; BATCH] = [first; BATCH];
        for (key, &lane) in keys.iter_mut().zip(lanes) {
            let lane = usize::from(lane);
            *key = if *visit.written & 1 << lane == 0 { &packets[lane].key } else { &cache.keys[lane] };
        }
        let probes = view.template.search(snapshot.searched(), &keys[..count], &mut cache.scratch, &mut found);
        let matches = found[..count].iter().filter(|id| id.is_some()).count();
        view.counters.add(count as u64, matches as u64, u64::from(probes));
        cache.note_probes(probes);
    }
    count_hits(snapshot, cache.worker, packets, lanes, &found, now);
    for (&lane, &id) in lanes.iter().zip(&found) {
        send_on(snapshot, cache, packets, table, usize::from(lane), id, visit);
    }
}

/// Counts hits, neighbours on the same entry at once.
pub(super) fn count_hits(snapshot: &Snapshot, worker: u8, packets: &[Packet<'_>], lanes: &[u8], found: &[RecordId; BATCH], now: Nanos) {
    let tick = tick(now);
    let mut run = (RecordId::NONE, 0, 0);
    for (&lane, &id) in lanes.iter().zip(found) {
        let bytes = u64::from(packets[usize::from(lane)].frame_len);
        if id != run.0 {
            if run.0.is_some() {
                snapshot.arena.count(run.0, worker, run.1, run.2, tick);
            }
            run = (id, 0, 0);
        }
        run = (id, run.1 + 1, run.2 + bytes);
    }
    if run.0.is_some() {
        snapshot.arena.count(run.0, worker, run.1, run.2, tick);
    }
}

/// Notes what a packet hit, and where it goes next.
fn send_on(snapshot: &Snapshot, cache: &mut Cache, packets: &[Packet<'_>], table: u8, lane: usize, id: RecordId, visit: &mut Visit<'_>) {
    let trace = &mut visit.traces.0[lane];
    visit.at[lane] = NOWHERE;
    if !id.is_some() {
        trace.end = End::Miss(table);
        return;
    }
    trace.push(id);
    let program = snapshot.programs.get(snapshot.arena.record(id).rule().program);
    match program.onward {
        Onward::End => {}
        Onward::Edited(next) => trace.end = End::Resume(next),
        Onward::Goto(next) if trace.is_full() => trace.end = End::Resume(next),
        Onward::Goto(next) => {
            visit.at[lane] = next;
            if let Some((value, mask)) = program.instructions.metadata {
                let key = &mut cache.keys[lane];
                if *visit.written & 1 << lane == 0 {
                    *key = packets[lane].key;
                    *visit.written |= 1 << lane;
                }
                let before = key.get(Field::Metadata) as u64;
                key.set(Field::Metadata, u128::from(before & !mask | value & mask));
            }
        }
    }
}
