//! The paper's algorithm (VS-extend, §3.2 to §3.5, §4, §5.3).
//!
//! [`Vse::place`] is one walk over the table with integers only, and the kernel program (`crates/xdp/bpf`) has the same walk, line
//! for line; `crates/xdp` tests the two against each other.

use crate::{
    Candidate, Core, CoreId, CoreTable, Decision, Facts, Load, Move, Policy, Reason, Role,
    UnitLoad, Verdict, WhyNot,
};

/// The paper's policy, and whether decided units may be moved afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vse {
    /// When and how often units move. `None` is the paper: a decision stands.
    pub moves: Option<Moves>,
}

/// When [`Vse`] moves units that it has placed. All of it is ours; the paper moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// A core above this sheds units.
    pub overload: Load,
    /// Two cores whose loads differ by less are equally loaded, however small their loads.
    pub margin: Load,
    /// Moves of one call.
    pub at_once: usize,
}

impl Default for Moves {
    fn default() -> Self {
        Self { overload: Load::percent(90), margin: Load::percent(1), at_once: 8 }
    }
}

/// Above this, more units are no more: a score is a `u32`, of which two loads, 20 bits each, take 21 together.
const PLACED_MAX: u32 = (1 << 11) - 1;

/// The order of the cores that fit, the lowest first: the fewest units that `load` does not show, then the least load. So units that come together go to
/// different cores, whatever small difference there is between the loads of these: any of them may turn out to fill a core.
fn score(table: &CoreTable, core: &Core, facts: &Facts) -> u32 {
    // What no ordinary flow will ever join is worth some load: to a priority flow, a core that is not reserved counts as fuller by the threshold
    // (and of equals the reserved one comes first).
    let open = facts.is_priority && core.role != Role::Reserved;
    let more = if open { table.threshold.as_ppm() + 1 } else { 0 };
    core.placed.min(PLACED_MAX) << 21 | (core.load.total().as_ppm() + more)
}

/// What `core` is to this unit.
fn verdict(table: &CoreTable, core: &Core, facts: &Facts) -> Verdict {
    if core.role == Role::Excluded {
        return Verdict::No(WhyNot::Excluded);
    }
    if !core.pinned.is_empty() {
        let is_own = facts.vm.is_some_and(|vm| core.pinned.contains(vm));
        return if is_own {
            Verdict::Own(score(table, core, facts))
        } else {
            Verdict::No(WhyNot::Pinned)
        };
    }
    if core.role == Role::Reserved && !facts.is_priority {
        return Verdict::No(WhyNot::Reserved);
    }
    let load = core.load.total();
    let threshold = if facts.is_priority { table.priority_threshold } else { table.threshold };
    if load > threshold {
        return Verdict::No(WhyNot::AboveThreshold { load, threshold });
    }
    Verdict::Free(score(table, core, facts))
}

/// The best core of each kind so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Best {
    pub(crate) free: Option<(u32, CoreId)>,
    pub(crate) own: Option<(u32, CoreId)>,
    is_any_above: bool,
}

impl Best {
    /// The walk: every core of the table but those in `except`.
    pub(crate) fn of(table: &CoreTable, facts: &Facts, except: &[CoreId]) -> Self {
        let mut best = Self::default();
        for core in table.cores().iter().filter(|core| !except.contains(&core.id())) {
            best.see(core.id(), verdict(table, core, facts));
        }
        best
    }

    fn see(&mut self, core: CoreId, verdict: Verdict) {
        // Strictly less: of equals, the first and so the lowest id stays.
        let keep_lower = |best: &mut Option<(u32, CoreId)>, score| {
            if best.is_none_or(|(least, _)| score < least) {
                *best = Some((score, core));
            }
        };
        match verdict {
            Verdict::Free(score) => keep_lower(&mut self.free, score),
            Verdict::Own(score) => keep_lower(&mut self.own, score),
            Verdict::No(WhyNot::AboveThreshold { .. }) => self.is_any_above = true,
            Verdict::No(_) => {}
        }
    }

    fn decide(self, facts: &Facts) -> Decision {
        let (free, own) = (self.free, self.own);
        let chosen = match (free, own) {
            (_, Some((_, core))) if facts.wants_own_core => (core, Reason::OwnCoreWanted),
            (Some((_, core)), _) if facts.is_priority => (core, Reason::Priority),
            (Some((_, core)), _) => (core, Reason::LeastLoaded),
            (None, Some((_, core))) if !facts.is_priority => (core, Reason::OwnCore),
            _ if self.is_any_above => (facts.rx_core, Reason::AboveThreshold),
            _ => (facts.rx_core, Reason::NoCore),
        };
        Decision { core: chosen.0, reason: chosen.1 }
    }
}

impl Policy for Vse {
    fn name(&self) -> &'static str {
        "vse"
    }

    fn place(&self, table: &CoreTable, facts: &Facts) -> Decision {
        Best::of(table, facts, &[]).decide(facts)
    }

    fn candidates(&self, table: &CoreTable, facts: &Facts) -> Vec<Candidate> {
        let candidate =
            |core: &Core| Candidate { core: core.id(), verdict: verdict(table, core, facts) };
        table.cores().iter().map(candidate).collect()
    }

    fn repair(&self, table: &CoreTable, units: &[UnitLoad]) -> Vec<Move> {
        self.moves.map_or_else(Vec::new, |moves| crate::repair::plan(table, units, moves))
    }
}

#[cfg(test)]
mod tests;
