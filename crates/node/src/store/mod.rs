//! # What survives a restart
//!
//! **Question answered**: which switches, ports, rules, groups and meters did users and controllers want when this process ended?
//!
//! One redb file, `state.redb` in the state directory, format [`FORMAT_VERSION`]. It holds what was made through the API or by OpenFlow;
//! what the configuration file declares lives there and is declared again at each start (port numbers apart, which are remembered for
//! both).
//!
//! ## Rules
//!
//! * **API changes are durable before their answer**: [`Store::flushed`] commits at once and waits.
//! * **OpenFlow changes are written behind**, gathered for up to [`GROUP`] and committed together: on disk within 50 ms of taking effect
//!   on a disk that flushes in less than 30. A kill -9 loses at most those; an OpenFlow barrier orders, it does not promise durability.
//! * **Back-pressure**: while [`ROOM`] changes of one switch wait, its sessions stop reading; no other switch notices.
//! * **A disk that refuses** (full, gone, read-only) stops nothing: changes wait in memory, coalesced by thing, up to
//!   [`ROOM_WITHOUT_DISK`] per switch; writing is tried each second; the API says so in each answer that depends on it.
//! * **A damaged file** is found out before anything is written to it: every page is compared with its checksum when it is opened (`checked`). It is
//!   renamed, never removed, and what is sound in it is copied to a new one (`salvage`).
//! * **What is no store at all** is renamed, too, and the node starts with what its configuration file says.
//! * **A file that cannot be written** when the node starts is read all the same: what is in it is in force, and nothing is saved until it can be.
//! * **A file that is removed or replaced** under our hands is written whole again, within a second; what lies there instead is renamed.
//! * **A damaged record** is set aside in the file and said; nothing of it is in force, everything else is ([`Store::left_out`]).
//!
//! ## Threads
//!
//! One writer thread owns the file after [`Kept`] is dropped. Everybody else puts records into one queue under a short lock.

mod checked;
mod checksum;
mod counts;
mod database;
mod described;
mod encode;
mod error;
mod overlay;
mod pending;
mod place;
mod salvage;
mod stamp;
mod tables;
mod upgrade;
mod uses;
mod writer;

use crate::journal::{Change, FlowEntry, FlowId, Journal, TableNames, Wait};
use api::{PartName, PortName, PortSpec, Revision, SwitchName, SwitchSpec};
use counts::Counts;
use database::File;
use datapath::PortCounters;
use flow::Counted;
use pending::{Kind, Record, Thing};
use port::{Ends, Share};
use salvage::Salvage;
use stamp::{Clock, Moment, machine_clock};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use uses::Uses;
use writer::{Shared, Writing};

pub use database::{FORMAT_VERSION, log_panics_of_redb};
pub use error::StoreError;
pub use writer::{GROUP, ROOM, ROOM_WITHOUT_DISK};

/// The file's name in the state directory.
pub const FILE_NAME: &str = "state.redb";

/// Under this name: below which number every event may have been given.
const EVENTS: &str = "events";

/// Where the switch's name stands in the key of what belongs to the node itself; no switch can have it.
const NO_SWITCH: &str = "";

/// Keeps the state of a node.
pub struct Store {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    path: PathBuf,
    ends: Arc<Ends>,
    clock: Arc<Clock>,
}

/// What an earlier process left; drop it when everything is restored.
pub struct Kept {
    file: Arc<File>,
    shared: Arc<Shared>,
    path: PathBuf,
    /// What kept rules name, until switches do.
    ends: Share,
    clock: Arc<Clock>,
    /// Where a damaged file went, if there was one.
    pub set_aside: Option<PathBuf>,
}

