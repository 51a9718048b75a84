//! Since when each part of a switch is as a snapshot shows it.
//!
//! Every snapshot of a node has a serial of its own, and later ones of a switch have higher ones. A part's version is the serial of the first
//! snapshot that shows it as it is. So what was found out by snapshot `made` still holds while no part that it rests on
//! has a version above `made`.

mod log;

pub(crate) use log::{Log, Pending};

use std::sync::Arc;

/// The version of one table, and its last changes.
#[derive(Clone, Default)]
pub(crate) struct TableVersion {
    pub since: u64,
    pub log: Arc<Log>,
}

/// The versions of a switch's parts.
#[derive(Clone, Default)]
pub(crate) struct Versions {
    /// The switch's first snapshot: no other switch has it.
    pub born: u64,
    tables: Arc<[TableVersion]>,
    /// The highest of the tables' versions.
    pub newest_table: u64,
    /// Which bits of a key any table looks at.
    pub layout: u64,
    pub ports: u64,
    /// What decides where a port's frames go if that is table 0 alone: it, the ports and the settings.
    pub front: u64,
    pub settings: u64,
    pub groups: u64,
    pub meters: u64,
}

impl Versions {
    /// Those of a switch's first snapshot.
    pub fn of(serial: u64) -> Self {
        Self {
            born: serial,
            layout: serial,
            ports: serial,
            front: serial,
            settings: serial,
            groups: serial,
            meters: serial,
            ..Self::default()
        }
    }

    /// The version of a table; 0 if it has never had an entry.
    pub fn table(&self, number: u8) -> u64 {
        self.tables.get(usize::from(number)).map_or(0, |table| table.since)
    }

    /// The version of a table, with what changed lately.
    pub fn table_version(&self, number: u8) -> Option<&TableVersion> {
        self.tables.get(usize::from(number))
    }

    /// Takes in the tables as they are from now on.
    pub fn set_tables(&mut self, tables: Arc<[TableVersion]>) {
        self.newest_table = tables.iter().map(|table| table.since).max().unwrap_or(0);
        self.tables = tables;
    }
}
