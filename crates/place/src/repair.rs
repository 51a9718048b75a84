//! Which placed units should go elsewhere now. Ours: the paper's decisions stand for ever.
//!
//! A greedy plan, one step at a time, each on loads that know of the steps before it:
//!
//! 1. A unit on a core that it would not be placed on (a guest is pinned there, or the role forbids it) goes to a core that is
//!    free by the paper's rule. Heaviest first.
//! 2. A core above the overload mark sheds the heaviest ordinary unit that another core can take and still be the less loaded one.
//!    If there is none but a priority unit suffers here, an ordinary unit goes to its guest's own core.
//! 3. A core that is fuller than the mean gives the emptiest the unit that brings the two closest together.
//!
//! Against moves without end: a step must leave its two cores closer together than before (2, 3), or the unit on a core that will not
//! shed it again (1); loads that differ by less than [`Moves::margin`] or a 25th count as equal; a unit that
//! [rests](Hold::Resting) is left alone; and each call moves at most [`Moves::at_once`] units.

use std::cmp::Reverse;

use crate::{Core, CoreTable, Hold, Load, Move, Moves, Reason, Role, UnitLoad};

/// A core up to a 25th above the mean is not too full: what is left to 5 %, the most that we promise, is for the error of measurements.
const EVEN_PART: u64 = 25;

/// Parts per million of a core below which moving a unit relieves nobody: a thousand of them are a quarter of a core. Without it a flow of some
/// frames a second would follow every change of what else the cores do.
const LEAST: u64 = 250;

/// Plans at most [`Moves::at_once`] moves.
pub(crate) fn plan(table: &CoreTable, units: &[UnitLoad], moves: Moves) -> Vec<Move> {
    let mut board = Board::new(table, units, moves);
    let mut planned = Vec::new();
    while planned.len() < moves.at_once {
        let step = board.misplaced().or_else(|| board.overloaded()).or_else(|| board.uneven());
        let Some(step) = step else { break };
        planned.push(board.make(step));
    }
    planned
}

/// One core, and what the plan has made of it so far.
struct Seat<'a> {
    core: &'a Core,
    /// Parts per million of the core; above a million when the plan puts more there than fits.
    load: u64,
    units: Vec<UnitLoad>,
}

impl Seat<'_> {
    /// Whether a unit may be here at all, whatever the load.
    fn takes(&self, unit: &UnitLoad) -> bool {
        match self.core.role {
            Role::Excluded => false,
            Role::Reserved => unit.is_priority && self.core.pinned.is_empty(),
            Role::Allowed => self.core.pinned.is_empty(),
        }
    }

    fn is_own_of(&self, unit: &UnitLoad) -> bool {
        self.core.role != Role::Excluded && unit.vm.is_some_and(|vm| self.core.pinned.contains(vm))
    }
}

/// A move, by positions on the board.
struct Step {
    from: usize,
    unit: usize,
    to: usize,
    reason: Reason,
}

struct Board<'a> {
    table: &'a CoreTable,
    moves: Moves,
    seats: Vec<Seat<'a>>,
}

fn ppm(load: Load) -> u64 {
    u64::from(load.as_ppm())
}

impl<'a> Board<'a> {
    fn new(table: &'a CoreTable, units: &[UnitLoad], moves: Moves) -> Self {
        let seat = |core: &'a Core| Seat { core, load: ppm(core.load.total()), units: Vec::new() };
        let mut board = Self { table, moves, seats: table.cores().iter().map(seat).collect() };
        for unit in units {
            let at = |core| table.cores().binary_search_by_key(&core, Core::id).ok();
            if let Some(measured) = at(unit.measured_on) {
                board.seats[measured].load =
                    board.seats[measured].load.saturating_sub(ppm(unit.load));
            }
            if let Some(now) = at(unit.core) {
                board.seats[now].load += ppm(unit.load);
                board.seats[now].units.push(*unit);
            }
        }
        board
    }

    fn make(&mut self, step: Step) -> Move {
        let mut unit = self.seats[step.from].units.swap_remove(step.unit);
        let (from, to) = (self.seats[step.from].core.id(), self.seats[step.to].core.id());
        self.seats[step.from].load = self.seats[step.from].load.saturating_sub(ppm(unit.load));
        self.seats[step.to].load += ppm(unit.load);
        unit.hold = Hold::Resting;
        self.seats[step.to].units.push(unit);
        Move { unit: unit.unit, from, to, reason: step.reason }
    }

    /// Step 1: a unit where it should not be, to a core that is free.
    fn misplaced(&self) -> Option<Step> {
        let step = |(from, unit): (usize, usize)| {
            let to = self.free_for(&self.seats[from].units[unit])?;
            let is_guests = !self.seats[from].core.pinned.is_empty();
            let reason = if is_guests { Reason::Collision } else { Reason::NotAllowed };
            Some(Step { from, unit, to, reason })
        };
        let seats = self.seats.iter().enumerate();
        let all = seats.flat_map(|(at, seat)| (0..seat.units.len()).map(move |unit| (at, unit)));
        let unit = |(from, unit): (usize, usize)| &self.seats[from].units[unit];
        let is_astray = |at: &(usize, usize)| {
            unit(*at).hold == Hold::Free && !self.seats[at.0].takes(unit(*at))
        };
        let mut astray: Vec<_> = all.filter(is_astray).collect();
        astray.sort_by_key(|&at| (Reverse(unit(at).load), unit(at).unit));
        astray.into_iter().find_map(step)
    }

