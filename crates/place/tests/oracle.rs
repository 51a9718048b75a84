//! `place` against slow, obvious code.

use place::{
    Core, CoreId, CoreTable, Decision, Facts, Hash, Hold, Load, Moves, Policy, Reason, Role,
    UnitId, UnitLoad, Verdict, VmId, Vse,
};
use proptest::prelude::*;

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![6 => Just(Role::Allowed), 1 => Just(Role::Reserved), 1 => Just(Role::Excluded)]
}

/// Few distinct loads and guests, so that ties, thresholds and own cores are met often.
fn core() -> impl Strategy<Value = Core> {
    let guests = proptest::collection::vec((0u16..5).prop_map(VmId::new), 0..3);
    let guests = prop_oneof![2 => Just(Vec::new()), 1 => guests];
    (role(), guests, 0u32..=10, 0u32..40).prop_map(|(role, guests, load, placed)| {
        let mut core = Core::new(CoreId(0));
        core.role = role;
        core.pinned = guests.into_iter().collect();
        core.load.other = Load::percent(load * 10);
        core.placed = placed;
        core
    })
}

fn table() -> impl Strategy<Value = CoreTable> {
    let cores = proptest::collection::vec((core(), 1u16..4), 0..20);
    (cores, 0u32..=10, 0u32..=10).prop_map(|(cores, threshold, above)| {
        let mut next = 0;
        let numbered = cores.into_iter().map(|(core, step)| {
            next += step;
            let mut numbered = Core::new(CoreId(next));
            numbered.role = core.role;
            numbered.pinned = core.pinned;
            numbered.load = core.load;
            numbered.placed = core.placed;
            numbered
        });
        let mut table = CoreTable::new(numbered.collect()).expect("ids rise");
        table.threshold = Load::percent(threshold * 10);
        table.priority_threshold = Load::percent((threshold + above) * 10);
        table
    })
}

fn facts() -> impl Strategy<Value = Facts> {
    let flags = (any::<bool>(), prop::bool::weighted(0.2));
    (any::<u32>(), 0u16..6, flags, 0u16..30).prop_map(|(hash, vm, flags, rx_core)| Facts {
        hash,
        vm: VmId::new(vm),
        is_priority: flags.0,
        wants_own_core: flags.1,
        rx_core: CoreId(rx_core),
    })
}

/// The rules in the order of docs/explanation/placement.md, each as a sorted list.
fn oracle(table: &CoreTable, facts: &Facts) -> Decision {
    let best = |fits: &dyn Fn(&Core) -> bool| {
        let mut found: Vec<&Core> = table.cores().iter().filter(|core| fits(core)).collect();
        found.sort_by_key(|core| {
            let is_open = facts.is_priority && core.role != Role::Reserved;
            let more = if is_open { table.threshold } else { Load::default() };
            let counted = core.load.total().as_ppm() + more.as_ppm();
            (core.placed, counted, is_open, core.id())
        });
        found.first().map(|core| core.id())
    };
    let limit = if facts.is_priority { table.priority_threshold } else { table.threshold };
    let may_take = |core: &Core| {
        core.pinned.is_empty()
            && (core.role == Role::Allowed || (core.role == Role::Reserved && facts.is_priority))
    };
    let free = best(&|core| may_take(core) && core.load.total() <= limit);
    let own = best(&|core| {
        core.role != Role::Excluded && facts.vm.is_some_and(|vm| core.pinned.contains(vm))
    });
    let decision = |core, reason| Decision { core, reason };
    if let (true, Some(core)) = (facts.wants_own_core, own) {
        return decision(core, Reason::OwnCoreWanted);
    }
    if let Some(core) = free {
        return decision(
            core,
            if facts.is_priority { Reason::Priority } else { Reason::LeastLoaded },
        );
    }
    if let (false, Some(core)) = (facts.is_priority, own) {
        return decision(core, Reason::OwnCore);
    }
    let is_any = table.cores().iter().any(may_take);
    decision(facts.rx_core, if is_any { Reason::AboveThreshold } else { Reason::NoCore })
}

