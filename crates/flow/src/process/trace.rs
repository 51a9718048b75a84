//! Looks up a whole batch, table by table, before any packet is touched.
//!
//! A packet's *trace* is the entries it hits one after the other. It goes on through programs that leave the key as it is
//! but for metadata, which is written to a private copy of the key. What it depends on is the key the packet came
//! with and the tables, nothing else: so a trace can be cached.

use super::BATCH;
use crate::action::PortNo;
use crate::cache::Cache;
use crate::packet::Packet;
use crate::program::{Onward, Program};
use crate::snapshot::Snapshot;
use crate::store::{Line, RecordId, tick};
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
    /// Tables of the hits.
    tables: [u8; STEPS],
    len: u8,
    pub end: End,
    /// All the trace does is to send the packet by this port.
    pub forwards_to: Option<PortNo>,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            hits: [RecordId::NONE; STEPS],
            tables: [0; STEPS],
            len: 0,
            end: End::Done,
            forwards_to: None,
        }
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

    /// The tables searched, and whether an entry was found there.
    pub fn searched(&self) -> impl Iterator<Item = (u8, bool)> {
        let missed = if let End::Miss(table) = self.end { Some((table, false)) } else { None };
        self.tables[..usize::from(self.len)].iter().map(|&table| (table, true)).chain(missed)
    }

    fn push(&mut self, id: RecordId, table: u8) {
        self.hits[usize::from(self.len) % STEPS] = id;
        self.tables[usize::from(self.len) % STEPS] = table;
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

    /// Replaces the trace of packet `index`.
    pub fn set(&mut self, index: usize, trace: &Trace) {
        self.0[index] = *trace;
    }
}

/// Table number of packets whose trace is complete.
const NOWHERE: u8 = u8::MAX;

/// Traces every packet but those of `skip`, and counts the entries hit. Returns the probes made.
pub(super) fn trace(
    snapshot: &Snapshot,
    cache: &mut Cache,
    packets: &[&mut Packet<'_>],
    skip: u32,
    now: Nanos,
) -> u32 {
    let mut tracer =
        Tracer { snapshot, packets, now, at: [NOWHERE; BATCH], written: 0, lanes: [0; BATCH] };
    for (lane, trace) in cache
        .traces
        .0
        .iter_mut()
        .enumerate()
        .take(packets.len())
        .filter(|(lane, _)| skip & 1 << lane == 0)
    {
        (trace.len, trace.end, trace.forwards_to) = (0, End::Done, None);
        tracer.at[lane] = 0;
    }
    let mut probes = 0;
    loop {
        let table = tracer.at[..packets.len()].iter().copied().min().unwrap_or(NOWHERE);
        if table == NOWHERE {
            return probes;
        }
        probes += tracer.visit(cache, table);
    }
}

/// A batch on its way through the tables.
struct Tracer<'a, 'h> {
    snapshot: &'a Snapshot,
    packets: &'a [&'a mut Packet<'h>],
    now: Nanos,
    /// The table each packet is at.
    at: [u8; BATCH],
    /// Packets with metadata, as bits: their key lies in the cache.
    written: u32,
    /// The packets at the table that is visited.
    lanes: [u8; BATCH],
}

impl Tracer<'_, '_> {
    /// Searches one table for the packets that are there and sends each on. Returns the probes made.
    fn visit(&mut self, cache: &mut Cache, table: u8) -> u32 {
        let mut probes = 0;
        let count = self.gather(table);
        let mut found = [RecordId::NONE; BATCH];
        if let Some(view) = self.snapshot.view.table(table) {
            let mut keys: [&Key; BATCH] = [&self.packets[0].key; BATCH];
            for (key, &lane) in keys.iter_mut().zip(&self.lanes[..count]) {
                let lane = usize::from(lane) % BATCH;
                *key = if self.written & 1 << lane == 0 {
                    &self.packets[lane].key
                } else {
                    &cache.keys[lane]
                };
            }
            probes = view.template.search(
                self.snapshot.searched(),
                &keys[..count],
                &mut cache.scratch,
                &mut found,
            );
            let matches = found[..count].iter().filter(|id| id.is_some()).count();
            view.counters.add(cache.worker, count as u64, matches as u64, u64::from(probes));
        }
        self.send_on(cache, table, count, &found);
        probes
    }

    /// Lists the packets at `table`.
    fn gather(&mut self, table: u8) -> usize {
        let mut count = 0;
        for lane in 0..self.packets.len() {
            self.lanes[count % BATCH] = lane as u8;
            count += usize::from(self.at[lane % BATCH] == table);
        }
        count
    }

    /// Counts hits and notes where their packets go; neighbours on the same entry at once.
    fn send_on(&mut self, cache: &mut Cache, table: u8, count: usize, found: &[RecordId; BATCH]) {
        let (snapshot, tick, lanes) = (self.snapshot, tick(self.now), self.lanes);
        let mut run = Run::default();
        for (&lane, &id) in lanes[..count].iter().zip(found) {
            if !id.is_some() {
                self.end(cache, lane, End::Miss(table), None);
                continue;
            }
            if id != run.id {
                run.count(snapshot, cache.worker, tick);
                run = Run::of(snapshot, id);
            }
            run.packets += 1;
            run.bytes += u64::from(self.packets[usize::from(lane)].frame_len);
            let trace = &mut cache.traces.0[usize::from(lane) % BATCH];
            trace.push(id, table);
            let full = trace.is_full();
            match run.onward {
                Onward::End => self.end(cache, lane, End::Done, run.forwards_to),
                Onward::Goto(next) if !full => self.go(
                    cache,
                    lane,
                    next,
                    snapshot.programs.get(run.program).instructions.metadata,
                ),
                Onward::Goto(next) | Onward::Edited(next) => {
                    self.end(cache, lane, End::Resume(next), None)
                }
            }
        }
        run.count(snapshot, cache.worker, tick);
    }

    fn end(&mut self, cache: &mut Cache, lane: u8, end: End, forwards_to: Option<PortNo>) {
        let trace = &mut cache.traces.0[usize::from(lane) % BATCH];
        trace.end = end;
        trace.forwards_to = forwards_to.filter(|_| trace.len == 1);
        self.at[usize::from(lane) % BATCH] = NOWHERE;
    }

    fn go(&mut self, cache: &mut Cache, lane: u8, table: u8, metadata: Option<(u64, u64)>) {
        let lane = usize::from(lane) % BATCH;
        self.at[lane] = table;
        let Some((value, mask)) = metadata else { return };
        let key = &mut cache.keys[lane];
        if self.written & 1 << lane == 0 {
            *key = self.packets[lane].key;
            self.written |= 1 << lane;
        }
        let before = key.get(Field::Metadata) as u64;
        key.set(Field::Metadata, u128::from(before & !mask | value & mask));
    }
}

/// Neighbours that hit one entry.
#[derive(Default)]
struct Run<'a> {
    id: RecordId,
    line: Option<&'a Line>,
    packets: u64,
    bytes: u64,
    program: u32,
    onward: Onward,
    forwards_to: Option<PortNo>,
}

