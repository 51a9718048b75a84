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
//! * Groups nest at most [`MAX_CHAIN`](crate::limits::MAX_CHAIN) deep, watched groups counted too, and never in a loop.

#[cfg(test)]
mod agree;
mod change;
mod entry;
mod graph;
mod liveness;
mod select;
mod stats;
#[cfg(test)]
mod tests;

pub use change::{Bucket, GroupKind, GroupLimits, GroupMod, GroupModError};
pub(crate) use entry::{Group, Program};
pub use stats::{GroupStats, GroupView};

use crate::idmap::IdMap;
use crate::limits::{MAX_GROUP, MAX_PORT, units};
use crate::ports::PortTable;
use crate::tally::History;
use crate::time::Nanos;
use crate::validate::validate_bucket;
use entry::Body;
use graph::{Graph, Successors};
use std::sync::Arc;

/// The groups of one switch.
#[derive(Debug, Default)]
pub struct GroupTable {
    limits: GroupLimits,
    groups: IdMap<Arc<Group>>,
    /// Buckets of all groups.
    buckets: u32,
    /// Actions of all buckets.
    actions: u32,
    graph: Graph,
}

fn actions(buckets: &[Bucket]) -> u32 {
    buckets.iter().map(|bucket| bucket.actions.len() as u32).sum()
}

impl GroupTable {
    /// An empty table.
    pub fn new(limits: GroupLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The groups as they are, for workers: not to be changed.
    pub(crate) fn view(&self) -> Self {
        let Self { limits, groups, buckets, actions, graph: _ } = self;
        let (groups, graph) = (groups.clone(), Graph::default());
        Self { limits: *limits, groups, buckets: *buckets, actions: *actions, graph }
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
                self.put(id, Body::new(kind, buckets, History::begin(now)), ports)
            }
            GroupMod::Modify { id, kind, buckets } => {
                let before = self.groups.get(id).ok_or(GroupModError::Unknown(id))?;
                let body = Body::new(kind, buckets, before.body.history.clone());
                self.put(id, body, ports)
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
        let ids = self.groups.sorted().into_iter().map(|(id, _)| id).collect();
        self.refresh(ids, ports);
    }

    /// Whether the group exists.
    pub fn contains(&self, id: u32) -> bool {
        self.groups.contains(id)
    }

    /// What they take, in units of a plain flow entry: each group, each bucket, and their actions ([`crate::units`]).
    pub(crate) fn weight(&self) -> u64 {
        self.groups.len() as u64 + u64::from(self.buckets) + units(u64::from(self.actions))
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
        body: Arc<Body>,
        ports: &PortTable,
    ) -> Result<Vec<u32>, GroupModError> {
        let buckets = self.check(id, body.kind, &body.buckets)?;
        let before = self.get(id).map_or(0, |group| actions(&group.body.buckets));
        let with = self.actions - before + actions(&body.buckets);
        let to = Successors::of(&body.buckets);
        self.graph.check(id, &to)?;
        self.graph.lead(id, to);
        self.place(id, body, ports);
        (self.buckets, self.actions) = (buckets, with);
        Ok(Vec::new())
    }

    fn delete(&mut self, id: u32, ports: &PortTable) -> Result<Vec<u32>, GroupModError> {
        if let Some(by) = self.graph.forwarder_to(id) {
            return Err(GroupModError::Chained { id, by });
        }
        let Some(gone) = self.groups.remove(id) else { return Ok(Vec::new()) };
        self.buckets -= gone.body.buckets.len() as u32;
        self.actions -= actions(&gone.body.buckets);
        self.graph.lead(id, Successors::default());
        if gone.is_live() {
            self.refresh(self.graph.predecessors(id).collect(), ports);
        }
        Ok(vec![id])
    }

    /// Checks a group by itself; returns the buckets of all groups with it.
    fn check(&self, id: u32, kind: GroupKind, buckets: &[Bucket]) -> Result<u32, GroupModError> {
        if kind == GroupKind::Indirect && buckets.len() != 1 {
            return Err(GroupModError::Invalid(id));
        }
        if buckets.len() > self.limits.buckets as usize {
            return Err(GroupModError::OutOfBuckets(self.limits.buckets));
        }
        let before = self.get(id).map_or(0, |group| group.body.buckets.len());
        let total = self.buckets - before as u32 + buckets.len() as u32;
        if total > self.limits.total_buckets {
            return Err(GroupModError::OutOfBuckets(self.limits.total_buckets));
        }
        buckets
            .iter()
            .enumerate()
            .try_for_each(|(at, bucket)| self.check_bucket(id, kind, at, bucket))?;
        Ok(total)
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
