//! Groups: each bucket works on a copy of its own, except the last bucket of the last group, which takes the packet.

use super::{Kind, MAX_CHAIN, Pending, Run, Trail, flow_hash};
use crate::group::Program;
use crate::packet::{Packet, Sink, Then};
use std::ops::ControlFlow;
use wire::DropReason;

impl<'r, S: Sink> Run<'r, '_, S> {
    /// Runs a group that has something after it: every bucket gets a copy.
    pub(super) fn run_waiting_group(&mut self) -> ControlFlow<()> {
        match self.group.take() {
            Some(id) => {
                let programs = self.choose(id);
                self.run_copies(programs)
            }
            None => ControlFlow::Continue(()),
        }
    }

    /// Runs a group that ends the packet's way: its last bucket takes the packet, and may end in another group.
    pub(super) fn run_last_group(&mut self) {
        while let Some(id) = self.group.take() {
            let Some((last, others)) = self.choose(id).split_last() else { return };
            if self.run_copies(others).is_break() {
                return;
            }
            self.depth += 1;
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

    fn run_copies(&mut self, programs: &[Program]) -> ControlFlow<()> {
        if programs.is_empty() {
            return ControlFlow::Continue(());
        }
        self.flush(Then::More);
        for program in programs {
            self.spend(1)?;
            program.tally.count(self.packet.frame_len);
            self.fork(self.depth + 1, |copy| copy.finish_with(&program.actions));
        }
        ControlFlow::Continue(())
    }
}
