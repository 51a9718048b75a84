//! What control thread and workers share of one switch, and how new tables reach the workers.

use crate::counters::{SwitchBlock, blocks};
use crate::id::SwitchId;
use crate::quota::Quota;
use arc_swap::ArcSwap;
use flow::Snapshot;
use std::sync::Arc;

/// One switch, outside any worker: survives a worker's panic.
pub(crate) struct SwitchShared {
    pub(crate) id: SwitchId,
    pub(crate) tables: ArcSwap<Snapshot>,
    pub(crate) quota: Quota,
    pub(crate) counters: Box<[SwitchBlock]>,
}

impl SwitchShared {
    pub(crate) fn new(
        id: SwitchId,
        tables: Arc<Snapshot>,
        quota: Quota,
        workers: usize,
    ) -> Arc<Self> {
        Arc::new(Self { id, tables: ArcSwap::new(tables), quota, counters: blocks(workers) })
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

    /// Every batch that begins from now on sees these tables. [`crate::Datapath::barrier`] tells when no earlier one is under way.
    pub fn publish(&self, tables: Arc<Snapshot>) {
        self.switch.tables.store(tables);
    }

    /// At most `per_s` packet-ins per second in the long run, `burst` (at least 1) at once.
    pub fn set_packet_in_rate(&self, per_s: u32, burst: u32) {
        self.switch.quota.set_rate(per_s, burst);
    }
}
