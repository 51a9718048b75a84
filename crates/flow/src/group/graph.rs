//! Which group leads to which: loops and depth.
//!
//! A group *leads* to those that its buckets forward to or watch; what is watched may be gone. Each group knows who leads to it and how long the longest
//! ways to it and from it are, so that a change costs what it moves: itself, and those above and below it whose ways get longer or shorter.
//! Only the control thread has it; workers hold tables without.

use super::{Bucket, GroupModError};
use crate::action::Action;
use crate::limits::MAX_CHAIN;
use std::collections::{BTreeMap, BTreeSet};

/// What a group's buckets lead to.
#[derive(Clone, Default, Debug)]
pub(super) struct Successors {
    /// Groups that they forward to.
    forwards: BTreeSet<u32>,
    /// Groups that they watch.
    watches: BTreeSet<u32>,
}

impl Successors {
    pub fn of(buckets: &[Bucket]) -> Self {
        let forward = |action: &Action| match action {
            Action::Group(id) => Some(*id),
            _ => None,
        };
        let actions = buckets.iter().flat_map(|bucket| &bucket.actions);
        Self {
            forwards: actions.filter_map(forward).collect(),
            watches: buckets.iter().filter_map(|bucket| bucket.watch_group).collect(),
        }
    }

    /// A group may come twice.
    fn ids(&self) -> impl Iterator<Item = u32> {
        self.forwards.iter().chain(&self.watches).copied()
    }

    fn contains(&self, id: u32) -> bool {
        self.forwards.contains(&id) || self.watches.contains(&id)
    }
}

/// A group that leads to another one, or another one to it.
#[derive(Default, Debug)]
struct Node {
    to: Successors,
    /// Who forwards to it.
    forwarders: BTreeSet<u32>,
    /// Who watches it.
    watchers: BTreeSet<u32>,
    /// Groups on the longest way to it, itself not included.
    above: u8,
    /// Groups on the longest way from it, itself not included.
    below: u8,
}

impl Node {
    /// A group may come twice.
    fn predecessors(&self) -> impl Iterator<Item = u32> {
        self.forwarders.iter().chain(&self.watchers).copied()
    }
}

/// Ways have a direction.
#[derive(Clone, Copy)]
enum Side {
    Above,
    Below,
}

/// All groups of a switch that lead anywhere or are led to.
#[derive(Default, Debug)]
pub(super) struct Graph {
    nodes: BTreeMap<u32, Node>,
}

impl Graph {
    /// Refuses a loop and a chain that is too long when `id` leads to `to`.
    pub fn check(&self, id: u32, to: &Successors) -> Result<(), GroupModError> {
        if self.would_loop(id, to) {
            return Err(GroupModError::Loop(id));
        }
        let below = to.ids().map(|next| self.way(next, Side::Below) + 1).max().unwrap_or(0);
        if self.way(id, Side::Above) + 1 + below > MAX_CHAIN {
            return Err(GroupModError::ChainTooLong(id));
        }
        Ok(())
    }

    /// Looks upwards from `id` for one of `to`. Who leads to `id` has a longer way down and a shorter way up, which ends most searches before they begin.
    fn would_loop(&self, id: u32, to: &Successors) -> bool {
        let deeper = |&next: &u32| self.way(next, Side::Below) > self.way(id, Side::Below);
        let highest = to.ids().filter(deeper).map(|next| self.way(next, Side::Above)).min();
        let Some(highest) = highest else { return to.contains(id) };
        let (mut seen, mut open) = (BTreeSet::from([id]), vec![id]);
        while let Some(at) = open.pop() {
            if to.contains(at) {
                return true;
            }
            if self.way(at, Side::Above) > highest {
                let above = self.nodes.get(&at).into_iter().flat_map(Node::predecessors);
                open.extend(above.filter(|&group| seen.insert(group)));
            }
        }
        false
    }

    /// Makes `id` lead to `to` instead of what it led to.
    pub fn lead(&mut self, id: u32, to: Successors) {
        let before = match self.nodes.get_mut(&id) {
            Some(node) => std::mem::take(&mut node.to),
            None if to.forwards.is_empty() && to.watches.is_empty() => return,
            None => Successors::default(),
        };
        for next in &before.forwards {
            self.node(*next).forwarders.remove(&id);
        }
        for next in &before.watches {
            self.node(*next).watchers.remove(&id);
        }
        for next in &to.forwards {
            self.node(*next).forwarders.insert(id);
        }
        for next in &to.watches {
            self.node(*next).watchers.insert(id);
        }
        let below: BTreeSet<u32> = before.ids().chain(to.ids()).collect();
        self.node(id).to = to;
        self.measure(BTreeSet::from([id]), Side::Below);
        self.measure(below.clone(), Side::Above);
        let is_alone = |node: &Node| node.to.ids().chain(node.predecessors()).next().is_none();
        for group in below.into_iter().chain([id]) {
            if self.nodes.get(&group).is_some_and(is_alone) {
                self.nodes.remove(&group);
            }
        }
    }

    /// Measures the ways of these groups anew, and of those that follow from them. A round goes one link on, so there are at most as many as a chain has.
    fn measure(&mut self, mut groups: BTreeSet<u32>, side: Side) {
        while !groups.is_empty() {
            let mut next = BTreeSet::new();
            for group in groups {
                let length = self.neighbours(group, side).map(|at| self.way(at, side) + 1).max();
                let length = length.unwrap_or(0);
                if length == self.way(group, side) {
                    continue;
                }
                let other = match side {
                    Side::Above => Side::Below,
                    Side::Below => Side::Above,
                };
                next.extend(self.neighbours(group, other));
                let node = self.node(group);
                match side {
                    Side::Above => node.above = length,
                    Side::Below => node.below = length,
                }
            }
            groups = next;
        }
    }

    fn neighbours(&self, id: u32, side: Side) -> Box<dyn Iterator<Item = u32> + '_> {
        let node = self.nodes.get(&id).into_iter();
        match side {
            Side::Above => Box::new(node.flat_map(Node::predecessors)),
            Side::Below => Box::new(node.flat_map(|node| node.to.ids())),
        }
    }

    fn way(&self, id: u32, side: Side) -> u8 {
        let of = |node: &Node| match side {
            Side::Above => node.above,
            Side::Below => node.below,
        };
        self.nodes.get(&id).map_or(0, of)
    }

    fn node(&mut self, id: u32) -> &mut Node {
        self.nodes.entry(id).or_default()
    }

    /// A group that forwards to `id`.
    pub fn forwarder_to(&self, id: u32) -> Option<u32> {
        self.nodes.get(&id)?.forwarders.first().copied()
    }

    /// Number of groups that forward to `id`.
    pub fn forwarders_to(&self, id: u32) -> u32 {
        self.nodes.get(&id).map_or(0, |node| node.forwarders.len() as u32)
    }

    /// The groups that depend on whether `id` is live. A group may come twice.
    pub fn predecessors(&self, id: u32) -> impl Iterator<Item = u32> {
        self.nodes.get(&id).into_iter().flat_map(Node::predecessors)
    }
}
