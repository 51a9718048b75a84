//! Groups (OpenFlow 1.3.5 §5.6, §7.3.4.3, §7.3.5.6 to §7.3.5.9).

use crate::action::Action;
use crate::ids::{GroupId, PortNo};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// What a group-mod does.
    GroupModCommand: u16 {
        /// Add a new group.
        Add = 0,
        /// Replace a group.
        Modify = 1,
        /// Delete a group and the flow entries that use it.
        Delete = 2,
    }
}

wire_enum! {
    /// Which buckets of a group a packet takes.
    GroupType: u8 {
        /// Every one.
        All = 0,
        /// One, by weight.
        Select = 1,
        /// The only one.
        Indirect = 2,
        /// The first live one.
        FastFailover = 3,
    }
}

/// Actions with the conditions under which a group uses them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bucket {
    /// Share of a select group's packets.
    pub weight: u16,
    /// The bucket is live while this port is; [`PortNo::ANY`] = none.
    pub watch_port: PortNo,
    /// The bucket is live while this group is; [`GroupId::ANY`] = none.
    pub watch_group: GroupId,
    /// What to do.
    pub actions: Vec<Action>,
}

/// A change of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GroupMod {
    /// What to do.
    pub command: GroupModCommand,
    /// The group's type.
    pub kind: GroupType,
    /// The group; [`GroupId::ALL`] only in deletions.
    pub id: GroupId,
    /// Its buckets, in order.
    pub buckets: Vec<Bucket>,
}

/// A group as the switch describes it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GroupDesc {
    /// Its type.
    pub kind: GroupType,
    /// The group.
    pub id: GroupId,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

/// Packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Counter {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A group's counters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GroupStats {
    /// The group.
    pub id: GroupId,
    /// Flow entries and groups that refer to it.
    pub ref_count: u32,
    /// All its packets.
    pub total: Counter,
    /// Its age: whole seconds.
    pub duration_s: u32,
    /// Its age: nanoseconds beyond.
    pub duration_ns: u32,
    /// Per bucket.
    pub buckets: Vec<Counter>,
}

bitflags::bitflags! {
    /// `OFPGFC_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct GroupCapabilities: u32 {
        /// Weights of select groups.
        const SELECT_WEIGHT = 1;
        /// Liveness of select groups' buckets.
        const SELECT_LIVENESS = 2;
        /// Groups in groups.
        const CHAINING = 4;
        /// Loops of groups are refused.
        const CHAINING_CHECKS = 8;
    }
}

/// What the switch's groups can do. Arrays are indexed by [`GroupType`]'s number.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct GroupFeatures {
    /// Bit per supported type.
    pub types: u32,
    /// What they can do.
    pub capabilities: GroupCapabilities,
    /// Most groups per type.
    pub max_groups: [u32; 4],
    /// Bit per supported action, per type.
    pub actions: [u32; 4],
}
