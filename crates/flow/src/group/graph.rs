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

/// How many links there are to groups with ways of each length: the longest is known at once.
type Lengths = [u32; MAX_CHAIN as usize];

/// A group that leads to another one, or another one to it.
#[derive(Default, Debug)]
struct Node {
    to: Successors,
    /// Who forwards to it.
    forwarders: BTreeSet<u32>,
    /// Who watches it.
    watchers: BTreeSet<u32>,
    /// The ways to those that lead to it.
    above: Lengths,
    /// The ways from those that it leads to.
    below: Lengths,
}

impl Node {
    /// A group may come twice.
    fn predecessors(&self) -> impl Iterator<Item = u32> {
        self.forwarders.iter().chain(&self.watchers).copied()
    }

    /// Groups on the longest way to it, or from it, itself not included.
    fn way(&self, side: Side) -> u8 {
        let lengths = match side {
            Side::Above => &self.above,
            Side::Below => &self.below,
        };
        lengths.iter().rposition(|&links| links > 0).map_or(0, |longest| longest as u8 + 1)
    }
}

/// A group leads to others in two ways: what its buckets name, and what these know of it.
type Kind = (fn(&Successors) -> &BTreeSet<u32>, fn(&mut Node) -> &mut BTreeSet<u32>);

const KINDS: [Kind; 2] = [
    (|to| &to.forwards, |node| &mut node.forwarders),
    (|to| &to.watches, |node| &mut node.watchers),
];

/// Ways have a direction.
#[derive(Clone, Copy)]
enum Side {
    Above,
    Below,
}

/// What becomes of a link.
#[derive(Clone, Copy)]
enum Link {
    New,
    Gone,
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
        // First what is new: ways that stay as long as they are then move nobody.
        for (leads, led) in KINDS {
            for &next in leads(&to).difference(leads(&before)) {
                led(self.node(next)).insert(id);
                self.link(id, next, Link::New);
            }
        }
        for (leads, led) in KINDS {
            for &next in leads(&before).difference(leads(&to)) {
                led(self.node(next)).remove(&id);
                self.link(id, next, Link::Gone);
            }
        }
        self.node(id).to = to;
        let is_alone = |node: &Node| node.to.ids().chain(node.predecessors()).next().is_none();
        for group in before.ids().chain([id]) {
            if self.nodes.get(&group).is_some_and(is_alone) {
                self.nodes.remove(&group);
            }
        }
    }

    /// Counts a link at both its ends.
    fn link(&mut self, from: u32, to: u32, link: Link) {
        let change = match link {
            Link::New => |way| (None, Some(way)),
            Link::Gone => |way| (Some(way), None),
        };
        let (above, below) = (self.way(from, Side::Above), self.way(to, Side::Below));
        self.count(to, Side::Above, change(above));
        self.count(from, Side::Below, change(below));
    }

    /// A link's way on one side has another length: so may those beyond it. They are at most as far as a chain is long.
    fn count(&mut self, id: u32, side: Side, (before, now): (Option<u8>, Option<u8>)) {
        let was = self.way(id, side);
        let node = self.node(id);
        let lengths = match side {
            Side::Above => &mut node.above,
            Side::Below => &mut node.below,
        };
        if let Some(length) = before {
            lengths[usize::from(length)] -= 1;
        }
        if let Some(length) = now {
            lengths[usize::from(length)] += 1;
        }
        let is = self.way(id, side);
        if is != was {
            let beyond: Vec<u32> = match (self.nodes.get(&id), side) {
                (Some(node), Side::Above) => node.to.ids().collect(),
                (Some(node), Side::Below) => node.predecessors().collect(),
                (None, _) => return,
            };
            beyond.into_iter().for_each(|next| self.count(next, side, (Some(was), Some(is))));
        }
    }

    fn way(&self, id: u32, side: Side) -> u8 {
        self.nodes.get(&id).map_or(0, |node| node.way(side))
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
