//! What control thread and workers share of one switch, and how new tables reach the workers.

use crate::counters::{SwitchBlock, blocks};
use crate::id::SwitchId;
use crate::quota::Quota;
use arc_swap::ArcSwap;
use flow::Snapshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// One switch, outside any worker: survives a worker's panic.
pub(crate) struct SwitchShared {
    pub(crate) id: SwitchId,
    pub(crate) tables: ArcSwap<Snapshot>,
    pub(crate) quota: Quota,
    /// Whether packet-ins take the whole frame along.
    keeps_frames: AtomicBool,
    /// By worker, and a last one for frames that no worker saw.
    pub(crate) counters: Box<[SwitchBlock]>,
}

impl SwitchShared {
    pub(crate) fn new(
        id: SwitchId,
        tables: Arc<Snapshot>,
        quota: Quota,
        workers: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            tables: ArcSwap::new(tables),
            quota,
            keeps_frames: AtomicBool::new(false),
            counters: blocks(workers + 1),
        })
    }

    /// Bytes that a packet-in takes along of a frame of which `max_len` (0xffff: all) are asked for.
    pub(crate) fn packet_in_limit(&self, max_len: u16) -> usize {
        if max_len == u16::MAX || self.keeps_frames.load(Relaxed) {
            usize::MAX
        } else {
            usize::from(max_len)
        }
    }
}

/// Publishes a switch's tables; the control thread's handle.
///
/// Tables are never freed on a worker, where a million entries would stall its ports: the [`flow::Pipeline`] that made a snapshot
/// holds it until no one else does. So keep the pipeline until the switch is removed.
pub struct Publisher {
    switch: Arc<SwitchShared>,
}

impl Publisher {
    pub(crate) fn new(switch: Arc<SwitchShared>) -> Arc<Self> {
        Arc::new(Self { switch })
    }

    /// The switch.
    pub fn switch(&self) -> SwitchId {
        self.switch.id
    }

    /// The tables that batches see now.
    pub fn tables(&self) -> Arc<Snapshot> {
        self.switch.tables.load_full()
    }

    /// Every batch that begins from now on sees these tables. [`crate::Datapath::barrier`] tells when no earlier one is under way.
    pub fn publish(&self, tables: Arc<Snapshot>) {
        self.switch.tables.store(tables);
    }

    /// At most `per_s` packet-ins per second in the long run, `burst` (at least 1) at once.
    pub fn set_packet_in_rate(&self, per_s: u32, burst: u32) {
        self.switch.quota.set_rate(per_s, burst);
    }

    /// Whether packet-ins bring the whole frame, however little of it is asked for, so that it can be kept until the controller
    /// decides.
    pub fn set_keeps_frames(&self, keeps: bool) {
        self.switch.keeps_frames.store(keeps, Relaxed);
    }
}
