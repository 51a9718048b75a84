//! State of one port that the control thread and all workers share.

use crate::counters::{PortBlock, blocks};
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
    pub(crate) counters: Box<[PortBlock]>,
}

/// Whose frames no worker saw: what a rung past it took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PastWorkers {
    /// Came in.
    pub rx: Sent,
    /// Left.
    pub tx: Sent,
}

impl PortShared {
    pub(crate) fn new(at: PortAt, mtu: u32, workers: usize) -> Arc<Self> {
        Arc::new(Self {
            at,
            mtu: AtomicU32::new(mtu),
            up: AtomicBool::new(true),
            // The last is for frames that no worker saw.
            counters: blocks(workers + 1),
        })
    }
}
