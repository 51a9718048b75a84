//! How long each stage of a round takes for frames that somebody asked for.
//!
//! A batch goes through its stages as a whole: each of its frames stays in a stage for the stage's time, and has a part of it as its own service. A worker
//! notes both once for each round that has such a frame, weighted by how many there are. What comes by vlinks has no round of its own and is not timed.
//! A frame that waits in a port's queue is known again by its bytes as it leaves: one that rules have rewritten may not be.

use super::{CaptureId, Filter};
use crate::counters::{Histogram, sum};
use crate::id::{PortAt, SwitchId};
use api::Latency;
use flow::PortNo;
use port::Body;
use std::sync::Arc;

/// What a frame goes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It is taken from its source.
    Receive,
    /// It waits for the worker that it was handed over to.
    Handover,
    /// It is parsed, classified, and has its actions done.
    Tables,
    /// It is given to its destinations.
    Send,
    /// All of these.
    All,
    /// It waits in a port's queue.
    Queue,
}

impl Stage {
    /// All of them, in the order of a frame's way.
    pub const ALL: [Self; 6] =
        [Self::Receive, Self::Handover, Self::Tables, Self::Send, Self::All, Self::Queue];
}

/// Of each stage, for how long frames stayed, and how much of that was their own.
#[derive(Default)]
pub(crate) struct Stages([(Histogram, Histogram); Stage::ALL.len()]);

impl Stages {
    fn note(&self, stage: Stage, ns: u64, (frames, of): (u64, u64)) {
        let (stayed, own) = &self.0[stage as usize];
        stayed.note(ns, frames);
        own.note(ns / of.max(1), frames);
    }
}

/// What a round took, in nanoseconds, if that is known.
#[derive(Clone, Copy)]
pub(crate) struct Spent {
    /// None of frames that another worker received.
    pub(crate) receive: Option<u64>,
    pub(crate) tables: u64,
    pub(crate) send: u64,
    /// Frames in it.
    pub(crate) frames: u64,
}

/// One worker's part in a timing.
pub(crate) struct Timer {
    id: CaptureId,
    switch: SwitchId,
    filter: Filter,
    stages: Arc<Stages>,
    /// Which frames of the round it is to time, as bits.
    wanted: u64,
}

/// A timing under way. [`crate::Datapath::end_timing`] ends it.
pub struct Timing {
    id: CaptureId,
    /// By worker.
    stages: Vec<Arc<Stages>>,
}

/// Makes a timing, and a timer for each of so many workers.
pub(crate) fn begin(
    id: CaptureId,
    (switch, filter): (SwitchId, &Filter),
    workers: usize,
) -> (Timing, Vec<Timer>) {
    let stages: Vec<Arc<Stages>> = (0..workers).map(|_| Arc::default()).collect();
    let timer = |stages: &Arc<Stages>| {
        let (filter, stages) = (filter.clone(), Arc::clone(stages));
        Timer { id, switch, filter, stages, wanted: 0 }
    };
    let timers = stages.iter().map(timer).collect();
    (Timing { id, stages }, timers)
}

impl Timing {
    /// Its number.
    pub fn id(&self) -> CaptureId {
        self.id
    }

    /// Of a stage, for how long frames stayed in it, and how much of that was their own.
    pub fn times(&self, stage: Stage) -> (Latency, Latency) {
        let all = || self.stages.iter().map(|stages| &stages.0[stage as usize]);
        (sum(all().map(|(stayed, _)| stayed)), sum(all().map(|(_, own)| own)))
    }
}

impl Timer {
    pub(super) fn id(&self) -> CaptureId {
        self.id
    }

    /// Looks which frames it is to time of a round, which came in at a switch.
    pub(super) fn look<'f>(
        &mut self,
        switch: SwitchId,
        frames: impl Iterator<Item = (PortNo, &'f [u8], Body<'f>)>,
    ) {
        self.wanted = 0;
        if switch != self.switch {
            return;
        }
        for (index, (port, head, body)) in frames.enumerate().take(u64::BITS as usize) {
            let is_wanted = self.filter.takes(PortAt { switch, port }, head, body);
            self.wanted |= u64::from(is_wanted) << index;
        }
    }

    /// Notes what the round took. `waits`: for how long each of its frames had waited for another worker.
    pub(super) fn note(&mut self, spent: Spent, waits: impl Iterator<Item = u64>) {
        let wanted = std::mem::take(&mut self.wanted);
        let (frames, of) = (u64::from(wanted.count_ones()), spent.frames);
        if frames == 0 {
            return;
        }
        let mut all = spent.tables + spent.send;
        self.stages.note(Stage::Tables, spent.tables, (frames, of));
        self.stages.note(Stage::Send, spent.send, (frames, of));
        if let Some(receive) = spent.receive {
            all += receive;
            self.stages.note(Stage::Receive, receive, (frames, of));
            self.stages.note(Stage::All, all, (frames, of));
            return;
        }
        for (index, wait) in waits.enumerate().take(u64::BITS as usize) {
            if wanted >> index & 1 != 0 {
                self.stages.note(Stage::Handover, wait, (1, 1));
                self.stages.note(Stage::All, wait + all, (1, 1));
            }
        }
    }

    /// Notes that a frame waited in a queue of this port, if it is one that it is to time.
    pub(super) fn queued(&self, at: PortAt, (head, body): (&[u8], Body<'_>), ns: u64) {
        if at.switch == self.switch && self.filter.takes(at, head, body) {
            self.stages.note(Stage::Queue, ns, (1, 1));
        }
    }
}
