//! The one face that every policy shows: to the agent, the workers and the simulator.

use crate::{Candidate, CoreTable, Decision, Facts, Move, UnitLoad};

/// Chooses cores. A pure function of its arguments: who keeps state (what was placed, when a unit moved last) says it in them.
pub trait Policy {
    /// One word, as the user writes it.
    fn name(&self) -> &'static str;

    /// Where an undecided unit goes. O(cores), allocates nothing.
    fn place(&self, table: &CoreTable, facts: &Facts) -> Decision;

    /// What [`place`](Policy::place) thought of each core, by rising id: for `why`.
    fn candidates(&self, table: &CoreTable, facts: &Facts) -> Vec<Candidate>;

    /// Which decided units should go elsewhere now. A policy that never moves anything returns nothing.
    fn repair(&self, _table: &CoreTable, _units: &[UnitLoad]) -> Vec<Move> {
        Vec::new()
    }
}
