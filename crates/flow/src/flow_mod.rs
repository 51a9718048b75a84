//! What a controller asks of the tables, and how it may be refused (OpenFlow 1.3.5 §6.4, §7.3.4.1).

use crate::action::{ActionError, Instructions, Output};
use crate::tally::Counted;
use wire::Key;

/// What to do with the entries that a [`FlowMod`] describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FlowCommand {
    /// Add an entry; one with the same match and priority is replaced.
    #[default]
    Add,
    /// Replace the instructions of all entries at least as specific.
    Modify,
    /// … of the one entry with this match and priority.
    ModifyStrict,
    /// Delete all entries at least as specific.
    Delete,
    /// … the one entry with this match and priority.
    DeleteStrict,
}

/// `OFPFF_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowFlags {
    /// Tell the controller when the entry goes.
    pub send_flow_removed: bool,
    /// Refuse an add that overlaps an entry of the same priority.
    pub check_overlap: bool,
    /// Start the counters of replaced or modified entries afresh.
    pub reset_counts: bool,
    /// The controller does not need packet counts (they are kept all the same).
    pub no_packet_counts: bool,
    /// The controller does not need byte counts (they are kept all the same).
    pub no_byte_counts: bool,
}

/// One change of the tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowMod {
    /// What to do.
    pub command: FlowCommand,
    /// The table; `None` is `OFPTT_ALL`, for deletes only.
    pub table: Option<u8>,
    /// Match values; bits outside `mask` are ignored.
    pub key: Key,
    /// Match mask.
    pub mask: Key,
    /// Higher wins.
    pub priority: u16,
    /// Opaque to us.
    pub cookie: u64,
    /// Modify and delete only touch entries whose cookie agrees on these bits.
    pub cookie_mask: u64,
    /// Goes after this many seconds without a packet; 0 = never.
    pub idle_timeout_s: u16,
    /// Goes after this many seconds; 0 = never.
    pub hard_timeout_s: u16,
    /// Flags.
    pub flags: FlowFlags,
    /// What matching packets undergo.
    pub instructions: Instructions,
    /// Actions may be on headers that the match does not promise; they do nothing to packets without (OpenFlow 1.0).
    pub may_miss_headers: bool,
    /// Kept with an added entry and told in its statistics; the tables never look at it.
    pub note: u32,
    /// An entry that replaces an identical one starts its counters afresh, whatever the flags (OpenFlow 1.0.0 §4.6).
    pub starts_afresh: bool,
    /// A modified entry takes the cookie of the modification (OpenFlow 1.0).
    pub gives_cookie: bool,
    /// How long ago an added entry was added, for one that comes back after a restart: hard timeout and duration count from then.
    pub age_ns: u64,
    /// For how long of that it has gone unused: its idle timeout counts from then.
    pub idle_ns: u64,
    /// What it had counted before that restart.
    pub counted: Counted,
    /// Delete only entries with an output there (`OFPP_ANY` is `None`).
    pub out_port: Option<Output>,
    /// Delete only entries with this group (`OFPG_ANY` is `None`).
    pub out_group: Option<u32>,
}

impl Default for FlowMod {
    fn default() -> Self {
        Self {
            command: FlowCommand::Add,
            table: Some(0),
            key: Key::default(),
            mask: Key::default(),
            priority: 0x8000, // OFP_DEFAULT_PRIORITY
            cookie: 0,
            cookie_mask: 0,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: FlowFlags::default(),
            instructions: Instructions::default(),
            may_miss_headers: false,
            note: 0,
            starts_afresh: false,
            gives_cookie: false,
            age_ns: 0,
            idle_ns: 0,
            counted: Counted::default(),
            out_port: None,
            out_group: None,
        }
    }
}

/// Why a [`FlowMod`] was refused. Each maps to one OpenFlow error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FlowModError {
    /// `OFPFMFC_TABLE_FULL`.
    #[error("table {table} is full: {limit}")]
    TableFull {
        /// The table.
        table: u8,
        /// Which limit was reached.
        limit: &'static str,
    },
    /// `OFPFMFC_OVERLAP`.
    #[error("an entry of table {table} with the same priority overlaps")]
    Overlap {
        /// The table.
        table: u8,
    },
    /// `OFPFMFC_BAD_TABLE_ID`.
    #[error("no such table")]
    BadTable,
    /// `OFPBIC_BAD_TABLE_ID`: a goto must lead to a later, existing table.
    #[error("goto table {goto} from table {table}")]
    BadGoto {
        /// The entry's table.
        table: u8,
        /// Where it wants to go.
        goto: u8,
    },
    /// An instruction or action that cannot be.
    #[error("an instruction cannot be executed")]
    Action(#[from] ActionError),
}
