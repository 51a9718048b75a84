//! What a controller asks of the group table, and how it may be refused.

use crate::action::ActionError;
use crate::action::{Action, PortNo};
use crate::limits::{MAX_CHAIN, units};

/// How a group chooses among its buckets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupKind {
    /// Every bucket gets a copy.
    All,
    /// One bucket, by weight and by the flow's hash; a flow stays with its bucket.
    Select,
    /// The only bucket.
    Indirect,
    /// The first bucket whose watched port or group is live.
    FastFailover,
}

/// One set of actions of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bucket {
    /// Share of the flows, in select groups; 0 elsewhere.
    pub weight: u16,
    /// Port whose liveness decides.
    pub watch_port: Option<PortNo>,
    /// Group whose liveness decides.
    pub watch_group: Option<u32>,
    /// The actions, executed as an action set.
    pub actions: Vec<Action>,
}

/// One change of the group table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupMod {
    /// A new group.
    Add {
        /// Its number.
        id: u32,
        /// How it chooses.
        kind: GroupKind,
        /// Among what.
        buckets: Vec<Bucket>,
    },
    /// Other kind and buckets for a group. Its own counters and age go on; those of the buckets start afresh.
    Modify {
        /// Its number.
        id: u32,
        /// How it chooses.
        kind: GroupKind,
        /// Among what.
        buckets: Vec<Bucket>,
    },
    /// One group goes; an absent one is no error.
    Delete {
        /// Its number.
        id: u32,
    },
    /// All groups go (`OFPG_ALL`).
    DeleteAll,
}

impl GroupMod {
    /// What the group takes that it makes, in units of a plain flow entry ([`crate::Pipeline::weight`]).
    pub fn weight(&self) -> u64 {
        match self {
            Self::Add { buckets, .. } | Self::Modify { buckets, .. } => {
                let actions = buckets.iter().map(|bucket| bucket.actions.len() as u64).sum();
                1 + buckets.len() as u64 + units(actions)
            }
            Self::Delete { .. } | Self::DeleteAll => 0,
        }
    }
}

/// Why a [`GroupMod`] was refused. Each maps to one OpenFlow error; nothing changed then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GroupModError {
    /// `OFPGMFC_GROUP_EXISTS`.
    #[error("group {0} exists already")]
    Exists(u32),
    /// `OFPGMFC_INVALID_GROUP`: a reserved number, or an indirect group that has not exactly one bucket.
    #[error("group {0} is invalid")]
    Invalid(u32),
    /// `OFPGMFC_OUT_OF_GROUPS`.
    #[error("the group table is full at {0} groups")]
    OutOfGroups(u32),
    /// `OFPGMFC_OUT_OF_BUCKETS`.
    #[error("more than {0} buckets")]
    OutOfBuckets(u32),
    /// `OFPGMFC_CHAINING_UNSUPPORTED`.
    #[error("group {0} would make a chain of more than {MAX_CHAIN} groups")]
    ChainTooLong(u32),
    /// `OFPGMFC_LOOP`.
    #[error("group {0} would forward to itself")]
    Loop(u32),
    /// `OFPGMFC_UNKNOWN_GROUP`.
    #[error("group {0} does not exist")]
    Unknown(u32),
    /// `OFPGMFC_CHAINED_GROUP`.
    #[error("group {by} forwards to group {id}")]
    Chained {
        /// The group that should go.
        id: u32,
        /// A group that needs it.
        by: u32,
    },
    /// `OFPGMFC_BAD_BUCKET`: a weight outside a select group.
    #[error("bucket {0} has a weight outside a select group")]
    BadBucket(usize),
    /// `OFPGMFC_BAD_WATCH`: a port or group that can never be, or nothing to watch in a fast failover group.
    #[error("bucket {0} watches no port or group that can be")]
    BadWatch(usize),
    /// `OFPET_BAD_ACTION`.
    #[error("bucket {bucket} has an action that cannot be")]
    Action {
        /// Which bucket.
        bucket: usize,
        /// Why.
        source: ActionError,
    },
}

/// What a group table may grow to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupLimits {
    /// Groups.
    pub groups: u32,
    /// Buckets of one group; at most 1024.
    pub buckets: u32,
    /// Buckets of all groups together.
    pub total_buckets: u32,
}

impl Default for GroupLimits {
    /// Chosen: well above what controllers use; the slots of a full table stay below 100 MB.
    fn default() -> Self {
        Self { groups: 32_768, buckets: 1024, total_buckets: 131_072 }
    }
}
