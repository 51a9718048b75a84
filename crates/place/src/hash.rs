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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CoreId;

    fn facts(hash: u32) -> Facts {
        let rx_core = CoreId(9);
        Facts { hash, vm: None, is_priority: false, wants_own_core: false, rx_core }
    }

    fn table(roles: &[Role]) -> CoreTable {
        let core = |(id, &role): (u16, &Role)| {
            let mut core = Core::new(CoreId(id));
            core.role = role;
            core
        };
        CoreTable::new((0..).zip(roles).map(core).collect()).unwrap()
    }

    #[test]
    fn equal_parts_of_the_hashes_go_to_each_allowed_core() {
        let table = table(&[Role::Allowed, Role::Excluded, Role::Allowed, Role::Reserved]);
        let core = |hash| Hash.place(&table, &facts(hash)).core;
        assert_eq!([core(0), core(0x7fff_ffff)], [CoreId(0); 2]);
        assert_eq!([core(0x8000_0000), core(u32::MAX)], [CoreId(2); 2]);
    }

    #[test]
    fn without_an_allowed_core_a_flow_stays() {
        let decision = Hash.place(&table(&[Role::Excluded]), &facts(7));
        assert_eq!(decision, Decision { core: CoreId(9), reason: Reason::NoCore });
    }

    #[test]
    fn the_hash_is_blind_to_load_and_guests() {
        let mut busy = table(&[Role::Allowed; 2]);
        let core = busy.core_mut(CoreId(0)).unwrap();
        core.load.other = crate::Load::FULL;
        core.pinned.add(None);
        assert_eq!(Hash.place(&busy, &facts(0)).core, CoreId(0));
    }

    #[test]
    fn why_names_the_hashed_core_and_no_other() {
        let table = table(&[Role::Allowed, Role::Allowed, Role::Excluded]);
        let verdicts = Hash.candidates(&table, &facts(u32::MAX)).into_iter().map(|of| of.verdict);
        let (elsewhere, excluded) = (WhyNot::HashedElsewhere, WhyNot::Excluded);
        let expected = [Verdict::No(elsewhere), Verdict::Free(0), Verdict::No(excluded)];
        assert!(verdicts.eq(expected));
    }
}
