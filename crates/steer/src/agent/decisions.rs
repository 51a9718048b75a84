//! The memory of decisions, for `why`: bounded, the oldest forgotten first.

use place::steering::Event;
use place::{Candidate, UnitId};
use std::collections::VecDeque;

/// Decisions remembered for an interface. Chosen: four for each of 1024 groups, about a megabyte.
const REMEMBERED: usize = 4096;

/// A decision, and what was thought of each core.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What was decided.
    pub event: Event,
    /// By the core table of that moment; empty when the enforcer only carried it out.
    pub candidates: Vec<Candidate>,
}

/// An interface's decisions, the latest last.
#[derive(Default)]
pub struct Decisions(VecDeque<Decision>);

impl Decisions {
    /// Adds one.
    pub fn remember(&mut self, event: Event, candidates: Vec<Candidate>) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Decision { event, candidates });
    }

    /// Those about a unit, the latest first.
    pub fn about(&self, unit: UnitId) -> impl Iterator<Item = &Decision> {
        self.0.iter().rev().filter(move |decision| decision.event.unit == unit)
    }
}
