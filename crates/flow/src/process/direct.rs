//! The short way of a batch whose first table is also its last: look up, count, run.

use super::Workspace;
use super::walk::Walker;
use crate::exec::{Leaving, Run};
use crate::limits::LANES;
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
    work: &mut Workspace,
    keys: &[&Key],
) -> Found {
    let mut found = [RecordId::NONE; LANES];
    let probes = view.template.search(snapshot.searched(), keys, &mut work.scratch, &mut found);
    let matches = found[..keys.len()].iter().filter(|id| id.is_some()).count();
    view.counters.add(work.worker, keys.len() as u64, matches as u64, u64::from(probes));
    found
}

/// Counts a batch, none of which was refused, and runs what was found. `one_port`: all came in by the same one.
pub(super) fn run(
    snapshot: &Snapshot,
    work: &mut Workspace,
    packets: &mut [&mut Packet<'_>],
    (found, one_port): (&Found, bool),
    now: Nanos,
    sink: &mut impl Sink,
) {
    // All that may not be in the cache is read in a pass of its own.
    let mut programs = [None; LANES];
    count(snapshot, work.worker, packets, found, tick(now), &mut programs);
    let mut leaving = Leaving::new(sink);
    // Packets are run together if all are alike, else one by one: where short runs end, the processor cannot guess.
    if one_port && all_equal(&found[..packets.len()]) {
        let all = packets.len();
        run_each((snapshot, work, now), packets, (found, &programs), &mut leaving, all);
    } else {
        run_each((snapshot, work, now), packets, (found, &programs), &mut leaving, 1);
    }
    leaving.finish(packets);
}

/// Runs what was found, `together` packets at a time, which are alike. Inlined, so that one at a time is no loop.
#[inline(always)]
fn run_each<S: Sink>(
    (snapshot, work, now): (&Snapshot, &mut Workspace, Nanos),
    packets: &mut [&mut Packet<'_>],
    (found, programs): (&Found, &Programs<'_>),
    leaving: &mut Leaving<'_, S>,
    together: usize,
) {
    let env = snapshot.env(now);
    let mut walker = Walker::new(snapshot, work.worker, &mut work.scratch, now);
    for from in (0..packets.len()).step_by(together) {
        let (id, which) = (found[from], from..from + together);
        match programs[from].map(|program| (program, &program.linear)) {
            Some((program, Some(linear))) => {
                linear.run(&env, which, packets, leaving, || snapshot.origin(id, program, 0));
            }
            other => {
                for index in which {
                    let sink = leaving.otherwise(packets, index..index + 1);
                    let run = Run::new(&env, index, packets[index], sink);
                    match other {
                        Some(_) => walker.run_last(run, id),
                        None => walker.miss_first(run),
                    }
                }
            }
        }
    }
}

/// Whether all are the first one; without a branch for each.
fn all_equal(ids: &[RecordId]) -> bool {
    ids.first().is_none_or(|first| ids.iter().fold(0, |differ, id| differ | (id.0 ^ first.0)) == 0)
}

/// Counts a batch and does nothing with it.
#[cfg(feature = "bench")]
pub(super) fn count_only(
    snapshot: &Snapshot,
    worker: u8,
    packets: &[&mut Packet<'_>],
    found: &Found,
    now: Nanos,
) {
    count(snapshot, worker, packets, found, tick(now), &mut [None; LANES]);
}

/// The program of the entry that each packet hit.
type Programs<'s> = [Option<&'s Program>; LANES];

/// Counts packets on their entries, neighbours on one entry together, and gives the program of each.
#[inline]
fn count<'s>(
    snapshot: &'s Snapshot,
    worker: u8,
    packets: &[&mut Packet<'_>],
    found: &Found,
    tick: u32,
    programs: &mut Programs<'s>,
) {
    let (mut same, mut programs_of) = (Same::default(), Recent::default());
    for ((packet, &id), program) in packets.iter().zip(found).zip(programs) {
        if id != same.id {
            same.count(snapshot, worker, tick);
            same = Same::of(snapshot, id);
        }
        same.add(packet.frame_len.into());
        *program = same.line.map(|line| programs_of.of(snapshot, line));
    }
    same.count(snapshot, worker, tick);
}

/// The program seen last: most entries have that of their neighbours.
#[derive(Default)]
struct Recent<'s>(Option<(u32, &'s Program)>);

impl<'s> Recent<'s> {
    #[inline]
    fn of(&mut self, snapshot: &'s Snapshot, line: &Line) -> &'s Program {
        let number = line.rule().program;
        match self.0 {
            Some((last, program)) if last == number => program,
            _ => {
                let program = &**snapshot.programs.get(number);
                self.0 = Some((number, program));
                program
            }
        }
    }
}

/// Neighbours that hit one entry, or none.
#[derive(Default)]
pub(super) struct Same<'s> {
    pub id: RecordId,
    line: Option<&'s Line>,
    packets: u64,
    bytes: u64,
}

impl<'s> Same<'s> {
    #[inline]
    pub fn of(snapshot: &'s Snapshot, id: RecordId) -> Self {
        let line = id.is_some().then(|| snapshot.line(id));
        Self { id, line, packets: 0, bytes: 0 }
    }

    /// One more, of so many bytes.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    #[inline]
    pub fn count(&self, snapshot: &Snapshot, worker: u8, tick: u32) {
        if let Some(line) = self.line {
            snapshot.arena.count(self.id, line, worker, self.packets, self.bytes, tick);
        }
    }
}
