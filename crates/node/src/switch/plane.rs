//! What a switch's control state needs of the datapath: a seam, so that tests need no worker threads.

use datapath::{PortCounters, QueueCounters};
use flow::{Action, Nanos, PortNo, Snapshot};
use std::sync::Arc;
use wire::Offload;

/// A frame that a controller sends (`OFPT_PACKET_OUT`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emission {
    /// Ingress port that the actions see; 0 when there is none.
    pub in_port: PortNo,
    /// The frame.
    pub frame: Vec<u8>,
    /// What is still to be done to it.
    pub offload: Offload,
    /// What to do with it.
    pub actions: Vec<Action>,
}

/// One switch's side of the datapath.
///
/// Called with the switch's lock held, so nothing here may call back into the switch or wait for long.
pub trait Plane: Send + Sync {
    /// The workers' time, in which entries' idle time is measured.
    fn now(&self) -> Nanos;

    /// Every batch from now on sees these tables.
    fn publish(&self, tables: Arc<Snapshot>);

    /// Returns when no batch is under way that began with older tables, and all frames sent so far are on their way.
    /// Called without the switch's lock; takes at most one round of each worker.
    fn settle(&self);

    /// Returns when counts have all that rungs past the workers took by now. Called without the switch's lock.
    fn refresh(&self) {}

    /// Whether packet-ins bring whole frames along.
    fn keep_frames(&self, keep: bool);

    /// Runs a controller's frame through its actions.
    fn packet_out(&self, emission: Emission);

    /// A port's counters.
    fn port_counters(&self, port: PortNo) -> PortCounters;

    /// The counters of a port's queues, those that it was given.
    fn queue_counters(&self, port: PortNo) -> Vec<QueueCounters>;

    /// Sets a port's interface administratively up or down; what came of it is told by [`crate::switch::Switch::port_changed`].
    fn set_port_admin(&self, port: PortNo, up: bool);
}
