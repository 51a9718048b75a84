//! State of one port that the control thread and all workers share.

use crate::counters::PortBlock;
use crate::id::{PortAt, Side};
use port::{Drops, Sent};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Name, settings and counters of one port.
pub(crate) struct PortShared {
    pub(crate) at: PortAt,
    /// Longest packet after the Ethernet header and VLAN tags.
    pub(crate) mtu: AtomicU32,
    pub(crate) up: AtomicBool,
    /// Sides on which some capture sees its frames, as bits.
    pub(crate) tapped: AtomicU8,
    /// By worker, and a last one for frames that no worker saw; those of an earlier life of the port go on.
    pub(crate) counters: Arc<[PortBlock]>,
    /// Frames that wait in its queues, at all workers.
    pub(crate) held: Arc<AtomicU64>,
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
    /// By this queue, if the port has queues.
    pub queue: u32,
}

impl PortShared {
    pub(crate) fn new(at: PortAt, mtu: u32, counters: Arc<[PortBlock]>) -> Arc<Self> {
        let (mtu, up, held) = (AtomicU32::new(mtu), AtomicBool::new(true), Arc::default());
        let tapped = AtomicU8::new(0);
        Arc::new(Self { at, mtu, up, tapped, counters, held })
    }

    /// Whether some capture sees what passes on this side.
    #[inline]
    pub(crate) fn is_tapped(&self, side: Side) -> bool {
        self.tapped.load(Relaxed) & side as u8 != 0
    }

    /// Has what is lost from now on be lost here.
    #[inline]
    pub(crate) fn at<'d>(&self, drops: &'d mut Drops) -> &'d mut Drops {
        let drops = drops.at(self.at);
        if self.is_tapped(Side::Outside) {
            return drops.watch();
        }
        drops
    }
}