impl Store {
    /// Whether its thread has failed: nothing is saved any more.
    pub fn has_failed(&self) -> bool {
        self.writer.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Opens the store of a state directory, making both if need be. Rules have these numbers of tunnels' ends; the store keeps addresses.
    ///
    /// # Errors
    /// No store can be had there. A damaged one is set aside instead.
    pub fn open(directory: &Path, ends: &Arc<Ends>) -> Result<(Self, Kept), StoreError> {
        Self::open_with(directory, ends, machine_clock().into())
    }

    fn open_with(
        directory: &Path,
        ends: &Arc<Ends>,
        clock: Arc<Clock>,
    ) -> Result<(Self, Kept), StoreError> {
        std::fs::create_dir_all(directory)
            .map_err(|source| StoreError::Directory { path: directory.into(), source })?;
        let path = directory.join(FILE_NAME);
        let (file, problem, set_aside) = open_or_set_aside(&path, &*clock)?;
        let file = Arc::new(file);
        let shared = Arc::new(Shared::new());
        shared.note_left_out(file.damaged());
        let writing = Writing::new(&file, problem.is_none());
        if let Some(problem) = problem {
            shared.begin_without_disk(problem);
        }
        let writer = spawn_writer(&shared, writing, &clock);
        let (ends, clock) = (ends.clone(), clock.clone());
        let kept = Kept {
            file,
            shared: shared.clone(),
            path: path.clone(),
            ends: Share::unbounded(ends.clone()),
            clock: clock.clone(),
            set_aside,
        };
        Ok((Self { shared, writer: Some(writer), path, ends, clock }, kept))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the state is not being saved, if it is not.
    pub fn problem(&self) -> Option<Arc<StoreError>> {
        self.shared.problem()
    }

    /// Things that this start found damaged or could not take back; the log names each.
    pub fn left_out(&self) -> usize {
        self.shared.left_out()
    }

    /// Forgets a thing that the switch does not take back: it would return when the reason has gone, though nobody wants it any more.
    pub fn forget_refused(&self, switch: &SwitchName, refused: &Change) {
        self.shared.note_left_out(1);
        let journal = self.journal(switch);
        match refused {
            Change::FlowSet(id, _) => journal.record(Change::FlowGone(id.clone())),
            Change::GroupSet(group, _) => journal.record(Change::GroupGone(group.id.0)),
            Change::MeterSet(meter, _) => journal.record(Change::MeterGone(meter.id.0)),
            Change::FlowGone(_)
            | Change::GroupGone(_)
            | Change::MeterGone(_)
            | Change::Tables(_)
            | Change::Used { .. }
            | Change::Counted(_)
            | Change::PortConfig { .. } => {}
        }
    }

    /// Ready when everything noted so far is on disk, or was tried: see [`Store::problem`] then.
    pub async fn flushed(&self) {
        self.shared.flushed().await;
    }

    /// Keeps a switch that the API made.
    pub fn put_switch(&self, spec: &SwitchSpec) {
        self.put(Kind::Switch, &spec.name, &[], json(spec));
    }

    /// Forgets a switch with its ports, rules, groups and meters.
    pub fn forget_switch(&self, name: &SwitchName) {
        self.shared.forget((**name).into());
    }

    /// Keeps a port that the API made.
    pub fn put_port(&self, switch: &SwitchName, name: &PortName, spec: &PortSpec) {
        self.put(Kind::Port, switch, name.as_bytes(), json(spec));
    }

    /// Remembers which number a port has.
    pub fn put_number(&self, switch: &SwitchName, port: &PortName, number: u32) {
        self.put(Kind::Number, switch, port.as_bytes(), Some(number.to_be_bytes().into()));
    }

    /// Remembers which numbers a switch's ports have had, among the ports' own.
    pub fn put_numbers(&self, switch: &SwitchName, numbers: &[u8]) {
        self.put(Kind::Number, switch, PAST, Some(numbers.into()));
    }

    /// Keeps what a switch's ports have counted, by number, for the next start.
    pub fn put_port_counts<'a>(
        &self,
        switch: &SwitchName,
        ports: impl Iterator<Item = (u32, &'a PortCounters)>,
    ) {
        let record = counts::port_bytes(ports).into_boxed_slice();
        self.put(Kind::Counts, switch, counts::PORTS, Some(record));
    }

    /// Forgets what rules and ports had counted: it is taken back once.
    pub fn forget_counts(&self, switch: &SwitchName) {
        [counts::RULES, counts::PORTS]
            .iter()
            .for_each(|id| self.put(Kind::Counts, switch, id, None));
    }

    /// Forgets a port and its number.
    pub fn forget_port(&self, switch: &SwitchName, port: &PortName, number: u32) {
        self.put(Kind::Port, switch, port.as_bytes(), None);
        self.put(Kind::Number, switch, port.as_bytes(), None);
        self.put(Kind::PortConfig, switch, &number.to_be_bytes(), None);
    }

    /// Forgets that the API made a switch; its rules stay, for the one that the configuration file declares.
    pub fn forget_made_switch(&self, name: &SwitchName) {
        self.put(Kind::Switch, name, &[], None);
    }

    /// Forgets that the API made a port.
    pub fn forget_made_port(&self, switch: &SwitchName, port: &PortName) {
        self.put(Kind::Port, switch, port.as_bytes(), None);
    }

    /// Keeps what steering was asked for.
    pub fn steer_records(&self) -> SteerRecords {
        SteerRecords(self.shared.clone())
    }

    /// Keeps a part's record, or forgets it.
    pub fn put_part(&self, name: &PartName, record: Option<&impl serde::Serialize>) {
        self.put(Kind::Part, NO_SWITCH, name.as_bytes(), record.and_then(json));
    }

    /// Forgets a part.
    pub fn forget_part(&self, name: &PartName) {
        self.put(Kind::Part, NO_SWITCH, name.as_bytes(), None);
    }

    /// Keeps below which number every event may have been given.
    pub fn event_block(&self) -> impl Fn(Revision) + Send + Sync + 'static {
        let shared = self.shared.clone();
        move |below| {
            let thing = Thing { kind: Kind::Node, id: EVENTS.as_bytes().into() };
            shared.put(&NO_SWITCH.into(), thing, Some(below.0.to_be_bytes().into()));
        }
    }

    /// Keeps what offload was asked for.
    pub fn offload_records(&self) -> OffloadRecords {
        OffloadRecords(self.shared.clone())
    }

    fn put(&self, kind: Kind, switch: &str, id: &[u8], record: Record) {
        self.shared.put(&switch.into(), Thing { kind, id: id.into() }, record);
    }

    /// The journal of one switch.
    pub fn journal(&self, switch: &SwitchName) -> Arc<dyn Journal> {
        let (shared, ends) = (self.shared.clone(), self.ends.clone());
        let clock = self.clock.clone();
        let uses = Mutex::default();
        Arc::new(SwitchJournal { shared, ends, clock, switch: (**switch).into(), uses })
    }
}

/// Keeps what steering was asked for; each thing has an id.
pub struct SteerRecords(Arc<Shared>);

impl SteerRecords {
    /// Keeps a thing, or forgets it.
    pub fn put(&self, id: &str, record: Option<Vec<u8>>) {
        put(&self.0, Kind::Steer, id, record);
    }
}

/// Keeps what offload was asked for; each thing has an id.
pub struct OffloadRecords(Arc<Shared>);

impl OffloadRecords {
    /// Keeps a thing, or forgets it.
    pub fn put(&self, id: &str, record: Option<Vec<u8>>) {
        put(&self.0, Kind::Offload, id, record);
    }
}

/// Keeps a thing that is of no switch, or forgets it.
fn put(shared: &Shared, kind: Kind, id: &str, record: Option<Vec<u8>>) {
    let thing = Thing { kind, id: id.as_bytes().into() };
    shared.put(&NO_SWITCH.into(), thing, record.map(Vec::into_boxed_slice));
}

impl Drop for Store {
    /// Writes what waits, and ends the writer.
    fn drop(&mut self) {
        self.shared.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has said so already.
            let _ = writer.join();
        }
    }
}

