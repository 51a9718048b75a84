//! Counters as they are read: plain values, summed over the workers.

use crate::id::PortAt;
use crate::rung::Rung;
use flow::CacheCounts;
use wire::DropReason;

/// What went through a port since it was attached.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortCounters {
    /// Frames into the switch. A large (GSO) frame counts once.
    pub rx_frames: u64,
    /// Their bytes, Ethernet header included, no FCS.
    pub rx_bytes: u64,
    /// Frames out of the switch.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that the source offered and that did not reach the pipeline.
    pub rx_drops: Vec<(DropReason, u64)>,
    /// Frames that the pipeline sent here and that did not leave.
    pub tx_drops: Vec<(DropReason, u64)>,
}

/// What a switch did with frames beside sending them: see [`PortCounters`] of its ports for those.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwitchCounters {
    /// Verdicts of the pipeline and losses at its ports (in service now), by reason.
    pub drops: Vec<(DropReason, u64)>,
    /// Frames handed to the controller.
    pub packet_ins: u64,
    /// Frames that the controller injected.
    pub packet_outs: u64,
}

/// Cycles of the timestamp counter spent by stage, in rounds that had frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StageCycles {
    /// Taking frames from their source.
    pub rx: u64,
    /// Parsing, tables, actions, vlinks.
    pub pipeline: u64,
    /// Handing frames to their destinations.
    pub tx: u64,
}

impl StageCycles {
    /// All stages.
    pub fn busy(&self) -> u64 {
        self.rx + self.pipeline + self.tx
    }
}

/// What a worker's time went into: nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkerTimes {
    /// Core it is pinned to.
    pub core: usize,
    /// Taking frames from their sources, and handing them over to other workers.
    pub rx_ns: u64,
    /// Parsing, tables, actions, vlinks.
    pub pipeline_ns: u64,
    /// Handing frames to their destinations.
    pub tx_ns: u64,
    /// Since the workers' start.
    pub since_start_ns: u64,
}

/// A port's traffic at one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortLoad {
    /// The port.
    pub at: PortAt,
    /// How many of its receive queues this worker polls.
    pub rx_queues: usize,
    /// Frames received here.
    pub rx_frames: u64,
    /// Frames sent here.
    pub tx_frames: u64,
}

/// Frames that one rung of the ladder took, of those received or taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RungCounters {
    /// Frames. A large (GSO) frame counts once.
    pub frames: u64,
    /// Bytes, Ethernet header included, no FCS.
    pub bytes: u64,
}

/// One worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerStats {
    /// Number of the worker, from 0.
    pub worker: usize,
    /// Core it is pinned to.
    pub core: usize,
    /// Frames received from its queues.
    pub frames: u64,
    /// Frames that other workers received and handed over to it.
    pub taken_over: u64,
    /// Frames that crossed more vlinks than one pass allows, each time that they went on.
    pub went_on: u64,
    /// Frames and bytes that each rung of the ladder took, in the order of [`Rung::ALL`].
    pub rungs: [RungCounters; Rung::ALL.len()],
    /// Rounds that had frames.
    pub batches: u64,
    /// Polls that found none.
    pub empty_polls: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Panics survived.
    pub restarts: u64,
    /// Answers of its flow cache.
    pub cache: CacheCounts,
    /// Cost of the rounds that had frames.
    pub cycles: StageCycles,
    /// Cycles spent on polls that found none; neither these nor `cycles` count while it sleeps.
    pub cycles_polling: u64,
    /// Cycles per second, measured since the start.
    pub cycles_per_s: u64,
    /// Its part of every port's traffic, in port order.
    pub ports: Vec<PortLoad>,
}

/// Which worker serves a receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// Index in [`crate::Queues::rx`].
    pub queue: usize,
    /// The worker.
    pub worker: usize,
    /// Its core.
    pub core: usize,
}
