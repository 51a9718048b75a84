//! A dump of flow entries in portions, while others go on changing them.
//!
//! The names of the entries are taken at once, the entries themselves a portion at a time under the switch's lock. An entry that
//! was changed in between has another name by then: what was missed that way is looked for again among all entries, less
//! those already shown. So every entry that is there all the time is shown exactly once, in its state of some moment; one that
//! comes or goes meanwhile may be shown or not.

use crate::journal::FlowId;
use crate::switch::entries::flow_id;
use crate::switch::{Switch, translate};
use flow::{EntryId, FlowFilter};
use openflow::{FlowStats, FlowStatsRequest};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Entries read under one lock. Chosen: some 50 µs.
pub(super) const PORTION: usize = 256;

/// Searches for what changed while it was read. Chosen: whoever changes the same entries more often than that during one dump
/// cannot expect to see them stand still.
const SEARCHES: u32 = 4;

/// Entries on their way to somebody.
pub struct FlowDump {
    switch: Arc<Switch>,
    filter: FlowFilter,
    names: Vec<EntryId>,
    /// Names before this are read.
    at: usize,
    portion: std::vec::IntoIter<flow::FlowStats>,
    /// Some name did not hold any more.
    missed: bool,
    searches: u32,
    /// What was shown: a digest of each.
    shown: Vec<u64>,
    /// The digests of earlier searches, in order; those after them need no look, for one search names an entry once.
    sorted: usize,
    secret: u64,
}

impl FlowDump {
    pub(crate) fn new(switch: Arc<Switch>, filter: FlowFilter) -> Self {
        let names = names(&switch, &filter);
        Self {
            switch,
            filter,
            shown: Vec::with_capacity(names.len()),
            names,
            at: 0,
            portion: Vec::new().into_iter(),
            missed: false,
            searches: 0,
            sorted: 0,
            secret: RandomState::new().hash_one(0),
        }
    }

    /// Bytes that it takes while it is read.
    pub(crate) fn memory(&self) -> usize {
        self.names.len() * (size_of::<EntryId>() + size_of::<u64>())
    }

    /// Reads the next entries; false when there are none left.
    fn read(&mut self) -> bool {
        if self.at == self.names.len() && !self.search() {
            return false;
        }
        let end = self.names.len().min(self.at + PORTION);
        let names = &self.names[self.at..end];
        self.at = end;
        let now = self.switch.now();
        let control = self.switch.control();
        let found: Vec<_> =
            names.iter().filter_map(|&name| control.pipeline.entry(name, now)).collect();
        drop(control);
        self.missed |= found.len() < names.len();
        self.portion = found.into_iter();
        true
    }

    /// Takes the names anew if some did not hold; entries that were shown are left out when they are read.
    fn search(&mut self) -> bool {
        if !std::mem::take(&mut self.missed) || self.searches == SEARCHES {
            return false;
        }
        self.searches += 1;
        self.shown.sort_unstable();
        self.sorted = self.shown.len();
        self.names = names(&self.switch, &self.filter);
        self.at = 0;
        !self.names.is_empty()
    }

    /// Notes that an entry is shown; false if it was before.
    fn show(&mut self, entry: &flow::FlowStats) -> bool {
        let digest = digest(entry, self.secret);
        let new = self.shown[..self.sorted].binary_search(&digest).is_err();
        self.shown.extend(new.then_some(digest));
        new
    }
}

impl Switch {
    /// Those of these entries that it has, as they are now. Looks at all of its entries, a portion at a time.
    pub fn entries_among(&self, wanted: &HashSet<FlowId>) -> HashMap<FlowId, flow::FlowStats> {
        let mut found = HashMap::new();
        if wanted.is_empty() {
            return found;
        }
        let everything = translate::filter(&FlowStatsRequest::default(), &self.ends);
        for portion in names(self, &everything).chunks(PORTION) {
            let now = self.now();
            let control = self.control();
            let entries = portion.iter().filter_map(|&name| control.pipeline.entry(name, now));
            let named = entries.map(|entry| (flow_id(&entry), entry));
            found.extend(named.filter(|(id, _)| wanted.contains(id)));
        }
        found
    }
}

/// The entries' names in the order of their memory, in which they are read several times faster than in that of their hashes.
pub(super) fn names(switch: &Switch, filter: &FlowFilter) -> Vec<EntryId> {
    let mut names = switch.control().pipeline.entry_ids(filter);
    names.sort_unstable();
    names
}

/// A keyed digest of what makes an entry this entry: table, priority, match. Nobody outside knows the key, so nobody can make
/// two entries that pass for one.
fn digest(entry: &flow::FlowStats, secret: u64) -> u64 {
    let first = u64::from(entry.table) << 16 | u64::from(entry.priority);
    let words = entry.key.0.iter().chain(&entry.mask.0);
    words.fold(first ^ secret, |hash, word| {
        let product = u128::from(hash ^ word) * u128::from(secret | 1);
        (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ secret
    })
}

impl Iterator for FlowDump {
    type Item = FlowStats;

    fn next(&mut self) -> Option<FlowStats> {
        loop {
            match self.portion.next() {
                Some(entry) if self.show(&entry) => {
                    return Some(translate::flow_stats(&entry, &self.switch.ends));
                }
                Some(_) => {}
                None if self.read() => {}
                None => return None,
            }
        }
    }
}
