//! What went through a port's queues.

use api::Latency;

/// What went through a queue, over all workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueCounters {
    /// Its number.
    pub id: u32,
    /// Frames that left; a large (GSO) frame counts once.
    pub tx_frames: u64,
    /// Their bytes, Ethernet header included, no FCS.
    pub tx_bytes: u64,
    /// Frames that did not leave: because the queue was full, or for any reason for which the port dropped them.
    pub tx_errors: u64,
    /// Frames that wait now.
    pub waiting: u64,
    /// How long frames waited that had to wait, from the beginning of their round.
    pub wait: Latency,
    /// Nanoseconds since it was configured.
    pub age_ns: u64,
}