    /// The core that the paper's rule gives the unit, if it would not have to shed it at once. A unit that alone is more than a core can do is
    /// still better off without others than on a guest's core; it stays there, as no core that takes it has less to do.
    fn free_for(&self, unit: &UnitLoad) -> Option<usize> {
        let threshold =
            if unit.is_priority { self.table.priority_threshold } else { self.table.threshold };
        let to = self.least_loaded(|seat| seat.takes(unit) && seat.load <= ppm(threshold))?;
        let shed = ppm(self.moves.overload.minus(self.moves.margin));
        let (seat, load) = (&self.seats[to], ppm(unit.load));
        let is_hopeless = load > shed && seat.units.is_empty();
        (is_hopeless || seat.load + load <= shed).then_some(to)
    }

    /// Step 2: away from a core above the mark.
    fn overloaded(&self) -> Option<Step> {
        let mark = ppm(self.moves.overload);
        let over = self.by_falling_load().into_iter().filter(|&from| self.seats[from].load > mark);
        over.filter(|&from| self.seats[from].core.pinned.is_empty())
            .find_map(|from| self.shed(from).or_else(|| self.make_room(from)))
    }

    fn shed(&self, from: usize) -> Option<Step> {
        let load = self.seats[from].load;
        self.ordinary_by_falling_load(from).into_iter().find_map(|unit| {
            let moved = &self.seats[from].units[unit];
            let most = load.saturating_sub(self.even(load) + ppm(moved.load));
            let to = self.least_loaded(|seat| seat.takes(moved) && seat.load <= most)?;
            Some(Step { from, unit, to, reason: Reason::Overload })
        })
    }

    /// By how much two loads of about this size must differ to differ at all.
    fn even(&self, load: u64) -> u64 {
        ppm(self.moves.margin).max(load / EVEN_PART)
    }

    /// Where a priority unit suffers, ordinary ones make room at the cost of the guests that receive them (VS-extend §5.3).
    fn make_room(&self, from: usize) -> Option<Step> {
        let is_shared = self.seats[from].units.iter().any(|unit| unit.is_priority);
        let ordinary = if is_shared { self.ordinary_by_falling_load(from) } else { Vec::new() };
        ordinary.into_iter().find_map(|unit| {
            let moved = &self.seats[from].units[unit];
            let to = self.least_loaded(|seat| seat.is_own_of(moved))?;
            Some(Step { from, unit, to, reason: Reason::YieldedToPriority })
        })
    }

    /// Step 3: from the fullest core to the emptiest.
    fn uneven(&self) -> Option<Step> {
        let open = |seat: &Seat| seat.core.role == Role::Allowed && seat.core.pinned.is_empty();
        let to = self.least_loaded(open)?;
        let cores = self.seats.iter().filter(|seat| open(seat));
        let (sum, count) = cores.fold((0, 0), |(sum, n), seat| (sum + seat.load, n + 1));
        let mean = sum / count;
        let is_full = |from: &usize| self.seats[*from].load > mean + self.even(mean);
        let full = self.by_falling_load().into_iter().take_while(is_full);
        full.filter(|&from| open(&self.seats[from])).find_map(|from| {
            let unit = self.closest_to_half(from, self.seats[from].load - self.seats[to].load)?;
            Some(Step { from, unit, to, reason: Reason::Balance })
        })
    }

    /// The ordinary unit whose move leaves two cores closest together that are `gap` apart. One of more than three quarters of the gap would
    /// only swap the two cores' parts, or nearly.
    fn closest_to_half(&self, from: usize, gap: u64) -> Option<usize> {
        let load = |unit: usize| ppm(self.seats[from].units[unit].load);
        let ordinary = self.ordinary_by_falling_load(from).into_iter();
        ordinary
            .filter(|&unit| load(unit) * 4 <= gap * 3)
            .min_by_key(|&unit| gap.abs_diff(2 * load(unit)))
    }

    /// Ordinary units that are worth a move and may move, the heaviest first.
    fn ordinary_by_falling_load(&self, from: usize) -> Vec<usize> {
        let units = &self.seats[from].units;
        let fits = |unit: &UnitLoad| {
            unit.hold == Hold::Free && !unit.is_priority && ppm(unit.load) >= LEAST
        };
        let mut found: Vec<_> = (0..units.len()).filter(|&at| fits(&units[at])).collect();
        found.sort_by_key(|&at| (Reverse(units[at].load), units[at].unit));
        found
    }

    fn by_falling_load(&self) -> Vec<usize> {
        let mut seats: Vec<_> = (0..self.seats.len()).collect();
        seats.sort_by_key(|&at| Reverse(self.seats[at].load));
        seats
    }

    /// Of equals the lowest id.
    fn least_loaded(&self, fits: impl Fn(&Seat) -> bool) -> Option<usize> {
        let fitting = self.seats.iter().enumerate().filter(|(_, seat)| fits(seat));
        fitting.min_by_key(|(_, seat)| seat.load).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests;
