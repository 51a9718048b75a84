//! The control thread's side of a switch's tables.

use crate::config::{Limits, SwitchConfig};
use crate::flow_mod::{FlowMod, FlowModError};
use crate::snapshot::Snapshot;
use crate::stats::{Aggregate, FlowFilter, FlowStats, Removed, TableStats};
use crate::time::Nanos;
use std::sync::Arc;

/// The tables of one switch, as their owner sees them.
pub struct Pipeline {
    limits: Limits,
    config: SwitchConfig,
}

impl Pipeline {
    /// An empty pipeline.
    pub fn new(limits: Limits) -> Self {
        Self { limits, config: SwitchConfig::default() }
    }

    /// Replaces the settings.
    pub fn set_config(&mut self, config: SwitchConfig) {
        self.config = config;
    }

    /// Applies one flow-mod. Returns the entries that went and wanted it told.
    ///
    /// # Errors
    /// The tables are as before.
    pub fn flow_mod(&mut self, _change: &FlowMod, _now: Nanos) -> Result<Vec<Removed>, FlowModError> {
        Ok(Vec::new())
    }

    /// The entries that `filter` selects, in no particular order.
    pub fn flows(&self, _filter: &FlowFilter, _now: Nanos) -> impl Iterator<Item = FlowStats> {
        std::iter::empty()
    }

    /// Sums over the entries that `filter` selects.
    pub fn aggregate(&self, _filter: &FlowFilter) -> Aggregate {
        Aggregate::default()
    }

    /// Statistics of one table; zeros for one that was never used.
    pub fn table_stats(&self, _table: u8) -> TableStats {
        TableStats { limit: self.limits.entries_per_table, ..TableStats::default() }
    }

    /// Removes entries whose time has come.
    pub fn expire(&mut self, _now: Nanos) -> Vec<Removed> {
        Vec::new()
    }

    /// When [`Pipeline::expire`] has work next, at the earliest; `None` if no entry has a timeout.
    pub fn next_expiry(&self) -> Option<Nanos> {
        None
    }

    /// The state as it is now, for workers. Cheap, and free if nothing changed.
    pub fn snapshot(&mut self) -> Arc<Snapshot> {
        Arc::new(Snapshot::default())
    }
}
