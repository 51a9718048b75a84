//! Groups: each bucket works on a copy of its own, except the last bucket of the last group, which takes the packet.

use super::{Kind, Origin, Pending, Run, Trail, flow_hash};
use crate::group::Program;
use crate::limits::MAX_CHAIN;
use crate::packet::{Packet, Sink, Then};
use std::ops::ControlFlow;
use wire::DropReason;

impl<'r, S: Sink> Run<'r, '_, S> {
    /// Runs a group that has something after it: every bucket gets a copy.
    pub(super) fn run_waiting_group(&mut self) -> ControlFlow<()> {
        let Some((id, origin)) = self.group.take() else { return ControlFlow::Continue(()) };
        let programs = self.choose(id);
        self.run_copies(programs, origin)
    }

    /// Runs a group that ends the packet's way: its last bucket takes the packet, and may end in another group.
    pub(super) fn run_last_group(&mut self) {
        while let Some((id, origin)) = self.group.take() {
            let Some((last, others)) = self.choose(id).split_last() else { return };
            if self.run_copies(others, origin).is_break() {
                return;
            }
            self.depth += 1;
            self.origin = of_bucket(origin);
            last.tally.count(self.packet.frame_len);
            if self.apply(&last.actions).is_break() {
                return;
            }
        }
    }

    /// Runs `work` on a copy of the packet as it is now, inside `depth` groups.
    pub(super) fn fork(&mut self, depth: u8, work: impl FnOnce(Run<'_, '_, S>) -> Trail) {
        let mut head = self.packet.head.clone();
        let original = &*self.packet;
        let mut copy = Packet {
            head: &mut head,
            key: original.key,
            layers: original.layers,
            offload: original.offload,
            frame_len: original.frame_len,
            queue: original.queue,
        };
        self.trail = work(Run {
            env: self.env,
            index: self.index,
            packet: &mut copy,
            sink: &mut *self.sink,
            trail: self.trail,
            pending: Pending::default(),
            group: None,
            origin: self.origin,
            kind: Kind::Copy,
            depth,
            alive: true,
        });
    }

    /// The buckets of a group that this packet takes.
    fn choose(&mut self, id: u32) -> &'r [Program] {
        let group = self.env.groups.get(id).filter(|_| self.depth < MAX_CHAIN);
        let chosen: &[Program] = group.map_or(&[], |group| {
            group.tally().count(self.packet.frame_len);
            group.choose(|| flow_hash(&self.packet.key))
        });
        if chosen.is_empty() {
            self.trail.lost = Some(DropReason::NoBucket);
        }
        chosen
    }

    fn run_copies(&mut self, programs: &[Program], origin: Origin) -> ControlFlow<()> {
        if programs.is_empty() {
            return ControlFlow::Continue(());
        }
        self.flush(Then::More);
        for program in programs {
            self.spend(1)?;
            program.tally.count(self.packet.frame_len);
            self.fork(self.depth + 1, |mut copy| {
                copy.enter(of_bucket(origin));
                copy.finish_with(&program.actions)
            });
        }
        ControlFlow::Continue(())
    }
}

/// What a bucket sends to the controller is no table miss, whatever entry named the group.
fn of_bucket(origin: Origin) -> Origin {
    Origin { miss: false, ..origin }
}