/// The file, why it cannot be written, and where a damaged one went.
type Opened = (File, Option<StoreError>, Option<PathBuf>);

fn open_or_set_aside(path: &Path, clock: &Clock) -> Result<Opened, StoreError> {
    let damaged = match File::open(path, clock()) {
        Ok(file) => return Ok((file, None, None)),
        Err(damaged @ StoreError::Damaged { .. }) => damaged,
        Err(refused @ (StoreError::Open { .. } | StoreError::Write(_))) => {
            // What says why is the first refusal.
            return match File::open_unwritable(path, clock()) {
                Ok(file) => Ok((file, Some(refused), None)),
                Err(_) => Err(refused),
            };
        }
        Err(other) => return Err(other),
    };
    let set_aside = database::set_aside(path, "damaged")
        .map_err(|source| StoreError::SetAside { path: path.into(), source })?;
    let mut file = File::open(path, clock())?;
    match salvage::salvage(&set_aside, &file) {
        Ok(Salvage { kept, lost }) => {
            let name = set_aside.display();
            tracing::error!(
                "{damaged}; kept as {name}; {kept} of its records are in force, {lost} are lost"
            );
            file.note_lost(lost);
        }
        Err(error) => {
            let why = api::chain(&error);
            tracing::error!("{damaged}; kept as {}, starting without it", set_aside.display());
            tracing::info!("nothing could be read of it: {why}");
        }
    }
    Ok((file, None, Some(set_aside)))
}

