//! One packet through its programs, and through further tables where its trace ends early.

use crate::action::{Action, Output};
use crate::action_set::ActionSet;
use crate::cache::{End, Trace};
use crate::config::Miss;
use crate::exec::{NO_COOKIE, Origin, Run, Tables, Trail, WHOLE};
use crate::limits::LANES;
use crate::packet::Sink;
use crate::program::{Onward, Tells};
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::template::Scratch;
use crate::time::Nanos;
use std::ops::ControlFlow;

/// Walks packets of one snapshot.
pub(super) struct Walker<'w> {
    snapshot: &'w Snapshot,
    worker: u8,
    scratch: &'w mut Scratch,
    tick: u32,
}

impl<'w> Walker<'w> {
    pub fn new(snapshot: &'w Snapshot, worker: u8, scratch: &'w mut Scratch, now: Nanos) -> Self {
        Self { snapshot, worker, scratch, tick: tick(now) }
    }

    /// Runs the programs of a trace, which has been counted, and what may come after it.
    pub fn follow<S: Sink>(&mut self, mut run: Run<'_, '_, S>, trace: &Trace) -> Trail {
        let mut set = ActionSet::default();
        let mut table = 0;
        for &id in trace.hits() {
            match self.step(&mut run, &mut set, table, id) {
                ControlFlow::Break(()) => return run.finish(&set),
                ControlFlow::Continue(next) => table = next,
            }
        }
        match trace.end {
            End::Done => {}
            End::Miss(table) => self.miss(&mut run, table),
            End::Resume(table) => self.go_on(&mut run, &mut set, table),
        }
        run.finish(&set)
    }

    /// Runs the program of the only entry on a packet's way, which has been counted.
    pub fn run_last<S: Sink>(&self, mut run: Run<'_, '_, S>, id: RecordId) {
        let mut set = ActionSet::default();
        let _cut_or_not = self.step(&mut run, &mut set, 0, id);
        run.finish(&set);
    }

    /// A packet for which table 0 has no entry.
    pub fn miss_first<S: Sink>(&mut self, mut run: Run<'_, '_, S>) {
        self.miss(&mut run, 0);
        run.finish(&ActionSet::default());
    }

    /// Searches tables and runs what they say, from `table` on.
    fn go_on<S: Sink>(&mut self, run: &mut Run<'_, '_, S>, set: &mut ActionSet, mut table: u8) {
        loop {
            let Some(id) = self.look_up(run, table) else { return self.miss(run, table) };
            match self.step(run, set, table, id) {
                ControlFlow::Continue(next) if next > table => table = next,
                _ => return,
            }
        }
    }

    /// Searches one table for the packet as it is now, and counts.
    fn look_up<S: Sink>(&mut self, run: &Run<'_, '_, S>, table: u8) -> Option<RecordId> {
        let view = self.snapshot.view.table(table)?;
        let mut found = [RecordId::NONE; LANES];
        let packet = run.packet();
        let probes = view.template.search(
            self.snapshot.searched(),
            &[&packet.key],
            self.scratch,
            &mut found,
        );
        let id = found[0];
        view.counters.add(self.worker, 1, u64::from(id.is_some()), u64::from(probes));
        if id.is_some() {
            self.snapshot.arena.count(
                id,
                self.snapshot.line(id),
                self.worker,
                1,
                u64::from(packet.frame_len),
                self.tick,
            );
        }
        id.is_some().then_some(id)
    }

    /// Runs one entry's program. Gives the next table, or `table` if there is none.
    fn step<S: Sink>(
        &self,
        run: &mut Run<'_, '_, S>,
        set: &mut ActionSet,
        table: u8,
        id: RecordId,
    ) -> ControlFlow<(), u8> {
        let program = self.snapshot.programs.get(self.snapshot.line(id).rule().program);
        let origin = self.snapshot.origin(id, program, table);
        if origin.miss
            && program.tells == Tells::Perhaps
            && self.snapshot.config.miss == Miss::Orphaned
        {
            self.miss(run, table);
            return ControlFlow::Break(());
        }
        run.enter(origin);
        let instructions = &program.instructions;
        if let Some(meter) = instructions.meter {
            run.meter(meter)?;
        }
        run.apply(&instructions.apply)?;
        if instructions.clear {
            set.clear();
        }
        set.write(&instructions.write);
        if let Some((value, mask)) = instructions.metadata {
            run.write_metadata(value, mask)?;
        }
        ControlFlow::Continue(match program.onward {
            Onward::End => table,
            Onward::Goto(next) | Onward::Edited(next) => next,
        })
    }

    fn miss<S: Sink>(&self, run: &mut Run<'_, '_, S>, table: u8) {
        run.enter(Origin { table, cookie: NO_COOKIE, miss: true });
        let _cut_or_not = match self.snapshot.config.miss {
            Miss::Drop => run.stop(wire::DropReason::NoMatch),
            Miss::Normal | Miss::Orphaned => run.apply(&[Action::Output(Output::Normal)]),
            Miss::Controller => run.apply(&[Action::Output(Output::Controller { max_len: WHOLE })]),
        };
    }
}

impl<S: Sink> Tables<S> for Walker<'_> {
    fn walk(&mut self, mut run: Run<'_, '_, S>) -> Trail {
        let mut set = ActionSet::default();
        self.go_on(&mut run, &mut set, 0);
        run.finish(&set)
    }
}
