//! Which tables the pipeline has: a controller may take some out and bring them back (OpenFlow 1.3.5 §7.3.5.5.1).

use super::Pipeline;
use crate::stats::{FlowFilter, FlowStats};
use crate::store::RecordId;
use crate::time::Nanos;

/// A set of table numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableSet([u64; 4]);

impl TableSet {
    /// Whether the table is one of them.
    pub fn contains(&self, table: u8) -> bool {
        self.0[usize::from(table / 64)] >> (table % 64) & 1 == 1
    }

    /// The highest table that one of two sets has and the other has not.
    fn last_difference(&self, other: &Self) -> Option<u8> {
        (0..=u8::MAX).rev().find(|&table| self.contains(table) != other.contains(table))
    }
}

impl FromIterator<u8> for TableSet {
    fn from_iter<I: IntoIterator<Item = u8>>(tables: I) -> Self {
        let mut set = Self::default();
        for table in tables {
            set.0[usize::from(table / 64)] |= 1 << (table % 64);
        }
        set
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_difference_is_found_whichever_set_has_it() {
        let set = |tables: &[u8]| TableSet::from_iter(tables.iter().copied());
        let all = TableSet::from_iter(0..254);
        assert_eq!(set(&[0, 1, 64, 255]).last_difference(&set(&[0, 2, 64, 255])), Some(2));
        assert_eq!(all.last_difference(&set(&[0, 253])), Some(252));
        assert_eq!(set(&[0]).last_difference(&all), Some(253));
        assert_eq!(all.last_difference(&all), None);
        assert!(all.contains(253) && !all.contains(254));
    }
}