fn spawn_writer(shared: &Arc<Shared>, writing: Writing, clock: &Arc<Clock>) -> JoinHandle<()> {
    let (shared, clock) = (shared.clone(), clock.clone());
    let thread = std::thread::Builder::new().name("suiro-store".into());
    thread
        .spawn(move || writer::run(&shared, writing, &*clock))
        .expect("a process that just started may have one more thread")
}

fn json(value: &impl serde::Serialize) -> Record {
    let bytes = serde_json::to_vec(value).expect("specs are plain data with text keys");
    Some(bytes.into_boxed_slice())
}

impl Kept {
    /// Switches that the API made.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn switches(&self) -> Result<Vec<SwitchSpec>, StoreError> {
        let mut found = Vec::new();
        self.read(Kind::Switch, None, |_, record| self.parsed(record).map(|one| found.push(one)))?;
        Ok(found)
    }

    /// Ports that the API made.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn ports(&self, switch: &SwitchName) -> Result<Vec<PortSpec>, StoreError> {
        self.ports_of(Some(switch))
    }

    /// Every port that the API made, on whatever switch.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn all_ports(&self) -> Result<Vec<PortSpec>, StoreError> {
        self.ports_of(None)
    }

    fn ports_of(&self, switch: Option<&SwitchName>) -> Result<Vec<PortSpec>, StoreError> {
        let mut found = Vec::new();
        self.read(Kind::Port, switch, |_, record| self.parsed(record).map(|one| found.push(one)))?;
        Ok(found)
    }

    /// Names and numbers of ports, whoever made them.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn numbers(&self, switch: &SwitchName) -> Result<Vec<(PortName, u32)>, StoreError> {
        let mut found = Vec::new();
        self.read(Kind::Number, Some(switch), |id, record| {
            if id == PAST {
                return Some(());
            }
            let name = std::str::from_utf8(id).ok()?.parse().ok()?;
            found.push((name, number(record)?));
            Some(())
        })?;
        Ok(found)
    }

    /// What [`Store::put_numbers`] remembered.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn past_numbers(&self, switch: &SwitchName) -> Result<Option<Vec<u8>>, StoreError> {
        let mut found = None;
        self.read(Kind::Number, Some(switch), |id, record| {
            if id == PAST {
                found = Some(record.to_vec());
            }
            Some(())
        })?;
        Ok(found)
    }

    /// Ports of a switch that controllers or users configured: number and `OFPPC_*` bits.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn port_configs(
        &self,
        switch: &SwitchName,
        mut visit: impl FnMut(u32, u32),
    ) -> Result<(), StoreError> {
        self.read(Kind::PortConfig, Some(switch), |id, record| {
            visit(number(id)?, number(record)?);
            Some(())
        })
    }

    /// The tables of a switch's pipeline, if a controller configured them.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn tables(&self, switch: &SwitchName) -> Result<Option<TableNames>, StoreError> {
        let mut found = None;
        self.read(Kind::Tables, Some(switch), |_, record| {
            found = Some(tables::read(record)?);
            Some(())
        })?;
        Ok(found)
    }

    /// What a switch's ports had counted when the node ended in order, by number.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn port_counts(&self, switch: &SwitchName) -> Result<Vec<(u32, PortCounters)>, StoreError> {
        let mut found = Vec::new();
        self.read(Kind::Counts, Some(switch), |id, record| {
            if id == counts::PORTS {
                found = counts::read_ports(record)?;
            }
            Some(())
        })?;
        Ok(found)
    }

    /// How many rules a switch has; at most `most` are counted.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn rules_up_to(&self, switch: &SwitchName, most: usize) -> Result<usize, StoreError> {
        self.file.count_up_to(&self.path, Kind::Flow, switch, most)
    }

    /// Every meter, group and rule of a switch, in an order in which they can be added.
    ///
    /// # Errors
    /// The file is damaged; what came before was handed over.
    pub fn changes(
        &self,
        switch: &SwitchName,
        mut restore: impl FnMut(Change),
    ) -> Result<(), StoreError> {
        let now = (self.clock)();
        let mut uses = Uses::default();
        self.read(Kind::Used, Some(switch), |_, record| uses.read(record, now))?;
        let mut counts = Counts::default();
        self.read(Kind::Counts, Some(switch), |id, record| {
            if id == counts::RULES {
                counts = Counts::read(record, now)?;
            }
            Some(())
        })?;
        for kind in [Kind::Meter, Kind::Group, Kind::Flow] {
            self.read(kind, Some(switch), |id, record| {
                let mut change = read_change(kind, id, record, &self.ends, now)?;
                if let Change::FlowSet(_, entry) = &mut change {
                    entry.idle_ns = uses.idle_ns(id, entry.age_ns);
                    entry.counted = counts.of(id, entry.age_ns);
                }
                restore(change);
                Some(())
            })?;
        }
        Ok(())
    }

    /// Parts with their records.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn parts<T: serde::de::DeserializeOwned>(&self) -> Result<Vec<(PartName, T)>, StoreError> {
        let mut found = Vec::new();
        self.read(Kind::Part, None, |id, record| {
            let name = std::str::from_utf8(id).ok()?.parse().ok()?;
            self.parsed(record).map(|record| found.push((name, record)))
        })?;
        Ok(found)
    }

    /// What [`Store::event_block`] kept last.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn event_block(&self) -> Result<Revision, StoreError> {
        let mut found = Revision(0);
        self.read(Kind::Node, None, |id, record| {
            if id == EVENTS.as_bytes() {
                found = Revision(u64::from_be_bytes(record.try_into().ok()?));
            }
            Some(())
        })?;
        Ok(found)
    }

    /// Everything that steering was asked for.
    ///
    /// # Errors
    /// The file is damaged; what came before was handed over.
    pub fn steer(&self, visit: impl FnMut(&str, &[u8])) -> Result<(), StoreError> {
        self.of_no_switch(Kind::Steer, visit)
    }

    /// Everything that offload was asked for.
    ///
    /// # Errors
    /// The file is damaged; what came before was handed over.
    pub fn offload(&self, visit: impl FnMut(&str, &[u8])) -> Result<(), StoreError> {
        self.of_no_switch(Kind::Offload, visit)
    }

    fn of_no_switch(
        &self,
        kind: Kind,
        mut visit: impl FnMut(&str, &[u8]),
    ) -> Result<(), StoreError> {
        self.file
            .read(&self.path, kind, Some(NO_SWITCH), |_, id, record| {
                visit(std::str::from_utf8(id).ok()?, record);
                Some(())
            })
            .map(|damaged| self.shared.note_left_out(damaged))
    }

    fn read(
        &self,
        kind: Kind,
        switch: Option<&SwitchName>,
        mut visit: impl FnMut(&[u8], &[u8]) -> Option<()>,
    ) -> Result<(), StoreError> {
        let switch = switch.map(|name| &**name);
        let damaged =
            self.file.read(&self.path, kind, switch, |_, id, record| visit(id, record))?;
        self.shared.note_left_out(damaged);
        Ok(())
    }

    /// Switches that have records but no switch: their configuration file no longer names them.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn orphans(&self, known: &[SwitchName]) -> Result<Vec<String>, StoreError> {
        let mut found = BTreeSet::new();
        // Uses may be noted while their switch goes; without its rules they are nothing, as are counts.
        let is_nothing = |kind: &Kind| matches!(kind, Kind::Used | Kind::Counts);
        for kind in Kind::ALL.into_iter().filter(|kind| !is_nothing(kind)) {
            found.extend(self.file.switches(&self.path, kind)?);
        }
        found.remove(NO_SWITCH);
        found.retain(|switch| !known.iter().any(|name| **name == **switch));
        Ok(found.into_iter().collect())
    }

    fn parsed<T: serde::de::DeserializeOwned>(&self, record: &[u8]) -> Option<T> {
        let parsed = serde_json::from_slice(record);
        parsed
            .inspect_err(|error| {
                tracing::warn!("state file {}: a record is left out: {error}", self.path.display())
            })
            .ok()
    }
}

