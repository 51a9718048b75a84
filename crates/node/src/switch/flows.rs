//! Reading flow entries and tables at once; [`FlowDump`] reads them in portions.

use crate::switch::dump::FlowDump;
use crate::switch::features::table_features;
use crate::switch::{Switch, translate, wanted};
use openflow::{
    AggregateStats, ErrorCode, Fault, FlowStatsRequest, TableFeatures, TableId, TableStats,
};
use std::sync::Arc;

impl Switch {
    /// The entries that a request asks for, to be read in portions without holding the switch up.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`, or the `OFPBMC_*` fault of its match.
    pub fn flows(self: &Arc<Self>, request: &FlowStatsRequest) -> Result<FlowDump, Fault> {
        self.check_request(request)?;
        Ok(FlowDump::new(self.clone(), translate::filter(request)))
    }

    /// Sums over the entries that a request asks for.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`, or the `OFPBMC_*` fault of its match.
    pub fn aggregate(&self, request: &FlowStatsRequest) -> Result<AggregateStats, Fault> {
        self.check_request(request)?;
        let sums = self.control().pipeline.aggregate(&translate::filter(request));
        Ok(AggregateStats {
            packet_count: sums.packets,
            byte_count: sums.bytes,
            flow_count: sums.flows,
        })
    }

    fn check_request(&self, request: &FlowStatsRequest) -> Result<(), Fault> {
        if request.table != TableId::ALL && request.table.0 >= self.limits.tables {
            return Err(Fault::new(ErrorCode::BadRequestBadTableId, "no such table"));
        }
        request.fields.check()
    }

    /// Counters of every table.
    pub fn table_stats(&self) -> Vec<TableStats> {
        let control = self.control();
        let stats = |table| {
            let found = control.pipeline.table_stats(table);
            TableStats {
                table: TableId(table),
                max_entries: self.limits.entries_per_table,
                active: found.active,
                lookups: found.lookups,
                matches: found.matches,
            }
        };
        (0..self.limits.tables).map(stats).collect()
    }

    /// Sets what the tables can do: granted when they can do that already.
    ///
    /// # Errors
    /// `OFPTFFC_*`.
    pub fn set_table_features(&self, tables: &[TableFeatures]) -> Result<(), Fault> {
        wanted::check(tables, self.limits.tables, self.limits.entries_per_table)
    }

    /// What every table can do.
    pub fn table_features(&self) -> impl Iterator<Item = TableFeatures> + use<> {
        let limits = self.limits;
        (0..limits.tables)
            .map(move |table| table_features(table, limits.tables, limits.entries_per_table))
    }
}
