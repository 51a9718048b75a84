//! Interfaces that are none: they take what the agent gives and say what the test wants.

use crate::surroundings::Surroundings;
use place::steering::{
    CoreTimes, EnforceError, Enforcer, Entry, EntryKey, EntryStatus, Event, Field, FlowKey,
    OpenError, Opener, Options, PolicyKind, Step, UnitStatus, Urgency,
};
use place::{Core, CoreId, CoreTable, Reason, Stage, UnitId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

/// A host of four idle cores.
pub fn four_cores() -> Surroundings {
    let cores = (0..4).map(|id| Core::new(CoreId(id))).collect();
    Surroundings { cores, ..Surroundings::default() }
}

/// One interface.
#[derive(Default)]
struct Port {
    /// Changes each time that it is made anew.
    generation: u32,
    /// Whether a program is on it, or pinned.
    attached: bool,
    attachments: u32,
    refuses: bool,
    entries: HashMap<EntryKey, (Entry, UnitId)>,
    changes: u32,
    units: Vec<UnitStatus>,
    frames: u64,
    table: Option<CoreTable>,
    came: BTreeMap<CoreId, u32>,
    events: Vec<Event>,
    moves: Vec<(UnitId, CoreId)>,
    urged: Vec<(UnitId, CoreId)>,
}

#[derive(Default)]
struct State {
    ports: BTreeMap<String, Port>,
    times: BTreeMap<u16, CoreTimes>,
    made: u32,
}

/// All interfaces.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<State>>);

impl World {
    pub fn with(interfaces: &[&str]) -> Self {
        let world = Self::default();
        interfaces.iter().for_each(|name| world.add(name));
        world
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn port<T>(&self, name: &str, with: impl FnOnce(&mut Port) -> T) -> T {
        with(self.lock().ports.get_mut(name).expect("the interface is there"))
    }

    pub fn opener(&self) -> Double {
        Double(self.clone())
    }

    pub fn add(&self, name: &str) {
        let mut state = self.lock();
        state.made += 1;
        let port = Port { generation: state.made, ..Port::default() };
        state.ports.insert(name.into(), port);
    }

    pub fn remove(&self, name: &str) {
        self.lock().ports.remove(name);
    }

    pub fn refuse_entries(&self, name: &str) {
        self.port(name, |port| port.refuses = true);
    }

    pub fn entries(&self, name: &str) -> Vec<Entry> {
        self.port(name, |port| port.entries.values().map(|(entry, _)| *entry).collect())
    }

    pub fn unit_of(&self, name: &str, which: impl Fn(&Entry) -> bool) -> UnitId {
        self.port(name, |port| port.entries.values().find(|(e, _)| which(e)).unwrap().1)
    }

    pub fn changes(&self, name: &str) -> u32 {
        self.port(name, |port| port.changes)
    }

    pub fn attachments(&self, name: &str) -> u32 {
        self.port(name, |port| port.attachments)
    }

    pub fn table(&self, name: &str) -> Option<CoreTable> {
        self.port(name, |port| port.table.clone())
    }

    pub fn moves(&self, name: &str) -> Vec<(UnitId, CoreId)> {
        self.port(name, |port| port.moves.clone())
    }

    /// Those moves that were urgent.
    pub fn urged(&self, name: &str) -> Vec<(UnitId, CoreId)> {
        self.port(name, |port| port.urged.clone())
    }

    pub fn set_units(&self, name: &str, units: Vec<UnitStatus>) {
        self.port(name, |port| port.units = units);
    }

    pub fn set_frames(&self, name: &str, frames: u64) {
        self.port(name, |port| port.frames = frames);
    }

    /// A core has worked on packets for `packet` of `whole` nanoseconds.
    pub fn set_times(&self, core: u16, packet: u64, whole: u64) {
        let times = CoreTimes { stages: [0, packet, 0, 0], other: 0, idle: whole - packet };
        self.lock().times.insert(core, times);
    }

    pub fn come(&self, name: &str, core: u16) {
        self.port(name, |port| *port.came.entry(CoreId(core)).or_default() += 1);
    }

    pub fn happen(&self, name: &str, event: Event) {
        self.port(name, |port| port.events.push(event));
    }
}

/// Opens them.
pub struct Double(World);

struct Opened {
    world: World,
    name: String,
    generation: u32,
}

impl Double {
    fn opened(&self, name: &str, generation: u32) -> Box<dyn Enforcer> {
        Box::new(Opened { world: self.0.clone(), name: name.into(), generation })
    }
}

impl Opener for Double {
    fn adopt(&self, name: &str) -> Result<Option<Box<dyn Enforcer>>, OpenError> {
        let state = self.0.lock();
        let attached = state.ports.get(name).filter(|port| port.attached);
        Ok(attached.map(|port| self.opened(name, port.generation)))
    }

    fn attach(
        &self,
        name: &str,
        _: &Options,
        _: &CoreTable,
    ) -> Result<Box<dyn Enforcer>, OpenError> {
        let mut state = self.0.lock();
        let port = state.ports.get_mut(name).ok_or(OpenError::NoInterface)?;
        port.attached = true;
        port.attachments += 1;
        Ok(self.opened(name, port.generation))
    }
}

impl Opened {
    fn port<T>(&self, with: impl FnOnce(&mut Port) -> T) -> Result<T, EnforceError> {
        let mut state = self.world.lock();
        let port = state.ports.get_mut(&self.name);
        let port = port.filter(|port| port.generation == self.generation);
        port.map(with).ok_or_else(|| refused("reach the interface"))
    }
}

fn refused(step: &'static str) -> EnforceError {
    EnforceError::Refused { step, source: "the test wants it so".into() }
}

impl Enforcer for Opened {
    fn hook(&self) -> &'static str {
        "native"
    }

    fn is_alive(&self) -> bool {
        self.port(|_| ()).is_ok()
    }

    fn arrivals(&mut self) -> Result<BTreeMap<CoreId, u32>, EnforceError> {
        self.port(|port| port.came.clone())
    }

    fn set_core_table(&mut self, table: &CoreTable, _: PolicyKind) -> Result<(), EnforceError> {
        self.port(|port| port.table = Some(table.clone()))
    }

    fn change(&mut self, steps: &[Step]) -> Result<(), EnforceError> {
        self.port(|port| {
            if port.refuses && steps.iter().any(|step| matches!(step, Step::Put(_))) {
                return Err(refused("insert an entry"));
            }
            for step in steps {
                port.changes += 1;
                let unit = UnitId(1024 + port.changes);
                match step {
                    Step::Put(entry) => {
                        let unit = port.entries.get(&entry.key).map_or(unit, |(_, unit)| *unit);
                        port.entries.insert(entry.key, (*entry, unit));
                    }
                    Step::Remove(key) => drop(port.entries.remove(key)),
                }
            }
            Ok(())
        })?
    }

    fn entries(&mut self) -> Result<Vec<EntryStatus>, EnforceError> {
        let status =
            |&(entry, unit): &(Entry, UnitId)| EntryStatus { entry, unit, frames: 0, bytes: 0 };
        self.port(|port| port.entries.values().map(status).collect())
    }

    fn units(&mut self) -> Result<Vec<UnitStatus>, EnforceError> {
        self.port(|port| port.units.clone())
    }

    fn want(
        &mut self,
        unit: UnitId,
        core: CoreId,
        _: Reason,
        urgency: Urgency,
    ) -> Result<(), EnforceError> {
        self.port(|port| {
            port.moves.push((unit, core));
            if urgency == Urgency::DropToDrain {
                port.urged.push((unit, core));
            }
        })
    }

    fn times(&mut self) -> Result<Vec<(CoreId, CoreTimes)>, EnforceError> {
        let state = self.world.lock();
        Ok(state.times.iter().map(|(&core, &times)| (CoreId(core), times)).collect())
    }

    fn events(&mut self) -> Vec<Event> {
        self.port(|port| std::mem::take(&mut port.events)).unwrap_or_default()
    }

    fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, EnforceError> {
        self.port(|port| vec![("sent", port.frames)])
    }

    fn core_counts(&mut self) -> Result<Vec<(CoreId, u64)>, EnforceError> {
        Ok(Vec::new())
    }

    fn missed_unit(&self, key: &FlowKey) -> Option<UnitId> {
        Some(UnitId((key.get(Field::NwDst) & 0xff) as u32))
    }

    fn set_threads(&mut self, _: &[(u32, Stage)]) -> Result<(), EnforceError> {
        Ok(())
    }

    fn detach(self: Box<Self>) -> Result<(), EnforceError> {
        self.port(|port| {
            port.attached = false;
            port.entries.clear();
        })
    }
}