/// Under no port's name: which numbers ports have had.
const PAST: &[u8] = &[];

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().map(u32::from_be_bytes).ok()
}

fn read_change(kind: Kind, id: &[u8], record: &[u8], ends: &Share, now: Moment) -> Option<Change> {
    let stamped = || record.split_first_chunk().map(|(at, rest)| (stamp::age(at, now), rest));
    Some(match kind {
        Kind::Meter => {
            let (age_ns, meter) = stamped()?;
            Change::MeterSet(described::read_meter(meter).ok()?, age_ns)
        }
        Kind::Group => {
            let (age_ns, group) = stamped()?;
            Change::GroupSet(described::read_group(group).ok()?, age_ns)
        }
        Kind::Flow => {
            let entry = encode::read_entry(record, ends, now).ok()?;
            Change::FlowSet(encode::read_id(id, ends).ok()?, entry)
        }
        Kind::Switch
        | Kind::Port
        | Kind::Number
        | Kind::PortConfig
        | Kind::Used
        | Kind::Counts
        | Kind::Tables
        | Kind::Steer
        | Kind::Node
        | Kind::Offload
        | Kind::Part => return None,
    })
}

/// The journal of one switch: encodes each change and hands it to the writer.
struct SwitchJournal {
    shared: Arc<Shared>,
    ends: Arc<Ends>,
    clock: Arc<Clock>,
    switch: Arc<str>,
    /// Of each class the digest of what was last noted of its rules' uses.
    uses: Mutex<BTreeMap<u8, u64>>,
}

