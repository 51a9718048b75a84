//! Groups: sets of action buckets that flow entries share (OpenFlow 1.3.5 §5.6, §6.5, §6.7).
//!
//! [`GroupTable`] is both sides. The control thread changes its copy ([`GroupTable::apply`],
//! [`GroupTable::set_ports`]); workers hold an older copy inside a snapshot and only read. Copies share the counters,
//! so counts go on over every change.
//!
//! What a worker would have to decide for each packet is decided here at each change, liveness included: a fast
//! failover group knows its bucket, a select group has a table from hash to bucket ([`select`]).
//!
//! * A bucket is **usable** if what it watches is live; one that watches nothing (never in fast failover) is usable
//!   unless its own output port is down or its own group has no usable bucket.
//! * A group is **live** if a bucket is usable.
//! * Groups nest at most [`MAX_CHAIN`] deep, watched groups counted too, and never in a loop.

mod entry;
mod graph;
mod select;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use entry::{Group, Program};
pub use stats::{GroupStats, GroupView};

use crate::action::{Action, PortNo};
use crate::exec::MAX_CHAIN;
use crate::idmap::IdMap;
use crate::ports::PortTable;
use crate::tally::Tally;
use crate::time::Nanos;
use crate::validate::{ActionError, MAX_PORT, validate_bucket};
use entry::Body;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Highest group number (`OFPG_MAX`).
pub const MAX_GROUP: u32 = 0xffff_ff00;

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

/// The groups of one switch.
#[derive(Clone, Debug, Default)]
pub struct GroupTable {
    limits: GroupLimits,
    groups: IdMap<Arc<Group>>,
    /// Buckets of all groups.
    buckets: u32,
    /// Groups that forward to or watch another group: few, and the only ones that graph questions are about.
    chained: Arc<BTreeSet<u32>>,
}

impl GroupTable {
    /// An empty table.
    pub fn new(limits: GroupLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Makes one change. Returns the groups that went, whose flow entries must go with them.
    ///
    /// # Errors
    /// The table is as before.
    pub fn apply(
        &mut self,
        change: GroupMod,
        ports: &PortTable,
        now: Nanos,
    ) -> Result<Vec<u32>, GroupModError> {
        match change {
            GroupMod::Add { id, kind, buckets } => {
                self.check_addable(id)?;
                self.put(id, kind, buckets, ports, Arc::default(), now)
            }
            GroupMod::Modify { id, kind, buckets } => {
                let before = self.groups.get(id).ok_or(GroupModError::Unknown(id))?;
                let (tally, created) = (before.body.tally.clone(), before.body.created);
                self.put(id, kind, buckets, ports, tally, created)
            }
            GroupMod::Delete { id } => self.delete(id, ports),
            GroupMod::DeleteAll => {
                let gone = self.groups.sorted().into_iter().map(|(id, _)| id).collect();
                *self = Self::new(self.limits);
                Ok(gone)
            }
        }
    }

    /// Decides anew which buckets are usable: to be called with every new port table.
    pub fn set_ports(&mut self, ports: &PortTable) {
        let ids: Vec<u32> = self.groups.sorted().into_iter().map(|(id, _)| id).collect();
        self.refresh(&ids, ports);
    }

    /// Whether the group exists.
    pub fn contains(&self, id: u32) -> bool {
        self.groups.contains(id)
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Group> {
        self.groups.get(id).map(|group| &**group)
    }

    fn check_addable(&self, id: u32) -> Result<(), GroupModError> {
        match () {
            () if id > MAX_GROUP => Err(GroupModError::Invalid(id)),
            () if self.contains(id) => Err(GroupModError::Exists(id)),
            () if self.groups.len() as u32 >= self.limits.groups => {
                Err(GroupModError::OutOfGroups(self.limits.groups))
            }
            () => Ok(()),
        }
    }

    fn put(
        &mut self,
        id: u32,
        kind: GroupKind,
        buckets: Vec<Bucket>,
        ports: &PortTable,
        tally: Arc<Tally>,
        created: Nanos,
    ) -> Result<Vec<u32>, GroupModError> {
        let before = self.get(id).map_or(0, |group| group.body.buckets.len() as u32);
        let total = self.buckets - before + buckets.len() as u32;
        if total > self.limits.total_buckets {
            return Err(GroupModError::OutOfBuckets(self.limits.total_buckets));
        }
        self.check(id, kind, &buckets)?;
        let next = graph::successors(&buckets);
        self.check_chain(id, &next)?;
        if self.chained.contains(&id) == next.is_empty() {
            let chained = Arc::make_mut(&mut self.chained);
            if next.is_empty() {
                chained.remove(&id)
            } else {
                chained.insert(id)
            };
        }
        self.buckets = total;
        let body = Body::new(kind, buckets, tally, created);
        let group = Group::new(body, |bucket| self.is_usable(bucket, ports));
        self.groups.insert(id, Arc::new(group));
        self.refresh_chained(ports);
        Ok(Vec::new())
    }

    fn delete(&mut self, id: u32, ports: &PortTable) -> Result<Vec<u32>, GroupModError> {
        if let Some(by) = self.forwarder_to(id) {
            return Err(GroupModError::Chained { id, by });
        }
        let Some(gone) = self.groups.remove(id) else { return Ok(Vec::new()) };
        self.buckets -= gone.body.buckets.len() as u32;
        if self.chained.contains(&id) {
            Arc::make_mut(&mut self.chained).remove(&id);
        }
        self.refresh_chained(ports);
        Ok(vec![id])
    }

    fn check(&self, id: u32, kind: GroupKind, buckets: &[Bucket]) -> Result<(), GroupModError> {
        if kind == GroupKind::Indirect && buckets.len() != 1 {
            return Err(GroupModError::Invalid(id));
        }
        if buckets.len() > self.limits.buckets as usize {
            return Err(GroupModError::OutOfBuckets(self.limits.buckets));
        }
        buckets
            .iter()
            .enumerate()
            .try_for_each(|(at, bucket)| self.check_bucket(id, kind, at, bucket))
    }

    fn check_bucket(
        &self,
        id: u32,
        kind: GroupKind,
        at: usize,
        bucket: &Bucket,
    ) -> Result<(), GroupModError> {
        let watched = (bucket.watch_port, bucket.watch_group);
        let port_can_be = bucket.watch_port.is_none_or(|port| (1..=MAX_PORT).contains(&port));
        let group_can_be =
            bucket.watch_group.is_none_or(|group| group == id || self.contains(group));
        if !port_can_be
            || !group_can_be
            || kind == GroupKind::FastFailover && watched == (None, None)
        {
            return Err(GroupModError::BadWatch(at));
        }
        if bucket.weight != 0 && kind != GroupKind::Select {
            return Err(GroupModError::BadBucket(at));
        }
        let exists = |group| group == id || self.contains(group);
        validate_bucket(&bucket.actions, exists)
            .map_err(|source| GroupModError::Action { bucket: at, source })
    }
}
