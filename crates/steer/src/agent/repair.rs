//! Moves: what each unit costs, what the policy wants moved, and telling the interfaces.

use super::interfaces::Interface;
use super::table;
use super::{Agent, HOT};
use place::steering::{Event, UnitStatus, Urgency};
use place::{CoreId, CoreTable, Hold, Load, Move, Reason, Stage, UnitId, UnitLoad};
use std::collections::HashMap;

/// Between two looks at all units. Chosen: the measurement of a load is no younger, and reading a thousand units takes 0.2 ms.
const EVERY_NS: u64 = 6_000_000;
/// While a core's load rises so much between two ticks, units are looked at with each: whatever has begun there fills the core within milliseconds.
const RISE: Load = Load::percent(4);
/// A core above this is overloaded.
const OVERLOAD: Load = Load::percent(90);
/// On a full core a unit may want more than it gets: what it got before is believed, and half of it after so long.
const BELIEVED_NS: u64 = 24_000_000;
/// How long a unit rests after a move or one that was given up, and a load takes to show a unit that came.
const REST_NS: u64 = 30_000_000;
/// On a full core it rests no longer than its new core's load takes to show it: it may have come just before what fills the core.
const SHORT_REST_NS: u64 = 6_000_000;
/// What is seen of a unit in so short a time counts half, what was seen before the other half: a millisecond has few frames.
const UNIT_HALF_LIFE_NS: u64 = 4_000_000;

/// A unit of an interface.
type Place = (String, UnitId);

/// What a unit had done when it was last looked at.
#[derive(Clone, Copy)]
struct Seen {
    frames: u64,
    bytes: u64,
    core: Option<CoreId>,
    load: Load,
    moved_at_ns: u64,
    /// Where it is to go urgently.
    urged: Option<CoreId>,
}

/// What frames cost on a core: half of it by number, half by length. Protocols cost by the frame, ciphers and copies by the byte; nobody knows a
/// host's mix, and this is wrong by a factor of two at most, at whatever lengths.
#[derive(Clone, Copy, Default)]
struct Cost {
    frame_ns: f64,
    byte_ns: f64,
}

impl Cost {
    /// Of frames and bytes that took so long together.
    fn of(spent_ns: u64, frames: u64, bytes: u64) -> Self {
        let half = spent_ns as f64 / 2.0;
        Self { frame_ns: half / frames.max(1) as f64, byte_ns: half / bytes.max(1) as f64 }
    }

    fn ns(&self, frames: u64, bytes: u64) -> u64 {
        (frames as f64 * self.frame_ns + bytes as f64 * self.byte_ns) as u64
    }
}

/// What the agent remembers to ask the policy well.
#[derive(Default)]
pub struct Mover {
    looked_at_ns: u64,
    seen: HashMap<Place, Seen>,
    /// Nanoseconds that a core had spent on frames at the last look.
    spent: HashMap<CoreId, u64>,
    /// Of frames on a core, when it had any last.
    costs: HashMap<CoreId, Cost>,
    /// Cores' loads at the last tick.
    loads: HashMap<CoreId, Load>,
    /// Whether any core had clearly more to do then than at the tick before.
    pub is_rising: bool,
}

impl Mover {
    /// What a unit was believed to cost at the last look.
    #[cfg(test)]
    pub fn load_of(&self, interface: &str, unit: UnitId) -> Option<Load> {
        self.seen.get(&(interface.to_owned(), unit)).map(|seen| seen.load)
    }

    fn note_loads(&mut self, table: &CoreTable) {
        let now: HashMap<_, _> =
            table.cores().iter().map(|core| (core.id(), core.load.total())).collect();
        let before = std::mem::replace(&mut self.loads, now);
        let rise =
            |(core, now): (&CoreId, &Load)| now.minus(before.get(core).copied().unwrap_or(*now));
        self.is_rising = self.loads.iter().any(|core| rise(core) > RISE);
    }
}

/// Units of all interfaces under numbers of their own, as the policy sees them.
struct Board {
    places: Vec<Place>,
    loads: Vec<UnitLoad>,
}

