//! The tables that a switch's pipeline is made of (OpenFlow 1.3.5 §7.3.5.5): all that suiro has, until a controller asks for fewer.
//!
//! Reading: counters and features of each. Setting: [`wanted`] says whether a request can be granted; what it asks for is then in force
//! as a whole, and kept over restarts.

use crate::journal::{Change, TableNames};
use crate::switch::entries::flow_id;
use crate::switch::features::table_features;
use crate::switch::{Control, Switch, wanted};
use flow::Limits;
use openflow::{Fault, FixedText, TableFeatures, TableId, TableStats};

/// Every table, with the names that suiro gives them.
pub(crate) fn every_table(limits: &Limits) -> TableNames {
    (0..limits.tables)
        .map(|table| (table, FixedText::from(format!("table{table}").as_str())))
        .collect()
}

impl Switch {
    /// Whether the pipeline has the table.
    pub fn has_table(&self, table: TableId) -> bool {
        self.control().pipeline.has_table(table.0)
    }

    /// How many tables the pipeline has.
    pub fn tables(&self) -> usize {
        self.control().tables.len()
    }

    /// Counters of every table.
    pub fn table_stats(&self) -> Vec<TableStats> {
        self.plane.refresh();
        let control = self.control();
        let stats = |&table: &u8| {
            let found = control.pipeline.table_stats(table);
            TableStats {
                table: TableId(table),
                max_entries: self.limits.entries_per_table,
                active: found.active,
                lookups: found.lookups,
                matches: found.matches,
            }
        };
        control.tables.keys().map(stats).collect()
    }

    /// What every table can do, in the order in which packets meet them.
    pub fn table_features(&self) -> impl Iterator<Item = TableFeatures> + use<> {
        let (tables, max_entries) = (self.control().tables.clone(), self.limits.entries_per_table);
        let numbers: Vec<u8> = tables.keys().copied().collect();
        tables.into_iter().map(move |(table, name)| TableFeatures {
            name,
            ..table_features(table, &numbers, max_entries)
        })
    }

    /// Makes the pipeline what a request says: these tables and no others. Entries of tables that go, or that now lead to other tables
    /// than before, go without a flow-removed (§7.3.5.5.1).
    ///
    /// # Errors
    /// `OFPTFFC_*`; everything is as before then.
    pub fn set_table_features(&self, wanted: &[TableFeatures]) -> Result<(), Fault> {
        let tables = wanted::check(wanted, self.limits.tables, self.limits.entries_per_table)?;
        let mut control = self.control();
        self.set_tables(&mut control, tables);
        // The answer speaks of what is in force.
        self.publish_locked(&mut control);
        Ok(())
    }

    /// Takes back the tables that the pipeline had when its process ended; to be called before rules are.
    pub fn restore_tables(&self, kept: TableNames) {
        let known: TableNames =
            kept.into_iter().filter(|(table, _)| *table < self.limits.tables).collect();
        if !known.contains_key(&0) {
            return tracing::error!(
                switch = self.name,
                "its kept tables are no pipeline: left out"
            );
        }
        let mut control = self.control();
        control.silent = true;
        self.set_tables(&mut control, known);
        control.silent = false;
    }

    /// Makes these the tables.
    pub(crate) fn set_tables(&self, control: &mut Control, tables: TableNames) {
        if control.tables == tables {
            return;
        }
        let now = self.now();
        let gone = control.pipeline.set_tables(tables.keys().copied().collect(), now);
        if !gone.is_empty() {
            self.touch(control);
        }
        // Before the tables: whatever is on disk when the process ends, no rule is there without its table.
        for entry in &gone {
            self.record(control, || Change::FlowGone(flow_id(entry)));
        }
        let is_usual = tables == every_table(&self.limits);
        self.record(control, || Change::Tables((!is_usual).then(|| tables.clone())));
        control.tables = tables;
    }
}
