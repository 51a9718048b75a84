//! What frames that no worker saw add to a switch's counts.
//!
//! A frame that a rung past the worker took counts where it would have counted on the worker: entries, tables, meters, group buckets, and the
//! age of its station. Which those are is part of the answer of [`Snapshot::resolve`].

use crate::action::PortNo;
use crate::meter::{BucketShape, SharedBucket};
use crate::resolve::{Hit, Resolved};
use crate::snapshot::Snapshot;
use crate::store::tick;
use crate::tally::Counted;
use crate::time::Nanos;
use std::sync::Arc;

/// The worker's number under which tables count these frames; a datapath has fewer workers.
const NOBODY: u8 = 255;

/// What the frames of one flow add to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Credits {
    /// Entries that they find, in order.
    pub entries: Vec<Hit>,
    /// The table that has no entry for them, if one has not.
    pub missed: Option<u8>,
    /// The meter that they pass, if they pass one, and how many of the entries they find before. Of several a rung cannot tell which one
    /// dropped a frame.
    pub meter: Option<(u32, usize)>,
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
            meter: self.limits.first().map(|limit| (limit.meter, limit.entries)),
            buckets: self.buckets.clone(),
            stations: self.learns.clone(),
        }
    }
}

impl Snapshot {
    /// Counts frames that came in by `in_port`, the last of them at `used`, as if a worker had taken them through these tables; of them,
    /// their meter dropped `limited`. One thread may do so for each switch. Entries that went since still count, as long as anyone holds the
    /// snapshot that found them.
    pub fn credit(
        &self,
        credits: &Credits,
        in_port: PortNo,
        (frames, limited): (Counted, Counted),
        used: Nanos,
    ) {
        let passed = Counted {
            packets: frames.packets - limited.packets,
            bytes: frames.bytes - limited.bytes,
        };
        let before = credits.meter.map_or(0, |(_, entries)| entries).min(credits.entries.len());
        let (first, rest) = credits.entries.split_at(before);
        first.iter().for_each(|hit| self.credit_entry(hit, frames, used));
        if let Some((meter, _)) = credits.meter {
            self.meters.credit(meter, frames);
        }
        if passed.packets == 0 {
            return;
        }
        rest.iter().for_each(|hit| self.credit_entry(hit, passed, used));
        if let Some(table) = credits.missed {
            self.count_lookups(table, passed.packets, 0);
        }
        for &(group, bucket) in &credits.buckets {
            self.groups.get(group).into_iter().for_each(|group| group.credit(bucket, passed));
        }
        for &(vlan, mac) in &credits.stations {
            if self.macs.lookup(vlan, mac, used) == Some(in_port) {
                self.macs.learn(vlan, mac, in_port, used);
            }
        }
    }

    fn credit_entry(&self, hit: &Hit, frames: Counted, used: Nanos) {
        let record = self.arena.record(hit.id);
        if record.is_visible(hit.generation) {
            let home = self.arena.record(record.home());
            home.count_as_guest(frames.packets, frames.bytes);
            home.touch_later(tick(used));
        }
        self.count_lookups(hit.table, frames.packets, frames.packets);
    }

    /// Where rungs past the worker take from the buckets of a meter's bands: first the one that decides if several refuse. `find` finds a place
    /// for one that has none; `None` if it does not.
    pub fn shared_meter(
        &self,
        meter: u32,
        find: &mut dyn FnMut(&BucketShape) -> Option<Arc<dyn SharedBucket>>,
    ) -> Option<Vec<u32>> {
        self.meters.shared(meter, find)
    }

    /// From here on workers take from that meter's buckets where rungs do.
    pub fn share_meter(&self, meter: u32) {
        self.meters.share(meter);
    }

    /// Whether a bridge knows behind this port all that it would learn of such frames.
    pub fn has_learned(&self, credits: &Credits, in_port: PortNo, now: Nanos) -> bool {
        let is_known =
            |&(vlan, mac): &(u16, u64)| self.macs.lookup(vlan, mac, now) == Some(in_port);
        credits.stations.iter().all(is_known)
    }

    /// A bridge learns what it would of such frames, the last of which came at `used`; but of no station that it has seen since.
    pub fn learn(&self, stations: &[(u16, u64)], in_port: PortNo, (used, now): (Nanos, Nanos)) {
        for &(vlan, mac) in stations {
            if self.macs.lookup(vlan, mac, now).is_none() {
                self.macs.learn(vlan, mac, in_port, used);
            }
        }
    }

    fn count_lookups(&self, table: u8, lookups: u64, matches: u64) {
        if let Some(view) = self.view.table(table) {
            view.counters.add(NOBODY, lookups, matches, 0);
        }
    }
}
