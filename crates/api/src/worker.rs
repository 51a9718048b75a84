//! What is shown of the workers.

use crate::{Latencies, Latency, PortName, SwitchName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A port's traffic at one worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PortLoadView {
    /// The switch.
    pub switch: SwitchName,
    /// The port.
    pub port: PortName,
    /// Receive queues that this worker polls.
    pub rx_queues: usize,
    /// Frames received here.
    pub rx_frames: u64,
    /// Frames sent here.
    pub tx_frames: u64,
}

/// Packets by the answer of a worker's flow cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CacheView {
    /// Found: no table was searched.
    pub hits: u64,
    /// Nothing was kept of them.
    pub absent: u64,
    /// What was kept may be otherwise since the tables changed.
    pub stale: u64,
    /// Not packets: changes of tables that were compared with them, to keep what they do not concern.
    pub compared: u64,
    /// Searched for at once, since the cache did not pay.
    pub passed_by: u64,
}

/// Frames that one rung of the ladder took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RungView {
    /// Name of the rung: `port`, `pattern`, `uniform`, `whole` or `pass`.
    pub rung: String,
    /// Frames. A large (GSO) frame counts once.
    pub frames: u64,
    /// Bytes, Ethernet header included, no FCS.
    pub bytes: u64,
}

/// A worker. Cycles are the timestamp counter's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    /// Its number.
    pub worker: usize,
    /// Its core.
    pub core: usize,
    /// Frames received from its ports.
    pub frames: u64,
    /// Frames that other workers received and handed over to it.
    pub taken_over: u64,
    /// Frames that crossed more vlinks than one pass allows, each time that they went on.
    #[serde(default)]
    pub went_on: u64,
    /// Frames by the rung of the ladder that took them, in the order in which rungs are tried.
    pub rungs: Vec<RungView>,
    /// Rounds that had frames.
    pub batches: u64,
    /// Polls that found none.
    pub empty_polls: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Panics survived.
    pub restarts: u64,
    /// Answers of its flow cache, for frames that were decided one by one.
    pub cache: CacheView,
    /// Cycles spent receiving.
    pub cycles_rx: u64,
    /// Cycles spent in the tables.
    pub cycles_pipeline: u64,
    /// Cycles spent sending.
    pub cycles_tx: u64,
    /// Cycles spent on polls that found nothing.
    pub cycles_polling: u64,
    /// Cycles a second: busy share = change of (rx + pipeline + tx) / (change of `at_ns` × this).
    pub cycles_per_s: u64,
    /// Its part of each port's traffic.
    pub ports: Vec<PortLoadView>,
}

/// All workers at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkersView {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Each worker.
    pub workers: Vec<WorkerView>,
    /// How long frames stayed, at all of them.
    #[serde(default)]
    pub latency: Latencies,
    /// How long frames waited in ports' queues that had to wait, at all of them.
    #[serde(default)]
    pub queue_wait: Latency,
}
