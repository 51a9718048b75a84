//! # One switch's control state
//!
//! **Question answered**: what does this switch know and forward by, who may change it, who hears of it, and what is kept of it?
//!
//! A [`Switch`] owns its tables ([`flow::Pipeline`]), ports, groups and meters as their owners described them, its fail mode and
//! its listeners. OpenFlow sessions ([`crate::agent`]) and the local API call the same methods, in OpenFlow values; [`translate`]
//! turns them into the tables' own and back, so that neither side knows the other's words.
//!
//! ## Invariants
//!
//! * **Lock order**: `control` → `buffers` → listeners → a connection's queue. Nothing waits (no I/O, no channel) under any of them.
//! * **Publication**: a change reaches the workers at the latest about [`PUBLISH_WITHIN`] after it was made, and always before
//!   [`Switch::publish`] returns, which sessions call before a barrier's reply and the API before its answer. A flood of
//!   changes costs one snapshot per interval, not one per change. A change of the ports is published before anyone hears of it.
//! * **Journal**: every accepted change is recorded under the lock, in the order in which it took effect.
//! * **Fail mode**: without a controller a standalone switch forwards what no entry matches as a learning switch; a secure
//!   one drops it. Entries stay as they are (OpenFlow 1.3.5 §6.3.2) unless the [`FailPolicy`] says otherwise.

mod budget;
mod buffers;
mod dump;
mod entries;
mod fail;
mod features;
mod flows;
mod groups;
mod listener;
mod names;
mod near;
mod packet_in;
mod plane;
mod port;
mod portions;
mod ports;
mod queues;
mod restore;
mod role;
mod tables;
pub mod translate;
mod uses;
mod wanted;

#[cfg(test)]
pub(crate) mod tests;

pub use budget::EntryBudget;
pub use buffers::SLOTS as PACKET_BUFFERS;
pub use dump::FlowDump;
pub use fail::FailPolicy;
pub use listener::{Connection, Event, Listener, PacketInEvent, PortEvent};
pub use plane::{Emission, Plane};
pub use port::SwitchPort;
pub use restore::NotRestored;

