//! What the pipeline tells about itself (OpenFlow 1.3.5 §7.3.5, §7.4.2).

use crate::action::{Instructions, Output};
use crate::flow_mod::FlowFlags;
use std::sync::Arc;
use wire::Key;

/// Which entries a dump, an aggregate, a modify or a delete is about: those at least as specific as `key`/`mask`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowFilter {
    /// One table, or all.
    pub table: Option<u8>,
    /// Match values.
    pub key: Key,
    /// Match mask.
    pub mask: Key,
    /// Cookie value.
    pub cookie: u64,
    /// Bits of the cookie that must agree.
    pub cookie_mask: u64,
    /// Only entries with an output there.
    pub out_port: Option<Output>,
    /// Only entries with this group.
    pub out_group: Option<u32>,
}

/// One entry, as a dump shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowStats {
    /// Its table.
    pub table: u8,
    /// Match values.
    pub key: Key,
    /// Match mask.
    pub mask: Key,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Idle timeout.
    pub idle_timeout_s: u16,
    /// Hard timeout.
    pub hard_timeout_s: u16,
    /// Flags it was added with.
    pub flags: FlowFlags,
    /// The note it was added with ([`crate::FlowMod::note`]).
    pub note: u32,
    /// What it does.
    pub instructions: Arc<Instructions>,
    /// Packets that matched.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Nanoseconds since it was added.
    pub age_ns: u64,
    /// Nanoseconds since it was last used (to about 70 ms), or added.
    pub idle_ns: u64,
}

/// Why an entry went (`OFPRR_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemovedReason {
    /// Its idle timeout.
    IdleTimeout,
    /// Its hard timeout.
    HardTimeout,
    /// A flow-mod.
    Delete,
    /// Its group was deleted.
    GroupDelete,
    /// Its meter was deleted.
    MeterDelete,
}

/// An entry that went. The controller is told if `flow.flags.send_flow_removed` (`OFPFF_SEND_FLOW_REM`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// Why.
    pub reason: RemovedReason,
    /// The entry as it was last.
    pub flow: FlowStats,
}

/// Sums over entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Aggregate {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Entries.
    pub flows: u32,
}

/// One table's statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableStats {
    /// Entries now.
    pub active: u32,
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that hit an entry.
    pub matches: u64,
    /// Hash probes, comparisons and blocks that the lookups cost, caches aside.
    pub probes: u64,
    /// Entries it can hold.
    pub limit: u32,
    /// Distinct masks now.
    pub masks: u32,
    /// The template in force, for people.
    pub template: &'static str,
    /// Most probes that a lookup can cost in it.
    pub probe_bound: u32,
}
