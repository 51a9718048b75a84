//! State of one port that the control thread and all workers share.

use crate::counters::PortBlock;
use crate::id::PortAt;
use port::Sent;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

/// Name, settings and counters of one port.
pub(crate) struct PortShared {
    pub(crate) at: PortAt,
    /// Longest packet after the Ethernet header and VLAN tags.
    pub(crate) mtu: AtomicU32,
    pub(crate) up: AtomicBool,
    /// By worker, and a last one for frames that no worker saw; those of an earlier life of the port go on.
    pub(crate) counters: Arc<[PortBlock]>,
}

/// Whose frames no worker saw: what a rung past it took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PastWorkers {
    /// Came in.
    pub rx: Sent,
    /// Of those, how many a meter dropped.
    pub metered: u64,
    /// Left.
    pub tx: Sent,
}

impl PortShared {
    pub(crate) fn new(at: PortAt, mtu: u32, counters: Arc<[PortBlock]>) -> Arc<Self> {
        Arc::new(Self { at, mtu: AtomicU32::new(mtu), up: AtomicBool::new(true), counters })
    }
}
