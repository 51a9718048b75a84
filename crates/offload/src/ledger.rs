//! Who has the slots of a rung: each tenant its share, what is free whoever comes, and the best benefit first.

use crate::declined::PolicyReason;
use flow::SwitchId;
use std::collections::HashMap;
use std::hash::Hash;

/// A newcomer must be better than whom it drives out by so much: a quarter.
const BETTER: f64 = 1.25;

/// The slots of one rung. `F` names flows; a tenant is a switch.
#[derive(Clone, Debug)]
pub struct Ledger<F> {
    size: u32,
    taken: u32,
    stays: HashMap<F, Stay>,
    /// Slots of each tenant.
    tenants: HashMap<SwitchId, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Stay {
    tenant: SwitchId,
    slots: u32,
    /// What it saves a second.
    benefit: f64,
}

/// What an application for slots comes to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Admission<F> {
    /// There is room.
    Free,
    /// There is, once this one has gone.
    After(F),
}

impl<F: Copy + Eq + Hash> Ledger<F> {
    /// So many slots, all free.
    pub fn new(size: u32) -> Self {
        Self { size, taken: 0, stays: HashMap::new(), tenants: HashMap::new() }
    }

    /// Slots, and how many are taken.
    pub fn slots(&self) -> (u32, u32) {
        (self.size, self.taken)
    }

    /// Whether a flow of this tenant may have `slots`. Nothing is taken yet.
    ///
    /// # Errors
    /// Why not.
    pub fn admits(
        &self,
        tenant: SwitchId,
        slots: u32,
        benefit: f64,
    ) -> Result<Admission<F>, PolicyReason> {
        if self.taken + slots <= self.size {
            return Ok(Admission::Free);
        }
        let share = self.share(tenant);
        let has = self.tenants.get(&tenant).copied().unwrap_or(0);
        // Who is within its share is driven out by nobody but its own.
        let may_go = |stay: &Stay| {
            let theirs = self.tenants.get(&stay.tenant).copied().unwrap_or(0);
            stay.slots >= slots && (stay.tenant == tenant || theirs > share && has < share)
        };
        let candidates = self.stays.iter().filter(|(_, stay)| may_go(stay));
        let per_slot = |stay: &Stay| stay.benefit / f64::from(stay.slots);
        let worst = candidates.min_by(|a, b| per_slot(a.1).total_cmp(&per_slot(b.1)));
        match worst {
            None => Err(PolicyReason::TenantsSlots { has }),
            Some((&flow, stay)) if benefit / f64::from(slots) > per_slot(stay) * BETTER => {
                Ok(Admission::After(flow))
            }
            Some(_) => Err(PolicyReason::BetterFlows),
        }
    }

    /// Slots that each tenant has a right to: equal parts, `tenant` counted whether it has any or not.
    fn share(&self, tenant: SwitchId) -> u32 {
        let others = self.tenants.iter().filter(|&(&of, &slots)| of != tenant && slots > 0).count();
        self.size / (others as u32 + 1)
    }

    /// Gives a flow its slots.
    pub fn take(&mut self, flow: F, tenant: SwitchId, slots: u32, benefit: f64) {
        self.give_back(flow);
        self.stays.insert(flow, Stay { tenant, slots, benefit });
        *self.tenants.entry(tenant).or_default() += slots;
        self.taken += slots;
    }

    /// Takes a flow's slots back; nothing if it has none.
    pub fn give_back(&mut self, flow: F) {
        let Some(Stay { tenant, slots, .. }) = self.stays.remove(&flow) else { return };
        self.taken -= slots;
        let left = self.tenants.entry(tenant).or_default();
        *left -= slots;
        if *left == 0 {
            self.tenants.remove(&tenant);
        }
    }

    /// Says what a flow saves now.
    pub fn set_benefit(&mut self, flow: F, benefit: f64) {
        if let Some(stay) = self.stays.get_mut(&flow) {
            stay.benefit = benefit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RED: SwitchId = SwitchId(1);
    const BLUE: SwitchId = SwitchId(2);

    fn full() -> Ledger<u32> {
        let mut ledger = Ledger::new(4);
        (0..4).for_each(|flow| ledger.take(flow, RED, 1, 100.0 + f64::from(flow)));
        ledger
    }

    #[test]
    fn who_borrowed_gives_way_to_who_has_less_than_its_share() {
        let mut ledger = full();
        assert_eq!(ledger.admits(BLUE, 1, 200.0), Ok(Admission::After(0)));
        assert_eq!(ledger.admits(BLUE, 1, 120.0), Err(PolicyReason::BetterFlows));
        ledger.give_back(0);
        ledger.take(10, BLUE, 1, 200.0);
        ledger.give_back(1);
        ledger.take(11, BLUE, 1, 300.0);
        assert_eq!(ledger.admits(BLUE, 1, 400.0), Ok(Admission::After(10)));
        assert_eq!(ledger.admits(RED, 1, 400.0), Ok(Admission::After(2)));
    }

    #[test]
    fn a_better_flow_drives_out_its_own_tenants_worst() {
        assert_eq!(full().admits(RED, 1, 126.0), Ok(Admission::After(0)));
        assert_eq!(full().admits(RED, 1, 125.0), Err(PolicyReason::BetterFlows));
    }

    proptest! {
        #[test]
        fn slots_are_never_given_twice(
            steps in proptest::collection::vec((0u32..12, 1u32..3, 1u32..3, 1.0f64..1e6, any::<bool>()), 1..200),
        ) {
            let mut ledger = Ledger::new(6);
            let mut held = HashMap::new();
            for (flow, tenant, slots, benefit, comes) in steps {
                if !comes {
                    ledger.give_back(flow);
                    held.remove(&flow);
                    continue;
                }
                if held.contains_key(&flow) {
                    continue;
                }
                match ledger.admits(SwitchId(tenant), slots, benefit) {
                    Ok(Admission::Free) => {}
                    Ok(Admission::After(other)) => {
                        ledger.give_back(other);
                        held.remove(&other);
                    }
                    Err(_) => continue,
                }
                ledger.take(flow, SwitchId(tenant), slots, benefit);
                held.insert(flow, slots);
                prop_assert_eq!(ledger.slots(), (6, held.values().sum()));
                prop_assert!(held.values().sum::<u32>() <= 6);
            }
        }
    }
}
