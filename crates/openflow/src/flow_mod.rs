//! Flow entries: how a controller changes them and how a switch tells that one is gone (OpenFlow 1.3.5 §7.3.4.1, §7.4.2).

use crate::action::Instruction;
use crate::ids::{GroupId, PortNo, TableId};
use crate::matching::Match;
use crate::version::Version;
use crate::wire_enum::wire_enum;
use crate::wording::Wording;

wire_enum! {
    /// What a flow-mod does.
    FlowModCommand: u8 {
        /// Add, replacing an identical entry.
        Add = 0,
        /// Modify every entry that the match covers.
        Modify = 1,
        /// Modify the entry of exactly this match and priority.
        ModifyStrict = 2,
        /// Delete every entry that the match covers.
        Delete = 3,
        /// Delete the entry of exactly this match and priority.
        DeleteStrict = 4,
    }
}

bitflags::bitflags! {
    /// `OFPFF_*`. Unknown bits survive decoding; [`FlowMod::check`] refuses them.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct FlowModFlags: u16 {
        /// Send a flow-removed when the entry goes.
        const SEND_FLOW_REM = 1;
        /// Refuse to add an entry that overlaps one of the same priority.
        const CHECK_OVERLAP = 2;
        /// Reset the counters of a modified entry.
        const RESET_COUNTS = 4;
        /// Do not count packets.
        const NO_PKT_COUNTS = 8;
        /// Do not count bytes.
        const NO_BYT_COUNTS = 16;
    }
}

/// Priority of an entry for which the syntax names none (`OFP_DEFAULT_PRIORITY`).
pub const DEFAULT_PRIORITY: u16 = 0x8000;

/// A change of flow entries.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowMod {
    /// Opaque value of the controller.
    pub cookie: u64,
    /// Cookie bits that filter modifications and deletions; 0 = no filter.
    pub cookie_mask: u64,
    /// Table; [`TableId::ALL`] only in deletions.
    pub table: TableId,
    /// What to do.
    pub command: FlowModCommand,
    /// Seconds without a packet before the entry goes; 0 = never.
    pub idle_timeout_s: u16,
    /// Seconds before the entry goes; 0 = never.
    pub hard_timeout_s: u16,
    /// Higher wins.
    pub priority: u16,
    /// Packet of an earlier packet-in to apply the entry to.
    pub buffer_id: Option<u32>,
    /// Deletions only: entries that output here; [`PortNo::ANY`] = no filter.
    pub out_port: PortNo,
    /// Deletions only: entries that use this group; [`GroupId::ANY`] = no filter.
    pub out_group: GroupId,
    /// Options.
    pub flags: FlowModFlags,
    /// Which packets.
    pub fields: Match,
    /// What to do with them.
    pub instructions: Vec<Instruction>,
    /// The version in which it is said: see the predicates of [`Version`]. Not on the wire but in the header.
    pub version: Version,
    /// What its version alone says.
    pub wording: Wording,
}

impl Default for FlowMod {
    fn default() -> Self {
        Self {
            cookie: 0,
            cookie_mask: 0,
            table: TableId(0),
            command: FlowModCommand::Add,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            priority: DEFAULT_PRIORITY,
            buffer_id: None,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            flags: FlowModFlags::empty(),
            fields: Match::default(),
            instructions: Vec::new(),
            version: Version::V1_3,
            wording: Wording::default(),
        }
    }
}

wire_enum! {
    /// Why a flow entry went.
    FlowRemovedReason: u8 {
        /// Idle too long.
        IdleTimeout = 0,
        /// Its time was over.
        HardTimeout = 1,
        /// A flow-mod deleted it.
        Delete = 2,
        /// Its group was deleted.
        GroupDelete = 3,
    }
}

/// News that a flow entry went.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowRemoved {
    /// The entry's cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Why it went.
    pub reason: FlowRemovedReason,
    /// Its table.
    pub table: TableId,
    /// Its age: whole seconds.
    pub duration_s: u32,
    /// Its age: nanoseconds beyond.
    pub duration_ns: u32,
    /// Its idle timeout.
    pub idle_timeout_s: u16,
    /// Its hard timeout.
    pub hard_timeout_s: u16,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
    /// Its match.
    pub fields: Match,
    /// What the version in which it came alone says.
    pub wording: Wording,
}