impl<'a> Run<'a> {
    fn of(snapshot: &'a Snapshot, id: RecordId) -> Self {
        let line = snapshot.line(id);
        let program = line.rule().program;
        let &Program { onward, forwards_to, .. } = &**snapshot.programs.get(program);
        Self { id, line: Some(line), packets: 0, bytes: 0, program, onward, forwards_to }
    }

    fn count(&self, snapshot: &Snapshot, worker: u8, tick: u32) {
        if let Some(line) = self.line {
            snapshot.arena.count(self.id, line, worker, self.packets, self.bytes, tick);
        }
    }
}

/// Counts what the traces of `hits` hit, as searching would have: entries, and lookups and matches of their tables.
pub(super) fn count_again(
    snapshot: &Snapshot,
    cache: &Cache,
    packets: &[&mut Packet<'_>],
    hits: u32,
    now: Nanos,
) {
    let tick = tick(now);
    let mut tables = [(0_u8, 0, 0); STEPS + 1];
    let mut known = 0;
    for (lane, packet) in packets.iter().enumerate().filter(|(lane, _)| hits & 1 << lane != 0) {
        let trace = cache.traces.of(lane);
        for &id in trace.hits() {
            snapshot.arena.count(
                id,
                snapshot.line(id),
                cache.worker,
                1,
                packet.frame_len.into(),
                tick,
            );
        }
        for (table, found) in trace.searched() {
            let at = tables[..known].iter().position(|&(number, ..)| number == table);
            let at = at.unwrap_or_else(|| {
                if known == tables.len() {
                    flush(snapshot, cache.worker, &mut tables[..]);
                    known = 0;
                }
                tables[known] = (table, 0, 0);
                known += 1;
                known - 1
            });
            tables[at].1 += 1;
            tables[at].2 += u64::from(found);
        }
    }
    flush(snapshot, cache.worker, &mut tables[..known]);
}

fn flush(snapshot: &Snapshot, worker: u8, tables: &mut [(u8, u64, u64)]) {
    for (table, lookups, matches) in tables {
        if let Some(view) = snapshot.view.table(*table) {
            view.counters.add(worker, *lookups, *matches, 0);
        }
    }
}
