//! Which group leads to which: loops, depth, and the order in which liveness spreads.

use super::entry::destination;
use super::{Bucket, Group, GroupModError, GroupTable};
use crate::action::{Action, Output};
use crate::limits::MAX_CHAIN;
use crate::ports::PortTable;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The groups that buckets forward to or watch.
pub(super) fn successors(buckets: &[Bucket]) -> BTreeSet<u32> {
    let forwards =
        buckets.iter().flat_map(|bucket| &bucket.actions).filter_map(|action| match action {
            Action::Group(id) => Some(*id),
            _ => None,
        });
    forwards.chain(buckets.iter().filter_map(|bucket| bucket.watch_group)).collect()
}

impl GroupTable {
    /// Refuses a loop and a chain that is too long when `id` leads to `next`.
    pub(super) fn check_chain(&self, id: u32, next: &BTreeSet<u32>) -> Result<(), GroupModError> {
        if next.is_empty() {
            return Ok(());
        }
        let mut walk = Walk { table: self, id, next, heights: BTreeMap::new() };
        walk.height(id, 0)?;
        // An existing group may have got deeper, and with it those that lead to it.
        self.chained.iter().try_for_each(|&other| walk.height(other, 0).map(|_| ()))
    }

    /// A group that forwards to `id`.
    pub(super) fn forwarder_to(&self, id: u32) -> Option<u32> {
        self.chained.iter().copied().find(|&by| by != id && self.forwards(by, id))
    }

    /// Number of groups that forward to `id`.
    pub(super) fn forwarders_to(&self, id: u32) -> u32 {
        self.chained.iter().filter(|&&by| self.forwards(by, id)).count() as u32
    }

    fn forwards(&self, by: u32, id: u32) -> bool {
        let to = |bucket: &Bucket| bucket.actions.contains(&Action::Group(id));
        self.get(by).is_some_and(|group| group.body.buckets.iter().any(to))
    }

    /// Decides anew for the groups that depend on others.
    pub(super) fn refresh_chained(&mut self, ports: &PortTable) {
        let chained: Vec<u32> = self.chained.iter().copied().collect();
        self.refresh(&chained, ports);
    }

    /// Decides anew which buckets of these groups are usable. Liveness spreads one link a pass.
    pub(super) fn refresh(&mut self, ids: &[u32], ports: &PortTable) {
        for _pass in 0..=MAX_CHAIN {
            let stale = |&&id: &&u32| {
                self.get(id)
                    .is_some_and(|group| !group.still_holds(|bucket| self.is_usable(bucket, ports)))
            };
            let stale: Vec<u32> = ids.iter().filter(stale).copied().collect();
            if stale.is_empty() {
                return;
            }
            for id in stale {
                let Some(body) = self.get(id).map(|group| group.body.clone()) else { continue };
                let group = Group::new(body, |bucket| self.is_usable(bucket, ports));
                self.groups.insert(id, Arc::new(group));
            }
        }
    }

    pub(super) fn is_usable(&self, bucket: &Bucket, ports: &PortTable) -> bool {
        let is_live = |id: u32| self.get(id).is_some_and(Group::is_live);
        match (bucket.watch_port, bucket.watch_group) {
            (None, None) => match destination(bucket) {
                Some(Action::Output(Output::Port(port))) => ports.is_live(port),
                Some(Action::Group(id)) => is_live(id),
                _ => true,
            },
            (port, group) => {
                port.is_some_and(|port| ports.is_live(port)) || group.is_some_and(is_live)
            }
        }
    }
}

/// One question about depth, with `id` as it is to be.
struct Walk<'a> {
    table: &'a GroupTable,
    id: u32,
    next: &'a BTreeSet<u32>,
    /// Groups on the longest way down from a group, itself included.
    heights: BTreeMap<u32, u8>,
}

impl Walk<'_> {
    fn height(&mut self, at: u32, above: u8) -> Result<u8, GroupModError> {
        if let Some(&height) = self.heights.get(&at) {
            return self.check(above, height);
        }
        if at == self.id && above > 0 {
            return Err(GroupModError::Loop(self.id));
        }
        if above >= MAX_CHAIN {
            return Err(GroupModError::ChainTooLong(self.id));
        }
        let next = match self.table.get(at) {
            _ if at == self.id => self.next.clone(),
            Some(group) if self.table.chained.contains(&at) => successors(&group.body.buckets),
            _ => BTreeSet::new(),
        };
        let mut height = 1;
        for below in next {
            height = height.max(1 + self.height(below, above + 1)?);
        }
        self.heights.insert(at, height);
        self.check(above, height)
    }

    fn check(&self, above: u8, height: u8) -> Result<u8, GroupModError> {
        if above + height > MAX_CHAIN {
            Err(GroupModError::ChainTooLong(self.id))
        } else {
            Ok(height)
        }
    }
}
