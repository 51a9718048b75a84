//! Moves: what each unit costs, what the policy wants moved, and telling the interfaces.

use super::interfaces::Interface;
use super::table;
use super::{Agent, BUSY};
use crate::enforcer::{Event, UnitStatus, Urgency};
use place::{CoreId, CoreTable, Hold, Load, Move, Reason, Stage, UnitId, UnitLoad};
use std::collections::HashMap;

/// Between two looks at all units. Chosen: the measurement of a load is no younger, and reading a thousand units takes 0.2 ms.
const EVERY_NS: u64 = 6_000_000;
/// While a core's load rises so much between two ticks, units are looked at with each: whatever has begun there fills the core within milliseconds.
const RISE: Load = Load::percent(4);
/// How long a unit rests after a move, and a load takes to show a unit that came.
const REST_NS: u64 = 30_000_000;

/// A unit of an interface.
type Place = (String, UnitId);

/// What a unit had done when it was last looked at.
#[derive(Clone, Copy)]
struct Seen {
    frames: u64,
    core: Option<CoreId>,
    load: Load,
    moved_at_ns: u64,
}

/// What the agent remembers to ask the policy well.
#[derive(Default)]
pub struct Mover {
    looked_at_ns: u64,
    seen: HashMap<Place, Seen>,
    /// Nanoseconds that a core had spent on frames at the last look.
    spent: HashMap<CoreId, u64>,
    /// Cores' loads at the last tick.
    loads: HashMap<CoreId, Load>,
}

impl Mover {
    /// Whether any core has clearly more to do than at the last tick.
    fn is_rising(&mut self, table: &CoreTable) -> bool {
        let now: HashMap<_, _> =
            table.cores().iter().map(|core| (core.id(), core.load.total())).collect();
        let before = std::mem::replace(&mut self.loads, now);
        let rise =
            |(core, now): (&CoreId, &Load)| now.minus(before.get(core).copied().unwrap_or(*now));
        self.loads.iter().any(|core| rise(core) > RISE)
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
        let is_rising = self.mover.is_rising(&self.table);
        if window < EVERY_NS && !(is_rising && window >= BUSY.as_nanos() as u64) {
            return;
        }
        let units = all_units(&mut self.interfaces);
        let board = self.board(units, window);
        self.mover.looked_at_ns = self.now_ns;
        // Moves that are done since the last look shifted loads.
        self.refresh_loads();
        for cores in self.core_sets() {
            let limited = cores.as_ref().map(|cores| table::limited(&self.table, cores));
            let table = limited.as_ref().unwrap_or(&self.table);
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
        let costs = self.frame_costs(&units);
        let mut board = Board { places: Vec::new(), loads: Vec::new() };
        let mut seen = HashMap::with_capacity(units.len());
        for (name, unit) in units {
            let place = (name, unit.unit);
            let before = self.mover.seen.get(&place).copied();
            let frames = unit.frames.saturating_sub(before.map_or(unit.frames, |seen| seen.frames));
            let moved = before.is_some_and(|seen| seen.core != unit.core);
            if let (true, Some(seen), Some(to)) = (moved, before, unit.core)
                && let Some(from) = seen.core
            {
                self.meter.shift(from, to, seen.load);
            }
            let moved_at_ns = match before {
                Some(seen) if !moved => seen.moved_at_ns,
                _ => unit.decided_at_ns,
            };
            let cost = unit.core.and_then(|core| costs.get(&core)).copied().unwrap_or(0);
            let load = Load::of(frames.saturating_mul(cost), window);
            let now = Seen { frames: unit.frames, core: unit.core, load, moved_at_ns };
            seen.insert(place.clone(), now);
            let Some(core) = unit.core else { continue };
            let resting =
                self.now_ns.saturating_sub(moved_at_ns) < REST_NS || unit.wanted.is_some();
            board.loads.push(UnitLoad {
                unit: UnitId(board.places.len() as u32),
                core: unit.wanted.unwrap_or(core),
                measured_on: core,
                load,
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

    /// Nanoseconds that a frame costs on each core: what the core spent on frames since the last look, over the frames of its units.
    /// The packet stage if it has one, else (frames that stayed where they arrived) the driver's.
    fn frame_costs(&mut self, units: &[(String, UnitStatus)]) -> HashMap<CoreId, u64> {
        let mut frames: HashMap<CoreId, u64> = HashMap::new();
        for (name, unit) in units {
            let before = self.mover.seen.get(&(name.clone(), unit.unit));
            let Some((before, core)) = before.zip(unit.core) else { continue };
            *frames.entry(core).or_default() += unit.frames.saturating_sub(before.frames);
        }
        let mut costs = HashMap::new();
        for core in self.table.cores().iter().map(place::Core::id) {
            let stages = self.meter.spent(core).stages;
            let (driver, packet) = (stages[Stage::Driver as usize], stages[Stage::Packet as usize]);
            let spent = if packet > 0 { packet } else { driver };
            let before = self.mover.spent.insert(core, spent).unwrap_or(spent);
            if let Some(&frames) = frames.get(&core).filter(|&&frames| frames > 0) {
                costs.insert(core, spent.saturating_sub(before) / frames);
            }
        }
        costs
    }

    fn make(&mut self, (name, unit): &Place, step: &Move) {
        let Some(interface) = self.interfaces.get_mut(name) else { return };
        let Some(enforcer) = &mut interface.enforcer else { return };
        match enforcer.want(*unit, step.to, step.reason, urgency(step.reason)) {
            Ok(()) => {
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
            Err(error) => tracing::warn!("interface {name}: {error}: {}", error.source),
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

fn all_units(
    interfaces: &mut std::collections::BTreeMap<String, Interface>,
) -> Vec<(String, UnitStatus)> {
    let mut all = Vec::new();
    for (name, interface) in interfaces {
        let units = interface.enforcer.as_mut().map(|enforcer| enforcer.units());
        match units {
            Some(Ok(units)) => all.extend(units.into_iter().map(|unit| (name.clone(), unit))),
            Some(Err(error)) => tracing::debug!("interface {name}: {error}: {}", error.source),
            None => {}
        }
    }
    all
}
