//! The short way of a batch whose first table is also its last: look up, count, run.

use super::BATCH;
use super::walk::Walker;
use crate::action::PortNo;
use crate::cache::Cache;
use crate::exec::{Run, forward};
use crate::packet::{Packet, Sink};
use crate::program::Program;
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::template::{Found, TableView};
use crate::time::Nanos;
use arrayvec::ArrayVec;
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

/// Neighbours that came in by one port and hit one entry.
struct Hit<'s> {
    id: RecordId,
    /// Where they end.
    to: usize,
    program: Option<&'s Program>,
    /// [`Program::forwards_to`], read in the same pass as everything else that may not be in the cache.
    forwards_to: Option<PortNo>,
}

/// Counts a batch, none of which was refused, and runs what was found.
pub(super) fn run(
    snapshot: &Snapshot,
    cache: &mut Cache,
    packets: &mut [&mut Packet<'_>],
    found: &Found,
    now: Nanos,
    sink: &mut impl Sink,
) {
    let env = snapshot.env(now);
    let mut hits = ArrayVec::<Hit<'_>, BATCH>::new();
    let mut from = 0;
    while from < packets.len() {
        let (id, (to, bytes)) = (found[from], neighbours(packets, found, from));
        let counted = ((to - from) as u64, bytes);
        let program = count(snapshot, cache.worker, id, counted, tick(now));
        let forwards_to = program.and_then(|program| program.forwards_to);
        hits.push(Hit { id, to, program, forwards_to });
        from = to;
    }
    let mut walker = Walker::new(snapshot, cache.worker, &mut cache.scratch, now);
    from = 0;
    for Hit { id, to, program, forwards_to } in hits {
        let run = &mut packets[from..to];
        if let Some(port) = forwards_to {
            forward(&snapshot.ports, from, run, port, sink);
        } else if let Some(program) = program {
            match &program.straight {
                Some(short) => {
                    short.run(&env, from, run, sink, || walker.origin(id, program, 0));
                }
                None => {
                    for (packet, index) in run.iter_mut().zip(from..) {
                        walker.run_last(Run::new(&env, index, packet, sink), id);
                    }
                }
            }
        } else {
            for (packet, index) in run.iter_mut().zip(from..) {
                walker.miss_first(Run::new(&env, index, packet, sink));
            }
        }
        from = to;
    }
}

/// Counts a batch and does nothing with it.
pub(super) fn count_only(
    snapshot: &Snapshot,
    worker: u8,
    packets: &[&mut Packet<'_>],
    found: &Found,
    now: Nanos,
) {
    let mut from = 0;
    while from < packets.len() {
        let (to, bytes) = neighbours(packets, found, from);
        count(snapshot, worker, found[from], ((to - from) as u64, bytes), tick(now));
        from = to;
    }
}

/// Where the packets end that came in by the same port as packet `from` and hit the same entry one after the other, and the bytes of them.
#[inline]
fn neighbours(packets: &[&mut Packet<'_>], found: &Found, from: usize) -> (usize, u64) {
    let (id, in_port) = (found[from], packets[from].in_port());
    let (mut to, mut bytes) = (from, 0);
    while let Some(packet) = packets.get(to)
        && found[to] == id
        && packet.in_port() == in_port
    {
        bytes += u64::from(packet.frame_len);
        to += 1;
    }
    (to, bytes)
}

/// Counts packets and bytes on an entry; its program, or `None` if it is none.
#[inline]
fn count(
    snapshot: &Snapshot,
    worker: u8,
    id: RecordId,
    (packets, bytes): (u64, u64),
    tick: u32,
) -> Option<&Program> {
    if !id.is_some() {
        return None;
    }
    let line = snapshot.line(id);
    snapshot.arena.count(id, line, worker, packets, bytes, tick);
    Some(snapshot.programs.get(line.rule().program))
}
