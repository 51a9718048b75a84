//! What frames that no worker saw add to a switch's counts.
//!
//! A frame that a rung past the worker took counts where it would have counted on the worker: entries, tables, meters, group buckets, and the
//! age of its station. Which those are is part of the answer of [`Snapshot::resolve`].

use crate::action::PortNo;
use crate::resolve::{Hit, Resolved};
use crate::snapshot::Snapshot;
use crate::store::tick;
use crate::tally::Counted;
use crate::time::Nanos;

/// The worker's number under which tables count these frames; a datapath has fewer workers.
const NOBODY: u8 = 255;

/// What the frames of one flow add to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Credits {
    /// Entries that they find, in order.
    pub entries: Vec<Hit>,
    /// The table that has no entry for them, if one has not.
    pub missed: Option<u8>,
    /// Meters that they pass.
    pub meters: Vec<u32>,
    /// Buckets that they take: group and place.
    pub buckets: Vec<(u32, usize)>,
    /// Their source, as a bridge learns it: VLAN id and address.
    pub stations: Vec<(u16, u64)>,
}

impl Credits {
    /// Whether frames add to the same. Snapshots do not matter.
    pub fn is_same(&self, other: &Self) -> bool {
        let entries =
            |of: &Self| of.entries.iter().map(|hit| (hit.table, hit.id)).collect::<Vec<_>>();
        let rest = |of: &Self| Self { entries: Vec::new(), ..of.clone() };
        entries(self) == entries(other) && rest(self) == rest(other)
    }
}

impl Resolved {
    /// What frames with this answer add to.
    pub fn credits(&self) -> Credits {
        Credits {
            entries: self.entries.clone(),
            missed: self.missed,
            meters: self.limits.clone(),
            buckets: self.buckets.clone(),
            stations: self.learns.clone(),
        }
    }
}

impl Snapshot {
    /// Counts frames that came in by `in_port`, the last of them at `used`, as if a worker had taken them through these tables. One thread
    /// may do so for each switch. Entries that went since still count, as long as anyone holds the snapshot that found them.
    pub fn credit(&self, credits: &Credits, in_port: PortNo, frames: Counted, used: Nanos) {
        let Counted { packets, bytes } = frames;
        for hit in &credits.entries {
            let record = self.arena.record(hit.id);
            if record.is_visible(hit.generation) {
                let home = self.arena.record(record.home());
                home.count_as_guest(packets, bytes);
                home.touch_later(tick(used));
            }
            self.count_lookups(hit.table, packets, packets);
        }
        if let Some(table) = credits.missed {
            self.count_lookups(table, packets, 0);
        }
        credits.meters.iter().for_each(|&meter| self.meters.credit(meter, frames));
        for &(group, bucket) in &credits.buckets {
            self.groups.get(group).into_iter().for_each(|group| group.credit(bucket, frames));
        }
        for &(vlan, mac) in &credits.stations {
            if self.macs.lookup(vlan, mac, used) == Some(in_port) {
                self.macs.learn(vlan, mac, in_port, used);
            }
        }
    }

    /// Whether a bridge knows behind this port all that it would learn of such frames.
    pub fn has_learned(&self, credits: &Credits, in_port: PortNo, now: Nanos) -> bool {
        let is_known =
            |&(vlan, mac): &(u16, u64)| self.macs.lookup(vlan, mac, now) == Some(in_port);
        credits.stations.iter().all(is_known)
    }

    fn count_lookups(&self, table: u8, lookups: u64, matches: u64) {
        if let Some(view) = self.view.table(table) {
            view.counters.add(NOBODY, lookups, matches, 0);
        }
    }
}
