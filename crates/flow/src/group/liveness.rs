//! Which buckets are usable, and which groups live: decided at each change, for those that it can concern.

use super::entry::{Body, destination};
use super::{Bucket, Group, GroupTable};
use crate::action::{Action, Output};
use crate::ports::PortTable;
use std::collections::BTreeSet;
use std::sync::Arc;

impl GroupTable {
    /// Puts a group there, or in the place of the one of before.
    pub(super) fn place(&mut self, id: u32, body: Arc<Body>, ports: &PortTable) {
        let group = Group::new(body, |bucket| self.is_usable(bucket, ports));
        let is_live = group.is_live();
        let before = self.groups.insert(id, Arc::new(group));
        if before.is_some_and(|group| group.is_live()) != is_live {
            self.refresh(self.graph.predecessors(id).collect(), ports);
        }
    }

    /// Decides anew which buckets of these groups are usable, and of those that depend on them. A round goes one link up, so there are at most as many as
    /// a chain has.
    pub(super) fn refresh(&mut self, mut ids: BTreeSet<u32>, ports: &PortTable) {
        while !ids.is_empty() {
            let mut above = BTreeSet::new();
            for id in ids {
                let Some(before) = self.get(id) else { continue };
                if before.still_holds(|bucket| self.is_usable(bucket, ports)) {
                    continue;
                }
                let group = Group::new(before.body.clone(), |bucket| self.is_usable(bucket, ports));
                if group.is_live() != before.is_live() {
                    above.extend(self.graph.predecessors(id));
                }
                self.groups.insert(id, Arc::new(group));
            }
            ids = above;
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
