//! Who goes where, for units that nobody decided: the same policies on the same table as in the kernel (crate `place`).
//!
//! Behind a lock that workers only ever try: a unit is placed once, and its frames stay where they arrive until then.

use place::steering::PolicyKind;
use place::{CoreId, CoreTable, Decision, Facts, Hash, Policy, Reason, Role, UnitId, Vse};
use std::collections::{BTreeMap, VecDeque};

/// Events kept for the control thread. Chosen: all groups of a switch at once, twice.
const EVENTS: usize = 2048;

/// A unit was placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// When: nanoseconds of the datapath's clock.
    pub at_ns: u64,
    /// The unit.
    pub unit: UnitId,
    /// Its core.
    pub core: CoreId,
    /// Why.
    pub reason: Reason,
    /// What was known of it.
    pub facts: Facts,
}

/// Table, policy, and what they led to.
pub(crate) struct Choosing {
    table: CoreTable,
    policy: PolicyKind,
    placed: VecDeque<Placed>,
    /// Units that were ever placed on each core, now and at the last [`Choosing::arrivals`].
    came: BTreeMap<CoreId, u32>,
    counted: BTreeMap<CoreId, u32>,
}

impl Choosing {
    /// Without a table, units stay where their frames arrive.
    pub(crate) fn new() -> Self {
        Self {
            table: CoreTable::new(Vec::new()).expect("no cores are in order"),
            policy: PolicyKind::default(),
            placed: VecDeque::with_capacity(EVENTS),
            came: BTreeMap::new(),
            counted: BTreeMap::new(),
        }
    }

    /// How many units were ever placed on each core.
    pub(crate) fn arrivals(&mut self) -> BTreeMap<CoreId, u32> {
        self.counted = self.came.clone();
        self.came.clone()
    }

    /// Takes the cores as they are now; those without a worker are not chosen, and what came since the last [`Choosing::arrivals`] counts. What was there
    /// comes back, to be dropped elsewhere.
    pub(crate) fn set(
        &mut self,
        mut table: CoreTable,
        policy: PolicyKind,
        workers: &[CoreId],
    ) -> CoreTable {
        let ids: Vec<CoreId> = table.cores().iter().map(place::Core::id).collect();
        for id in ids.into_iter().filter(|id| !workers.contains(id)) {
            if let Some(core) = table.core_mut(id) {
                core.role = Role::Excluded;
            }
        }
        for &id in workers {
            let came = *self.came.entry(id).or_default();
            if let Some(core) = table.core_mut(id) {
                core.placed += came - self.counted.get(&id).copied().unwrap_or(0);
            }
        }
        self.policy = policy;
        std::mem::replace(&mut self.table, table)
    }

    pub(crate) fn choose(&mut self, is_hashed: bool, facts: &Facts) -> Decision {
        let decision = match self.policy {
            PolicyKind::Vse if !is_hashed => Vse::default().place(&self.table, facts),
            _ => Hash.place(&self.table, facts),
        };
        if decision.reason.is_settled()
            && let Some(core) = self.table.core_mut(decision.core)
        {
            core.placed += 1;
            if let Some(came) = self.came.get_mut(&decision.core) {
                *came += 1;
            }
        }
        decision
    }

    /// Notes a decision for the control thread.
    pub(crate) fn remember(&mut self, unit: UnitId, decision: Decision, facts: &Facts, now: u64) {
        if self.placed.len() == EVENTS {
            self.placed.pop_front();
        }
        let Decision { core, reason } = decision;
        self.placed.push_back(Placed { at_ns: now, unit, core, reason, facts: *facts });
    }

    /// What happened since the last call; the oldest of very many are forgotten.
    pub(crate) fn take_placed(&mut self) -> Vec<Placed> {
        self.placed.drain(..).collect()
    }
}
