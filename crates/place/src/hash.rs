//! What RSS and RPS do: the baseline.

use crate::{Candidate, Core, CoreTable, Decision, Facts, Policy, Reason, Role, Verdict, WhyNot};

/// By hash over the allowed cores, blind to load and guests: `allowed[hash * n >> 32]`, as the kernel's RPS scales it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash;

impl Hash {
    fn chosen<'a>(table: &'a CoreTable, facts: &Facts) -> Option<&'a Core> {
        let allowed = || table.cores().iter().filter(|core| core.role == Role::Allowed);
        let scaled = (u64::from(facts.hash) * allowed().count() as u64) >> 32;
        allowed().nth(usize::try_from(scaled).expect("less than the number of cores"))
    }
}

impl Policy for Hash {
    fn name(&self) -> &'static str {
        "hash"
    }

    fn place(&self, table: &CoreTable, facts: &Facts) -> Decision {
        match Self::chosen(table, facts) {
            Some(core) => Decision { core: core.id(), reason: Reason::Hash },
            None => Decision { core: facts.rx_core, reason: Reason::NoCore },
        }
    }

    fn candidates(&self, table: &CoreTable, facts: &Facts) -> Vec<Candidate> {
        let chosen = Self::chosen(table, facts).map(Core::id);
        let verdict = |core: &Core| match core.role {
            Role::Excluded => Verdict::No(WhyNot::Excluded),
            Role::Reserved => Verdict::No(WhyNot::Reserved),
            Role::Allowed if Some(core.id()) == chosen => Verdict::Free(0),
            Role::Allowed => Verdict::No(WhyNot::HashedElsewhere),
        };
        table
            .cores()
            .iter()
            .map(|core| Candidate { core: core.id(), verdict: verdict(core) })
            .collect()
    }
}