impl Agent {
    /// Asks the policy what should move, and has it moved.
    pub(super) fn repair(&mut self) {
        let window = self.now_ns.saturating_sub(self.mover.looked_at_ns);
        self.mover.note_loads(&self.table);
        let is_hot = self.is_hot();
        if window < EVERY_NS && !(is_hot && window >= HOT.as_nanos() as u64) {
            return;
        }
        let units = all_units(&mut self.interfaces);
        self.urge(&units);
        let board = self.board(units, window);
        self.mover.looked_at_ns = self.now_ns;
        // Moves that are done since the last look shifted loads.
        self.refresh_loads();
        let strained = table::strained(&self.table, &self.meter);
        for cores in self.core_sets() {
            let limited = cores.as_ref().map(|cores| table::limited(&strained, cores));
            let table = limited.as_ref().unwrap_or(&strained);
            let is_of =
                |load: &&UnitLoad| self.cores_of(&board.places[load.unit.0 as usize].0) == cores;
            let loads: Vec<UnitLoad> = board.loads.iter().filter(is_of).copied().collect();
            for step in self.chooser().repair(table, &loads) {
                let Some(place) = board.places.get(step.unit.0 as usize) else { continue };
                self.make(place, &step);
            }
        }
    }

    /// The cores that an interface's units can go to; `None` is all.
    fn cores_of(&self, interface: &str) -> Option<Vec<CoreId>> {
        self.interfaces.get(interface)?.enforcer.as_ref()?.cores()
    }

    /// Each set of cores that some interface is limited to, once.
    fn core_sets(&self) -> Vec<Option<Vec<CoreId>>> {
        let mut sets: Vec<_> = self.interfaces.keys().map(|name| self.cores_of(name)).collect();
        sets.sort();
        sets.dedup();
        sets
    }

    fn board(&mut self, units: Vec<(String, UnitStatus)>, window: u64) -> Board {
        self.learn_costs(&units);
        let mut board = Board { places: Vec::new(), loads: Vec::new() };
        let mut seen = HashMap::with_capacity(units.len());
        for (name, unit) in units {
            let place = (name, unit.unit);
            let before = self.mover.seen.get(&place).copied();
            let moved = before.is_some_and(|seen| seen.core != unit.core);
            if let (true, Some(seen), Some(to)) = (moved, before, unit.core)
                && let Some(from) = seen.core
            {
                self.meter.shift(from, to, seen.load);
            }
            let now = self.look(&unit, before, window);
            seen.insert(place.clone(), now);
            let Some(core) = unit.core else { continue };
            let rest = if self.meter.is_full(core) { SHORT_REST_NS } else { REST_NS };
            let resting =
                self.now_ns.saturating_sub(now.moved_at_ns) < rest || unit.wanted.is_some();
            board.loads.push(UnitLoad {
                unit: UnitId(board.places.len() as u32),
                core: unit.wanted.unwrap_or(core),
                measured_on: core,
                load: now.load,
                vm: unit.vm,
                is_priority: unit.is_priority,
                hold: match (unit.is_fixed, resting) {
                    (true, _) => Hold::Fixed,
                    (false, true) => Hold::Resting,
                    (false, false) => Hold::Free,
                },
            });
            board.places.push(place);
        }
        self.mover.seen = seen;
        board
    }

    /// What is to be remembered of a unit.
    fn look(&self, unit: &UnitStatus, before: Option<Seen>, window: u64) -> Seen {
        let stayed = before.filter(|seen| seen.core == unit.core);
        let is_given_up = unit.wanted.is_none() && stayed.is_some_and(|seen| seen.urged.is_some());
        Seen {
            frames: unit.frames,
            bytes: unit.bytes,
            core: unit.core,
            load: self.load_of(unit, before, window),
            moved_at_ns: match stayed {
                _ if is_given_up => self.now_ns,
                Some(seen) => seen.moved_at_ns,
                None => unit.decided_at_ns,
            },
            urged: before.and_then(|seen| seen.urged).filter(|_| unit.wanted.is_some()),
        }
    }

    fn load_of(&self, unit: &UnitStatus, before: Option<Seen>, window: u64) -> Load {
        let (Some(before), Some(core)) = (before, unit.core) else { return Load::ZERO };
        let frames = unit.frames.saturating_sub(before.frames);
        let bytes = unit.bytes.saturating_sub(before.bytes);
        let cost = self.mover.costs.get(&core).copied().unwrap_or_default();
        let load = mixed(before.load, Load::of(cost.ns(frames, bytes), window), window);
        let is_squeezed = before.core == unit.core && self.meter.is_full(core);
        if is_squeezed { load.max(believed(before.load, window)) } else { load }
    }