impl SwitchJournal {
    /// Notes uses, if they are others than before: rules that are used all the time cost no writing.
    fn put_uses(&self, class: u8, idle_ns: &[(FlowId, u64)]) {
        let named = idle_ns.iter().map(|(id, idle)| (encode::id_bytes(id, &self.ends), *idle));
        let uses = uses::bytes(named);
        let digest = uses::digest(&uses);
        let mut noted = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.insert(class, digest) == Some(digest) {
            return;
        }
        let stamp = stamp::bytes(0, (self.clock)());
        let record = (!uses.is_empty()).then(|| [&stamp[..], &uses].concat());
        self.put(Kind::Used, vec![class], record);
    }

    fn put_counts(&self, rules: &[(FlowId, Counted)]) {
        let named = rules.iter().map(|(id, counted)| (encode::id_bytes(id, &self.ends), *counted));
        let record = counts::bytes(named, (self.clock)());
        self.put(Kind::Counts, counts::RULES.into(), Some(record));
    }

    fn put(&self, kind: Kind, id: Vec<u8>, record: Option<Vec<u8>>) {
        let thing = Thing { kind, id: id.into() };
        self.shared.put(&self.switch, thing, record.map(Vec::into_boxed_slice));
    }

    fn put_flow(&self, id: &FlowId, entry: Option<&FlowEntry>) {
        let entry = entry.map(|entry| encode::entry_bytes(entry, &self.ends, (self.clock)()));
        self.put(Kind::Flow, encode::id_bytes(id, &self.ends), entry);
    }

    fn put_described(&self, kind: Kind, id: u32, age_ns: u64, message: Vec<u8>) {
        let stamp = stamp::bytes(age_ns, (self.clock)());
        self.put_numbered(kind, id, Some([&stamp[..], &message].concat()));
    }

    fn put_numbered(&self, kind: Kind, id: u32, record: Option<Vec<u8>>) {
        self.put(kind, id.to_be_bytes().to_vec(), record);
    }
}

impl Journal for SwitchJournal {
    fn record(&self, change: Change) {
        match change {
            Change::FlowSet(id, entry) => self.put_flow(&id, Some(&entry)),
            Change::FlowGone(id) => self.put_flow(&id, None),
            Change::GroupSet(group, age_ns) => {
                let message = described::group_bytes(&group);
                self.put_described(Kind::Group, group.id.0, age_ns, message);
            }
            Change::GroupGone(id) => self.put_numbered(Kind::Group, id, None),
            Change::MeterSet(meter, age_ns) => {
                let message = described::meter_bytes(&meter);
                self.put_described(Kind::Meter, meter.id.0, age_ns, message);
            }
            Change::MeterGone(id) => self.put_numbered(Kind::Meter, id, None),
            Change::Used { class, idle_ns } => self.put_uses(class, &idle_ns),
            Change::Counted(rules) => self.put_counts(&rules),
            Change::Tables(tables) => {
                self.put(Kind::Tables, Vec::new(), tables.as_ref().map(tables::bytes));
            }
            Change::PortConfig { port, bits } => {
                let bits = (bits != 0).then(|| bits.to_be_bytes().to_vec());
                self.put_numbered(Kind::PortConfig, port, bits);
            }
        }
    }

    fn room(&self) -> Wait<'_> {
        Box::pin(self.shared.room(&self.switch))
    }

    fn flushed(&self) -> Wait<'_> {
        Box::pin(self.shared.flushed())
    }
}

#[cfg(test)]
mod tests;
