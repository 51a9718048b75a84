//! What control thread and workers share of one switch, and how new tables reach the workers.

use crate::counters::{SwitchBlock, blocks};
use crate::id::SwitchId;
use crate::quota::Quota;
use arc_swap::ArcSwap;
use flow::Snapshot;
use std::sync::{Arc, Mutex, PoisonError};

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
/// Snapshots are never freed on a worker: a million entries would stall its ports. A replaced one waits here until no
/// worker looks at it and is freed by the next [`Publisher::publish`] or [`Publisher::reclaim`].
pub struct Publisher {
    switch: Arc<SwitchShared>,
    replaced: Mutex<Vec<Arc<Snapshot>>>,
}

impl Publisher {
    pub(crate) fn new(switch: Arc<SwitchShared>) -> Arc<Self> {
        Arc::new(Self { switch, replaced: Mutex::default() })
    }

    /// The switch.
    pub fn switch(&self) -> SwitchId {
        self.switch.id
    }

    /// Every batch that begins from now on sees these tables. [`crate::Datapath::barrier`] tells when no earlier one is under way.
    pub fn publish(&self, tables: Arc<Snapshot>) {
        let old = self.switch.tables.swap(tables);
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.push(old);
        free_unused(&mut replaced);
    }

    /// Frees replaced tables that no worker looks at any more; returns how many still wait.
    pub fn reclaim(&self) -> usize {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        free_unused(&mut replaced);
        replaced.len()
    }

    /// At most `per_s` packet-ins per second in the long run, `burst` (at least 1) at once.
    pub fn set_packet_in_rate(&self, per_s: u32, burst: u32) {
        self.switch.quota.set_rate(per_s, burst);
    }
}

/// `ArcSwap::swap` gave every worker that was reading a count of its own, and none can get a new one: a count of 1 is ours.
fn free_unused(replaced: &mut Vec<Arc<Snapshot>>) {
    replaced.retain(|tables| Arc::strong_count(tables) > 1);
}