    /// What frames cost on each core: what the core spent on them since the last look, over those of its units.
    /// The packet stage if it has one, else (frames that stayed where they arrived) the driver's.
    fn learn_costs(&mut self, units: &[(String, UnitStatus)]) {
        let mut done: HashMap<CoreId, (u64, u64)> = HashMap::new();
        for (name, unit) in units {
            let before = self.mover.seen.get(&(name.clone(), unit.unit));
            let Some((before, core)) = before.zip(unit.core) else { continue };
            let (frames, bytes) = done.entry(core).or_default();
            *frames += unit.frames.saturating_sub(before.frames);
            *bytes += unit.bytes.saturating_sub(before.bytes);
        }
        for core in self.table.cores().iter().map(place::Core::id) {
            let stages = self.meter.spent(core).stages;
            let (driver, packet) = (stages[Stage::Driver as usize], stages[Stage::Packet as usize]);
            let spent = if packet > 0 { packet } else { driver };
            let before = self.mover.spent.insert(core, spent).unwrap_or(spent);
            if let Some(&(frames, bytes)) = done.get(&core).filter(|(frames, _)| *frames > 0) {
                let cost = Cost::of(spent.saturating_sub(before), frames, bytes);
                self.mover.costs.insert(core, cost);
            }
        }
    }

    /// A unit that was to leave its core when that is through with it, for balance, finds it full now: it would wait for ever.
    fn urge(&mut self, units: &[(String, UnitStatus)]) {
        for (name, unit) in units.iter().filter(|(_, unit)| !unit.is_fixed) {
            let Some((from, to)) = unit.core.zip(unit.wanted) else { continue };
            let place = (name.clone(), unit.unit);
            let is_urged = self.mover.seen.get(&place).is_some_and(|seen| seen.urged == Some(to));
            if is_urged || !self.meter.is_full(from) || self.meter.strain(from).total() < OVERLOAD {
                continue;
            }
            self.make(&place, &Move { unit: unit.unit, from, to, reason: Reason::Overload });
        }
    }

    fn make(&mut self, (name, unit): &Place, step: &Move) {
        let Some(interface) = self.interfaces.get_mut(name) else { return };
        let Some(enforcer) = &mut interface.enforcer else { return };
        let urgency = urgency(step.reason);
        match enforcer.want(*unit, step.to, step.reason, urgency) {
            Ok(()) => {
                if let Some(seen) = self.mover.seen.get_mut(&(name.clone(), *unit)) {
                    seen.urged = (urgency == Urgency::DropToDrain).then_some(step.to);
                }
                let event = Event {
                    at_ns: self.now_ns,
                    unit: *unit,
                    from: Some(step.from),
                    core: step.to,
                    reason: step.reason,
                    facts: None,
                };
                interface.decisions.remember(event, Vec::new());
            }
            Err(error) => tracing::warn!("interface {name}: {error}: {}", error.why()),
        }
    }
}

/// A unit that leaves an overloaded core may find it never empty: its frames may be dropped, which the core would do anyway.
fn urgency(reason: Reason) -> Urgency {
    match reason {
        Reason::Overload | Reason::YieldedToPriority => Urgency::DropToDrain,
        _ => Urgency::WhenDrained,
    }
}

/// A unit's load, of which `now` was seen for `window` ns. One that had none is as it is seen.
fn mixed(before: Load, now: Load, window: u64) -> Load {
    if before == Load::ZERO {
        return now;
    }
    let parts = |load: Load| u64::from(load.as_ppm());
    let sum = parts(before) * UNIT_HALF_LIFE_NS + parts(now) * window;
    Load::of(sum / (UNIT_HALF_LIFE_NS + window), 1_000_000)
}

/// What is left of a load that was seen `window` ns ago.
fn believed(load: Load, window: u64) -> Load {
    Load::of(u64::from(load.as_ppm()) * BELIEVED_NS / (BELIEVED_NS + window), 1_000_000)
}

fn all_units(
    interfaces: &mut std::collections::BTreeMap<String, Interface>,
) -> Vec<(String, UnitStatus)> {
    let mut all = Vec::new();
    for (name, interface) in interfaces {
        let units = interface.enforcer.as_mut().map(|enforcer| enforcer.units());
        match units {
            Some(Ok(units)) => all.extend(units.into_iter().map(|unit| (name.clone(), unit))),
            Some(Err(error)) => tracing::debug!("interface {name}: {error}: {}", error.why()),
            None => {}
        }
    }
    all
}
