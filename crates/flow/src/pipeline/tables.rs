//! Which tables the pipeline has: a controller may take some out and bring them back (OpenFlow 1.3.5 §7.3.5.5.1).

use super::Pipeline;
use crate::stats::{FlowFilter, FlowStats};
use crate::store::RecordId;
use crate::table_set::TableSet;
use crate::time::Nanos;

impl Pipeline {
    /// Whether the pipeline has the table.
    pub fn has_table(&self, table: u8) -> bool {
        self.present.contains(table)
    }

    /// Makes these the tables of the pipeline; table 0, where every packet begins (§5.1), and none beyond the limits. Returns the
    /// entries that went.
    ///
    /// Those of tables that are removed go, and those of tables whose capabilities change. These are the tables before the last one
    /// that comes or goes, because where their entries may lead to changes. So no goto is left that leads nowhere. The controller is
    /// not told of them (§7.3.5.5.1: "no `ofp_flow_removed` messages are sent").
    pub fn set_tables(&mut self, tables: TableSet, now: Nanos) -> Vec<FlowStats> {
        debug_assert!(tables.contains(0), "a pipeline begins at table 0");
        let Some(last) = self.present.last_difference(&tables) else { return Vec::new() };
        self.present = tables;
        let all = FlowFilter::default();
        let concerned = self.tables.iter().flatten().filter(|table| table.number <= last);
        let ids: Vec<RecordId> =
            concerned.flat_map(|table| table.select(&self.store, &all)).collect();
        let mut gone = Vec::with_capacity(ids.len());
        for id in ids {
            gone.push(self.stats_of(id, now));
            self.take_out(id);
        }
        self.arm_renewed();
        gone
    }
}
