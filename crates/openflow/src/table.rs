//! What a table holds and what it can do (OpenFlow 1.3.5 §7.3.5.4, §7.3.5.5).

use crate::fixed_text::FixedText;
use crate::ids::TableId;
use crate::oxm::OxmId;

/// A table's counters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TableStats {
    /// The table.
    pub table: TableId,
    /// 1.0 only: most entries. From 1.3 on the table features say it, and this is neither encoded nor decoded.
    pub max_entries: u32,
    /// Entries now.
    pub active: u32,
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that hit an entry.
    pub matches: u64,
}

/// What an action or instruction is, without its arguments.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeId {
    /// A type number of the specification (`OFPAT_*` or `OFPIT_*`).
    Standard(u16),
    /// An experimenter's.
    Experimenter {
        /// Who defined it.
        experimenter: u32,
        /// What follows the experimenter id.
        body: Vec<u8>,
    },
}

/// Which entries a feature property speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryScope {
    /// Ordinary entries.
    Regular,
    /// The table-miss entry.
    Miss,
}

/// One property of a table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TableProperty {
    /// Instructions that entries may have.
    Instructions(EntryScope, Vec<TypeId>),
    /// Tables that goto may name.
    NextTables(EntryScope, Vec<TableId>),
    /// Actions that may be written.
    WriteActions(EntryScope, Vec<TypeId>),
    /// Actions that may be applied.
    ApplyActions(EntryScope, Vec<TypeId>),
    /// Fields that may be matched.
    Match(Vec<OxmId>),
    /// Fields that may be left out of a match.
    Wildcards(Vec<OxmId>),
    /// Fields that written set-field actions may name.
    WriteSetField(EntryScope, Vec<OxmId>),
    /// Fields that applied set-field actions may name.
    ApplySetField(EntryScope, Vec<OxmId>),
    /// An experimenter's property.
    Experimenter {
        /// Whose entries.
        scope: EntryScope,
        /// Who defined it.
        experimenter: u32,
        /// Its number there.
        exp_type: u32,
        /// What follows.
        body: Vec<u8>,
    },
}

/// What a table can do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TableFeatures {
    /// The table.
    pub table: TableId,
    /// Its name.
    pub name: FixedText<32>,
    /// Metadata bits that it can match.
    pub metadata_match: u64,
    /// Metadata bits that it can write.
    pub metadata_write: u64,
    /// `OFPTC_*`; 0 in 1.3.
    pub config: u32,
    /// Most entries.
    pub max_entries: u32,
    /// What it can do.
    pub properties: Vec<TableProperty>,
}
