//! Looks up a whole batch, table by table, before any packet is touched.
//!
//! A packet's *trace* is the entries it hits one after the other. It goes on through programs that leave the key as it is
//! but for metadata, which is written to a private copy of the key. What it depends on is the key the packet came
//! with and the tables, nothing else: so a trace can be cached.

use super::Workspace;
use crate::action::PortNo;
use crate::cache::{End, STEPS};
use crate::config::Miss;
use crate::limits::LANES;
use crate::packet::Packet;
use crate::program::{Onward, Program, Tells};
use crate::snapshot::Snapshot;
use crate::store::{Line, RecordId, tick};
use crate::time::Nanos;
use wire::{Field, Key};

/// Table number of packets whose trace is complete.
const NOWHERE: u8 = u8::MAX;

/// Traces every packet but those of `skip`, and counts the entries hit. Returns the probes made.
pub(super) fn trace(
    snapshot: &Snapshot,
    work: &mut Workspace,
    packets: &[&mut Packet<'_>],
    skip: u32,
    now: Nanos,
) -> u32 {
    let mut tracer =
        Tracer { snapshot, packets, now, at: [NOWHERE; LANES], written: 0, lanes: [0; LANES] };
    for lane in (0..packets.len()).filter(|lane| skip & 1 << lane == 0) {
        work.traces.at(lane).clear();
        tracer.at[lane] = 0;
    }
    let mut probes = 0;
    loop {
        let table = tracer.at[..packets.len()].iter().copied().min().unwrap_or(NOWHERE);
        if table == NOWHERE {
            return probes;
        }
        probes += tracer.visit(work, table);
    }
}

/// A batch on its way through the tables.
struct Tracer<'a, 'h> {
    snapshot: &'a Snapshot,
    packets: &'a [&'a mut Packet<'h>],
    now: Nanos,
    /// The table each packet is at.
    at: [u8; LANES],
    /// Packets with metadata, as bits: their key lies in the workspace.
    written: u32,
    /// The packets at the table that is visited.
    lanes: [u8; LANES],
}

impl Tracer<'_, '_> {
    /// Searches one table for the packets that are there and sends each on. Returns the probes made.
    fn visit(&mut self, work: &mut Workspace, table: u8) -> u32 {
        let mut probes = 0;
        let count = self.gather(table);
        let mut found = [RecordId::NONE; LANES];
        if let Some(view) = self.snapshot.view.table(table) {
            let mut keys: [&Key; LANES] = [&self.packets[0].key; LANES];
            for (key, &lane) in keys.iter_mut().zip(&self.lanes[..count]) {
                let lane = usize::from(lane) % LANES;
                *key = if self.written & 1 << lane == 0 {
                    &self.packets[lane].key
                } else {
                    &work.keys[lane]
                };
            }
            probes = view.template.search(
                self.snapshot.searched(),
                &keys[..count],
                &mut work.scratch,
                &mut found,
            );
            let matches = found[..count].iter().filter(|id| id.is_some()).count();
            view.counters.add(work.worker, count as u64, matches as u64, u64::from(probes));
        }
        self.send_on(work, table, count, &found);
        probes
    }

    /// Lists the packets at `table`.
    fn gather(&mut self, table: u8) -> usize {
        let mut count = 0;
        for lane in 0..self.packets.len() {
            self.lanes[count % LANES] = lane as u8;
            count += usize::from(self.at[lane % LANES] == table);
        }
        count
    }

    /// Counts hits and notes where their packets go; neighbours on the same entry at once.
    fn send_on(
        &mut self,
        work: &mut Workspace,
        table: u8,
        count: usize,
        found: &[RecordId; LANES],
    ) {
        let (snapshot, tick, lanes) = (self.snapshot, tick(self.now), self.lanes);
        let mut run = Run::default();
        for (&lane, &id) in lanes[..count].iter().zip(found) {
            if !id.is_some() {
                self.end(work, lane, End::Miss(table), None);
                continue;
            }
            if id != run.id {
                run.count(snapshot, work.worker, tick);
                run = Run::of(snapshot, id);
            }
            run.packets += 1;
            run.bytes += u64::from(self.packets[usize::from(lane)].frame_len);
            let trace = work.traces.at(lane.into());
            trace.push(id, table);
            let full = trace.is_full();
            match run.onward {
                Onward::End => self.end(work, lane, End::Done, run.forwards_to),
                Onward::Goto(next) if !full => self.go(
                    work,
                    lane,
                    next,
                    snapshot.programs.get(run.program).instructions.metadata,
                ),
                Onward::Goto(next) | Onward::Edited(next) => {
                    self.end(work, lane, End::Resume(next), None)
                }
            }
        }
        run.count(snapshot, work.worker, tick);
    }

    fn end(&mut self, work: &mut Workspace, lane: u8, end: End, forwards_to: Option<PortNo>) {
        let trace = work.traces.at(lane.into());
        trace.end = end;
        trace.forwards_to = forwards_to.filter(|_| trace.is_single());
        self.at[usize::from(lane) % LANES] = NOWHERE;
    }

    fn go(&mut self, work: &mut Workspace, lane: u8, table: u8, metadata: Option<(u64, u64)>) {
        let lane = usize::from(lane) % LANES;
        self.at[lane] = table;
        let Some((value, mask)) = metadata else { return };
        let key = &mut work.keys[lane];
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
        let &Program { onward, tells, forwards_to, .. } = &**snapshot.programs.get(program);
        let onward = match onward {
            // Such a program may be the end of the way (`Walker::step`).
            Onward::Goto(next)
                if tells == Tells::Perhaps && snapshot.config.miss == Miss::Orphaned =>
            {
                Onward::Edited(next)
            }
            onward => onward,
        };
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
    work: &Workspace,
    packets: &[&mut Packet<'_>],
    hits: u32,
    now: Nanos,
) {
    let tick = tick(now);
    let mut tables = [(0_u8, 0, 0); STEPS + 1];
    let mut known = 0;
    for (lane, packet) in packets.iter().enumerate().filter(|(lane, _)| hits & 1 << lane != 0) {
        let trace = work.traces.of(lane);
        for &id in trace.hits() {
            snapshot.arena.count(
                id,
                snapshot.line(id),
                work.worker,
                1,
                packet.frame_len.into(),
                tick,
            );
        }
        for (table, found) in trace.searched() {
            let at = tables[..known].iter().position(|&(number, ..)| number == table);
            let at = at.unwrap_or_else(|| {
                if known == tables.len() {
                    flush(snapshot, work.worker, &mut tables[..]);
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
    flush(snapshot, work.worker, &mut tables[..known]);
}

fn flush(snapshot: &Snapshot, worker: u8, tables: &mut [(u8, u64, u64)]) {
    for (table, lookups, matches) in tables {
        if let Some(view) = snapshot.view.table(*table) {
            view.counters.add(worker, *lookups, *matches, 0);
        }
    }
}
