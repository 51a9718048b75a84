//! Which flow shall leave the worker, and when it shall come back.
//!
//! Policies are asked in order of priority, those of one priority in the order in which they were added; the first whose match fits decides.
//! What none fits goes by [`Rule::Cost`], if offload is on.

mod condition;

pub use condition::{BadCondition, Condition};

use crate::ProviderName;
use crate::cost::Benefit;
use crate::declined::PolicyReason;
use crate::heavy::Traffic;
use flow::{Nanos, SwitchId};
use std::time::Duration;
use wire::Key;

/// How long a flow stays at least, unless its policy says otherwise. Chosen: ten windows of measurement.
pub const RESIDENCE: Duration = Duration::from_secs(1);

/// One policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Higher is asked first.
    pub priority: u16,
    /// Only flows of this switch.
    pub switch: Option<SwitchId>,
    /// Which flows it is for: bits under `mask`.
    pub key: Key,
    /// Bits that it looks at.
    pub mask: Key,
    /// What it says of them.
    pub rule: Rule,
    /// Rungs in order of preference; empty: any.
    pub rungs: Vec<ProviderName>,
    /// How long a flow stays at least.
    pub residence: Duration,
}

/// When a flow moves.
#[derive(Clone, PartialEq, Debug)]
pub enum Rule {
    /// Never.
    Never,
    /// When its first frame is seen.
    First,
    /// When all of `when` is true; back when all of `until` is.
    When {
        /// Up.
        when: Condition,
        /// Down.
        until: Condition,
    },
    /// When what it has cost on the worker beyond what the rung would have taken equals the cost of the move.
    Cost,
}

/// What is known of a flow when a policy is asked.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its traffic.
    pub traffic: &'a Traffic,
    /// What it would save there, or saves.
    pub benefit: Benefit,
    /// What it has cost so far that the rung would have saved.
    pub spent_ns: u64,
    /// Now.
    pub now: Nanos,
}

impl Policy {
    /// The policy for what no other one fits.
    pub fn default_cost() -> Self {
        Self {
            name: "cost".into(),
            priority: 0,
            switch: None,
            key: Key::default(),
            mask: Key::default(),
            rule: Rule::Cost,
            rungs: Vec::new(),
            residence: RESIDENCE,
        }
    }

    /// Whether it is for this flow of a switch.
    pub fn fits(&self, switch: SwitchId, key: &Key) -> bool {
        self.switch.is_none_or(|only| only == switch) && self.key.matches(&self.mask, key)
    }

    /// Whether a flow on the worker shall move up.
    ///
    /// # Errors
    /// Why not, or not yet.
    pub fn wants_up(&self, facts: &Facts<'_>) -> Result<(), PolicyReason> {
        match &self.rule {
            Rule::Never => Err(PolicyReason::Never),
            Rule::First => Ok(()),
            Rule::When { when, .. } => when.is_met(facts.traffic, facts.now),
            Rule::Cost => facts.benefit.is_worth(facts.spent_ns),
        }
    }

    /// Whether a flow on a rung shall come back, though frames of it still come.
    pub fn wants_down(&self, facts: &Facts<'_>) -> bool {
        match &self.rule {
            Rule::Never => true,
            Rule::First => false,
            Rule::When { until, .. } => until.is_met(facts.traffic, facts.now).is_ok(),
            // By a fifth: what is on the edge does not flap.
            Rule::Cost => facts.benefit.ns_per_s < -0.2 * facts.benefit.worker_ns_per_s,
        }
    }
}
