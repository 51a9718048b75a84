//! Reading flow entries at once; [`FlowDump`] reads them in portions.

use crate::switch::dump::FlowDump;
use crate::switch::{Switch, translate};
use openflow::{AggregateStats, ErrorCode, Fault, FlowStatsRequest, TableId};
use std::sync::Arc;

impl Switch {
    /// The entries that a request asks for, to be read in portions without holding the switch up.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`, or the `OFPBMC_*` fault of its match.
    pub fn flows(self: &Arc<Self>, request: &FlowStatsRequest) -> Result<FlowDump, Fault> {
        self.check_request(request)?;
        self.plane.refresh();
        Ok(FlowDump::new(self.clone(), translate::filter(request, &self.ends)))
    }

    /// How many flows, groups and meters it has. Takes no look at them.
    pub fn rule_counts(&self) -> [usize; 3] {
        let control = self.control();
        [control.pipeline.entries() as usize, control.groups.len(), control.meters.len()]
    }

    /// Sums over the entries that a request asks for.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`, or the `OFPBMC_*` fault of its match.
    pub fn aggregate(&self, request: &FlowStatsRequest) -> Result<AggregateStats, Fault> {
        self.check_request(request)?;
        self.plane.refresh();
        let sums = self.control().pipeline.aggregate(&translate::filter(request, &self.ends));
        Ok(AggregateStats {
            packet_count: sums.packets,
            byte_count: sums.bytes,
            flow_count: sums.flows,
        })
    }

    fn check_request(&self, request: &FlowStatsRequest) -> Result<(), Fault> {
        if request.table != TableId::ALL && !self.has_table(request.table) {
            return Err(Fault::new(ErrorCode::BadRequestBadTableId, "no such table"));
        }
        request.fields.check()
    }
}