use crate::captures::{Ear, Ears, Listening, Spoken, Wire};
use crate::feed::Feed;
use crate::hits::{Hits, Who};
use crate::journal::{Change, Journal, TableNames};
use crate::room::Room;
use ::capture::Direction;
use ::port::{Ends, Share};
use api::{Bound, FailMode, Happening, News, Noun};
use budget::Account;
use buffers::PacketBuffers;
use datapath::PortQueues;
use fail::Attendance;
use flow::{Limits, MacEntry, Nanos, Pipeline, PortNo, Serials, Snapshot};
use listener::{Audience, Listeners};
use openflow::{
    ErrorCode, Fault, FragmentMode, GroupDesc, GroupId, MeterConfig, MeterId, Version, VersionSet,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a change may wait for others before workers see it. Chosen: a thousand snapshots a second at most.
pub const PUBLISH_WITHIN: Duration = Duration::from_millis(1);

/// What a switch is made from.
#[derive(Clone, Debug)]
pub struct NewSwitch {
    /// Name, unique on the node.
    pub name: String,
    /// OpenFlow datapath id, unique on the node.
    pub datapath_id: u64,
    /// Without a controller.
    pub fail_mode: FailMode,
    /// Bytes of an unlimited packet-in that a controller gets until it says otherwise.
    pub miss_send_len: u16,
    /// What its tables may grow to.
    pub limits: Limits,
    /// The node's numbers of snapshots.
    pub serials: Serials,
    /// The node's numbers of tunnels' ends.
    pub ends: Arc<Ends>,
    /// What entries it shares with the node's other switches.
    pub budget: Arc<EntryBudget>,
    /// What waits of all of them takes memory from here.
    pub room: Arc<Room>,
    /// Where the node tells what happens.
    pub feed: Feed,
    /// Where it notes who hits its bounds.
    pub hits: Hits,
}

/// One switch. Shared by sessions, API and event pump; every method may be called from any thread.
pub struct Switch {
    name: String,
    datapath_id: u64,
    miss_send_len: u16,
    /// The OpenFlow versions that it speaks, as [`openflow::VersionSet`].
    versions: AtomicU32,
    limits: Limits,
    ends: Share,
    room: Arc<Room>,
    feed: Feed,
    hits: Hits,
    plane: Arc<dyn Plane>,
    journal: Arc<dyn Journal>,
    listeners: Listeners,
    control: Mutex<Control>,
    /// Whose changes of entries are under way; taken before `control`.
    turn: tokio::sync::Mutex<()>,
    /// Changes that are half made.
    half_made: AtomicU32,
    buffers: Mutex<PacketBuffers>,
    /// Rung when the first change after a publication is made.
    unpublished: Notify,
    /// Captures of its sessions.
    ears: Arc<Ears>,
}

/// What the lock protects.
pub(crate) struct Control {
    pipeline: Pipeline,
    /// Room for entries.
    account: Account,
    ports: BTreeMap<PortNo, SwitchPort>,
    /// Of ports that are there or about to be.
    queues: BTreeMap<PortNo, PortQueues>,
    /// Groups and meters as their owners described them, as they are told and kept.
    groups: BTreeMap<GroupId, GroupDesc>,
    meters: BTreeMap<MeterId, MeterConfig>,
    /// The pipeline's tables and their names; the same tables as [`Pipeline::has_table`] says.
    tables: TableNames,
    fragments: FragmentMode,
    attendance: Attendance,
    /// The highest generation that a master or slave claimed (OpenFlow 1.3.5 §6.3.4).
    generation: Option<u64>,
    /// Changed since the last snapshot.
    dirty: bool,
    /// Changed since it was last looked which ends of tunnels are named.
    may_name_less: bool,
    /// Being restored: nothing is journalled.
    silent: bool,
}

impl Switch {
    /// A switch with empty tables; `plane` connects it to the datapath, which needs a first snapshot.
    pub fn new(
        spec: NewSwitch,
        journal: Arc<dyn Journal>,
        plane: impl FnOnce(Arc<Snapshot>) -> Arc<dyn Plane>,
    ) -> Arc<Self> {
        let mut control = Control {
            pipeline: Pipeline::new(spec.limits, &spec.serials),
            account: Account::new(spec.budget),
            ports: BTreeMap::new(),
            queues: BTreeMap::new(),
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
            tables: tables::every_table(&spec.limits),
            fragments: FragmentMode::Normal,
            attendance: Attendance::new(spec.fail_mode),
            generation: None,
            dirty: false,
            may_name_less: false,
            silent: false,
        };
        control.configure(Audience::default());
        let plane = plane(control.pipeline.snapshot());
        Arc::new(Self {
            name: spec.name,
            datapath_id: spec.datapath_id,
            miss_send_len: spec.miss_send_len,
            versions: AtomicU32::new(VersionSet::of(Version::ALL).0),
            limits: spec.limits,
            ends: Share::new(spec.ends),
            buffers: Mutex::new(PacketBuffers::within(spec.room.part())),
            room: spec.room,
            feed: spec.feed,
            hits: spec.hits,
            plane,
            journal,
            listeners: Listeners::default(),
            control: Mutex::new(control),
            turn: tokio::sync::Mutex::default(),
            half_made: AtomicU32::new(0),
            unpublished: Notify::new(),
            ears: Arc::default(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its OpenFlow datapath id.
    pub fn datapath_id(&self) -> u64 {
        self.datapath_id
    }

    /// Bytes of an unlimited packet-in that a controller gets until it says otherwise.
    pub fn miss_send_len(&self) -> u16 {
        self.miss_send_len
    }

    /// The OpenFlow versions that it speaks; every one that suiro knows until it is told otherwise.
    pub fn versions(&self) -> VersionSet {
        VersionSet(self.versions.load(Relaxed))
    }

    /// Changes them for connections that say hello from now on.
    pub fn set_versions(&self, versions: VersionSet) {
        self.versions.store(versions.0, Relaxed);
    }

    /// Tells of it, or of something that belongs to it. Never waits.
    pub fn tell(&self, (kind, name): (Noun, &str), change: Happening, text: impl Into<String>) {
        self.feed.tell(News::inside((kind, &self.name, name), change, text));
    }

    /// Lets a capture hear its sessions until what is returned is dropped.
    pub fn listen(&self, ear: Ear) -> Listening {
        self.ears.open(ear)
    }

    /// Whether a capture hears its sessions.
    pub fn is_heard(&self) -> bool {
        self.ears.is_open()
    }

    /// A message of one of its sessions passed.
    pub fn heard(&self, wire: &Wire, direction: Direction, message: &[u8]) {
        if self.is_heard() {
            let spoken = Spoken { switch: &self.name, wire, direction, message };
            self.ears.hear(self.now(), &spoken);
        }
    }

    /// What its tables may grow to.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Where its changes are kept: a session awaits room there, the API that they are written.
    pub fn journal(&self) -> &dyn Journal {
        &*self.journal
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Nanos {
        self.plane.now()
    }

    /// Notes that workers must see a new snapshot soon.
    fn touch(&self, control: &mut Control) {
        control.may_name_less = true;
        if !std::mem::replace(&mut control.dirty, true) {
            self.unpublished.notify_one();
        }
    }

    fn record(&self, control: &Control, change: impl FnOnce() -> Change) {
        if !control.silent {
            self.journal.record(change());
        }
    }

    /// Lets every batch from now on see all changes made so far; free if there are none.
    pub fn publish(&self) {
        self.publish_locked(&mut self.control());
    }

    /// As [`Switch::publish`], and returns when they do: what a barrier's answer promises (OpenFlow 1.3.5 §6.1.1). Of entries that
    /// went before it, the controller has been told then.
    pub fn settle(&self) {
        self.publish();
        self.plane.settle();
        self.tell_departed(&mut self.control());
    }

    /// Waits for the workers that may still count on entries that went, and tells of these.
    fn see_off(&self) {
        if self.control().pipeline.has_leaving() {
            self.plane.settle();
        }
        let mut control = self.control();
        self.tell_departed(&mut control);
        if control.pipeline.has_leaving() {
            self.unpublished.notify_one(); // more went in between
        }
    }

    fn publish_locked(&self, control: &mut Control) {
        if std::mem::take(&mut control.dirty) {
            self.plane.publish(control.pipeline.snapshot());
        }
    }

    /// Publishes changes that nobody waits for; runs as long as the switch lives, one task per switch.
    pub async fn keep_published(self: Arc<Self>) {
        loop {
            self.unpublished.notified().await;
            tokio::time::sleep(PUBLISH_WITHIN).await;
            if !self.publish_whole() {
                continue; // rung again when it is
            }
            self.see_off();
            while self.control().pipeline.reclaim() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Publishes unless a change is half made; whether it did.
    fn publish_whole(&self) -> bool {
        let mut control = self.control();
        let is_whole = self.half_made.load(Relaxed) == 0;
        if is_whole {
            self.publish_locked(&mut control);
        }
        is_whole
    }

    /// The stations that it has learned, by VLAN and address.
    pub fn learned(&self) -> Vec<MacEntry> {
        self.control().pipeline.mac_table().dump(self.now())
    }

    /// Forgets the stations that it has learned; frames to them are flooded until they speak.
    pub fn forget_learned(&self) {
        self.control().pipeline.mac_table().flush();
    }

    /// Who hit the node's bounds.
    #[cfg(test)]
    pub(crate) fn hits(&self) -> &Hits {
        &self.hits
    }

    /// Where messages for its controllers take memory.
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// One of it, or who talks to it, hit a bound.
    pub(crate) fn hit(&self, bound: Bound, name: &str, text: &str) {
        self.hits.tell(bound, Who::of(&self.name, name), 1, text);
    }

    /// Of these refusals, those that a bound on what it may hold has caused are noted.
    fn note_refusals<'f>(&self, refusals: impl Iterator<Item = &'f Fault>) {
        use ErrorCode as E;
        let is_a_bound = |fault: &&Fault| {
            matches!(
                fault.code,
                E::FlowModFailedTableFull
                    | E::GroupModFailedOutOfGroups
                    | E::GroupModFailedOutOfBuckets
                    | E::MeterModFailedOutOfMeters
                    | E::MeterModFailedOutOfBands
            )
        };
        let mut all = refusals.filter(is_a_bound).peekable();
        if let Some(first) = all.peek().copied() {
            let times = all.count() as u64;
            self.hits.tell(Bound::Rules, Who::switch(&self.name), times, first.what);
        }
    }

    /// Frames that storm control has let go nowhere, by the port where they came in.
    pub fn storms(&self) -> Vec<(PortNo, u64)> {
        self.control().pipeline.ports().storms().collect()
    }

    /// The connections that it has.
    pub fn connections(&self) -> Vec<Connection> {
        self.listeners.describe()
    }
}
