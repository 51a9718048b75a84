//! What the group table tells about itself (OpenFlow 1.3.5 §7.3.5.8, §7.3.5.9).

use super::{Bucket, GroupKind, GroupTable};
use crate::tally::Counted;
use crate::time::Nanos;

/// One group, as `OFPMP_GROUP_DESC` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupView<'a> {
    /// Its number.
    pub id: u32,
    /// How it chooses.
    pub kind: GroupKind,
    /// Its buckets as they were given.
    pub buckets: &'a [Bucket],
}

/// One group's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupStats {
    /// Its number.
    pub id: u32,
    /// Groups that forward to it; the flow entries that do are for the tables to count.
    pub groups_to_it: u32,
    /// What it was given.
    pub counted: Counted,
    /// Nanoseconds since it was added.
    pub age_ns: u64,
    /// What each bucket was given.
    pub buckets: Vec<Counted>,
}

impl GroupTable {
    /// Every group, by number.
    pub fn views(&self) -> impl Iterator<Item = GroupView<'_>> {
        self.groups.sorted().into_iter().map(|(id, group)| GroupView {
            id,
            kind: group.body.kind,
            buckets: &group.body.buckets,
        })
    }

    /// The counters of one group, or of all of them by number.
    pub fn stats(&self, id: Option<u32>, now: Nanos) -> Vec<GroupStats> {
        match id {
            Some(id) => self.stats_of(id, now).into_iter().collect(),
            None => self
                .groups
                .sorted()
                .into_iter()
                .filter_map(|(id, _)| self.stats_of(id, now))
                .collect(),
        }
    }

    fn stats_of(&self, id: u32, now: Nanos) -> Option<GroupStats> {
        let body = &self.get(id)?.body;
        Some(GroupStats {
            id,
            groups_to_it: self.graph.forwarders_to(id),
            counted: body.history.tally.read(),
            age_ns: now.since(body.history.created),
            buckets: body.programs.iter().map(|program| program.tally.read()).collect(),
        })
    }
}