fn units(cores: u16) -> impl Strategy<Value = Vec<UnitLoad>> {
    let hold = prop_oneof![4 => Just(Hold::Free), 1 => Just(Hold::Resting), 1 => Just(Hold::Fixed)];
    let unit = (0..cores, 0u32..300, 0u16..6, prop::bool::weighted(0.2), hold);
    proptest::collection::vec(unit, 0..40).prop_map(|units| {
        let unit = |(id, (core, load, vm, is_priority, hold))| UnitLoad {
            unit: UnitId(id),
            core: CoreId(core),
            measured_on: CoreId(core),
            load: Load::per_mille(load),
            vm: VmId::new(vm),
            is_priority,
            hold,
        };
        (0..).zip(units).map(unit).collect()
    })
}

/// The table after its units' loads were put on its cores, on top of what was there.
fn loaded(mut table: CoreTable, units: &[UnitLoad]) -> CoreTable {
    for unit in units {
        if let Some(core) = table.core_mut(unit.core) {
            core.load.other = core.load.other.plus(unit.load);
        }
    }
    table
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

    #[test]
    fn vse_decides_as_the_obvious_code_does(table in table(), facts in facts()) {
        prop_assert_eq!(Vse::default().place(&table, &facts), oracle(&table, &facts));
    }

    #[test]
    fn hash_is_the_nth_of_the_allowed_cores(table in table(), facts in facts()) {
        let allowed: Vec<_> = table.cores().iter().filter(|core| core.role == Role::Allowed).collect();
        let part = f64::from(facts.hash) / 4_294_967_296.0;
        let nth = (part * allowed.len() as f64) as usize;
        let expected = allowed.get(nth).map_or(facts.rx_core, |core| core.id());
        prop_assert_eq!(Hash.place(&table, &facts).core, expected);
    }

    #[test]
    fn the_decision_is_the_best_of_the_candidates(table in table(), facts in facts()) {
        let decision = Vse::default().place(&table, &facts);
        let candidates = Vse::default().candidates(&table, &facts);
        prop_assert_eq!(candidates.len(), table.cores().len());
        let score = |core, is_own| candidates.iter().find_map(|of| match of.verdict {
            Verdict::Own(score) if is_own && of.core == core => Some(score),
            Verdict::Free(score) if !is_own && of.core == core => Some(score),
            _ => None,
        });
        let is_own = matches!(decision.reason, Reason::OwnCore | Reason::OwnCoreWanted);
        if decision.reason.is_settled() {
            let best = score(decision.core, is_own).expect("a chosen core is a candidate");
            prop_assert!(table.cores().iter().all(|core| score(core.id(), is_own) >= Some(best) || score(core.id(), is_own).is_none()));
        } else {
            prop_assert!(candidates.iter().all(|of| !matches!(of.verdict, Verdict::Free(_))));
        }
    }

    #[test]
    fn a_plan_moves_each_unit_once_and_only_those_that_may_move(table in table(), units in units(30)) {
        let table = loaded(table, &units);
        let moves = Moves { at_once: 16, ..Moves::default() };
        let plan = Vse { moves: Some(moves) }.repair(&table, &units);
        prop_assert!(plan.len() <= moves.at_once);
        for (nth, step) in plan.iter().enumerate() {
            let unit = units.iter().find(|unit| unit.unit == step.unit).expect("a unit of ours");
            prop_assert_eq!(unit.hold, Hold::Free);
            prop_assert_eq!(unit.core, step.from);
            prop_assert_ne!(step.from, step.to);
            prop_assert!(plan[..nth].iter().all(|earlier| earlier.unit != step.unit));
            let to = table.core(step.to).expect("a core of the table");
            let is_open = to.pinned.is_empty() && (to.role == Role::Allowed || (to.role == Role::Reserved && unit.is_priority));
            let is_own = unit.vm.is_some_and(|vm| to.pinned.contains(vm)) && to.role != Role::Excluded;
            prop_assert!(is_open || (is_own && step.reason == Reason::YieldedToPriority));
        }
    }

    /// With loads that follow the moves at once, repairing ends: no unit wanders for ever.
    #[test]
    fn repairing_comes_to_rest(table in table(), units in units(30)) {
        let mut units = units;
        let base = table;
        let policy = Vse { moves: Some(Moves::default()) };
        let rounds = (0..400).find(|_| {
            let plan = policy.repair(&loaded(base.clone(), &units), &units);
            for step in &plan {
                let unit = units.iter_mut().find(|unit| unit.unit == step.unit).unwrap();
                (unit.core, unit.measured_on) = (step.to, step.to);
            }
            plan.is_empty()
        });
        prop_assert!(rounds.is_some(), "still moving after 400 calls");
    }
}
