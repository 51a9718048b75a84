//! The paper's rules, one by one.

use super::*;
use crate::VmId;

/// (load in percent, pinned guest or 0).
fn table(cores: &[(u32, u16)]) -> CoreTable {
    let core = |(id, &(load, vm)): (u16, &(u32, u16))| {
        let mut core = Core::new(CoreId(id));
        core.load.other = Load::percent(load);
        if vm > 0 {
            core.pinned.add(VmId::new(vm));
        }
        core
    };
    CoreTable::new((0..).zip(cores).map(core).collect()).unwrap()
}

/// The Core Table of the paper's table 2.
fn paper() -> CoreTable {
    table(&[(10, 1), (50, 2), (20, 0), (50, 0)])
}

fn facts(vm: u16) -> Facts {
    let rx_core = CoreId(3);
    Facts { hash: 0, vm: VmId::new(vm), is_priority: false, wants_own_core: false, rx_core }
}

fn priority(vm: u16) -> Facts {
    Facts { is_priority: true, ..facts(vm) }
}

fn place(table: &CoreTable, facts: &Facts) -> (u16, Reason) {
    let decision = Vse::default().place(table, facts);
    (decision.core.0, decision.reason)
}

fn change(table: &mut CoreTable, core: u16) -> &mut Core {
    table.core_mut(CoreId(core)).unwrap()
}

/// Section 4, table 2: "core 2, to which no VM is pinned and whose load is at or below the threshold (50 here)".
#[test]
fn the_papers_example_is_placed_on_core_2() {
    assert_eq!(place(&paper(), &facts(2)), (2, Reason::LeastLoaded));
}

/// The same table with core 2 taken away: core 3 is at the threshold, not above it.
#[test]
fn a_core_at_the_threshold_may_be_chosen() {
    let mut table = paper();
    change(&mut table, 2).load.other = Load::percent(51);
    assert_eq!(place(&table, &facts(0)), (3, Reason::LeastLoaded));
    change(&mut table, 3).load.other = Load::ppm(500_001);
    assert_eq!(place(&table, &facts(0)), (3, Reason::AboveThreshold));
}

/// Section 3.2: load *and* pinning. Core 0 is the least loaded of all, but a guest's.
#[test]
fn an_idle_core_with_a_guest_is_not_chosen() {
    let table = table(&[(0, 1), (50, 0)]);
    assert_eq!(place(&table, &facts(0)), (1, Reason::LeastLoaded));
}

/// Section 4: "when the load of every core is above the threshold, the HW-IRQ core is used".
#[test]
fn above_the_threshold_everywhere_a_flow_stays_on_the_interrupted_core() {
    let table = table(&[(60, 0), (51, 0), (90, 0), (99, 0)]);
    assert_eq!(place(&table, &facts(0)), (3, Reason::AboveThreshold));
    assert!(!Reason::AboveThreshold.is_settled(), "the entry stays undecided");
}

/// The paper leaves open which of several cores; table 2 would allow the first as well as the least loaded.
#[test]
fn of_several_cores_the_least_loaded_is_chosen_and_of_equals_the_lowest() {
    assert_eq!(place(&table(&[(40, 0), (30, 0), (10, 0)]), &facts(0)).0, 2);
    assert_eq!(place(&table(&[(40, 0), (10, 0), (10, 0)]), &facts(0)).0, 1);
}

/// Nobody knows what a new unit costs: the next one goes elsewhere, and by load again when all have one.
#[test]
fn a_unit_placed_since_the_measurement_counts_more_than_any_load_of_a_free_core() {
    let mut table = table(&[(1, 0), (49, 0)]);
    change(&mut table, 0).placed = 1;
    assert_eq!(place(&table, &facts(0)).0, 1);
    change(&mut table, 1).placed = 1;
    assert_eq!(place(&table, &facts(0)).0, 0);
}

#[test]
fn units_placed_since_the_measurement_never_close_a_core() {
    let mut table = table(&[(50, 0)]);
    change(&mut table, 0).placed = u32::MAX;
    assert_eq!(place(&table, &facts(0)), (0, Reason::LeastLoaded));
}

/// Section 3.4: "a core to which no VM is pinned and whose load is low is chosen with priority".
#[test]
fn a_priority_flow_takes_the_least_loaded_core_without_a_guest() {
    assert_eq!(place(&paper(), &priority(1)), (2, Reason::Priority));
}

/// Ours: ordinary flows stay, the priority flow still gets away from the interrupted core and from guests.
#[test]
fn a_priority_flow_may_take_a_core_that_ordinary_flows_may_not() {
    let table = table(&[(0, 1), (95, 0), (70, 0), (99, 0)]);
    assert_eq!(place(&table, &facts(0)), (3, Reason::AboveThreshold));
    assert_eq!(place(&table, &priority(0)), (2, Reason::Priority));
}

#[test]
fn a_priority_flow_has_a_threshold_of_its_own() {
    let mut table = table(&[(0, 1), (95, 0), (70, 0), (99, 0)]);
    table.priority_threshold = Load::percent(69);
    assert_eq!(place(&table, &priority(1)), (3, Reason::AboveThreshold));
}

#[test]
fn a_priority_flow_never_takes_a_guests_core_not_even_its_own() {
    assert_eq!(place(&table(&[(0, 1), (0, 2)]), &priority(1)), (3, Reason::NoCore));
}

/// Section 5.3: "the flows of the other VMs are processed on the core that their own VM is pinned to".
#[test]
fn under_overcommit_a_flow_goes_to_its_own_guests_core() {
    let no_free_core = table(&[(10, 1), (20, 2), (30, 3)]);
    assert_eq!(place(&no_free_core, &facts(2)), (1, Reason::OwnCore));
    let all_above = table(&[(10, 1), (20, 2), (30, 3), (51, 0)]);
    assert_eq!(place(&all_above, &facts(3)), (2, Reason::OwnCore));
}

/// "So that their cost falls on the VM that receives them": also when that VM is busy.
#[test]
fn a_guests_own_core_has_no_threshold() {
    assert_eq!(place(&table(&[(10, 1), (99, 2)]), &facts(2)), (1, Reason::OwnCore));
}

#[test]
fn under_overcommit_a_flow_of_no_known_guest_stays() {
    let pinned = table(&[(10, 1), (20, 2)]);
    assert_eq!(place(&pinned, &facts(0)), (3, Reason::NoCore));
    assert_eq!(place(&pinned, &facts(9)), (3, Reason::NoCore));
}

/// Section 5.3 and table 7 whole: VM1 has priority and core 3 for itself, VM2 and VM3 pay for themselves.
#[test]
fn the_papers_priority_experiment_follows_from_a_reserved_core() {
    let mut table = table(&[(0, 1), (0, 2), (0, 3), (0, 0)]);
    change(&mut table, 3).role = Role::Reserved;
    assert_eq!(place(&table, &facts(2)), (1, Reason::OwnCore));
    assert_eq!(place(&table, &facts(3)), (2, Reason::OwnCore));
    assert_eq!(place(&table, &priority(1)), (3, Reason::Priority));
}

#[test]
fn of_equals_a_priority_flow_takes_the_reserved_core() {
    let mut table = table(&[(10, 0), (10, 0)]);
    change(&mut table, 1).role = Role::Reserved;
    assert_eq!(place(&table, &priority(0)).0, 1);
    assert_eq!(place(&table, &facts(0)).0, 0);
}

#[test]
fn a_priority_flow_takes_the_reserved_core_unless_it_is_fuller_by_more_than_the_threshold() {
    for (reserved, chosen) in [(71, 1), (90, 1), (100, 0)] {
        let mut table = table(&[(40, 0), (reserved, 0)]);
        change(&mut table, 1).role = Role::Reserved;
        assert_eq!(place(&table, &priority(0)).0, chosen, "{reserved} %");
    }
}

#[test]
fn a_rule_that_wants_the_own_core_gets_it_though_others_are_free() {
    let own = Facts { wants_own_core: true, ..facts(1) };
    assert_eq!(place(&paper(), &own), (0, Reason::OwnCoreWanted));
    assert_eq!(place(&paper(), &Facts { is_priority: true, ..own }), (0, Reason::OwnCoreWanted));
    let unknown = Facts { vm: VmId::new(9), ..own };
    assert_eq!(place(&paper(), &unknown), (2, Reason::LeastLoaded));
}

#[test]
fn a_guest_of_several_cores_pays_on_the_least_loaded() {
    let table = table(&[(30, 1), (20, 1), (90, 0)]);
    assert_eq!(place(&table, &facts(1)), (1, Reason::OwnCore));
}

#[test]
fn an_excluded_core_is_never_chosen_not_even_by_its_own_guest() {
    let mut table = table(&[(0, 0), (0, 1)]);
    change(&mut table, 0).role = Role::Excluded;
    change(&mut table, 1).role = Role::Excluded;
    let own = Facts { wants_own_core: true, ..facts(1) };
    assert_eq!(place(&table, &own), (3, Reason::NoCore));
    assert_eq!(place(&table, &priority(1)), (3, Reason::NoCore));
}

#[test]
fn why_tells_what_was_thought_of_every_core() {
    let mut table = table(&[(10, 1), (50, 2), (20, 0), (51, 0), (0, 0), (0, 0)]);
    change(&mut table, 4).role = Role::Excluded;
    change(&mut table, 5).role = Role::Reserved;
    let verdicts = |facts: &Facts| -> Vec<Verdict> {
        Vse::default().candidates(&table, facts).into_iter().map(|of| of.verdict).collect()
    };
    let (load, threshold) = (Load::percent(51), Load::percent(50));
    assert_eq!(
        verdicts(&facts(1)),
        [
            Verdict::Own(100_000),
            Verdict::No(WhyNot::Pinned),
            Verdict::Free(200_000),
            Verdict::No(WhyNot::AboveThreshold { load, threshold }),
            Verdict::No(WhyNot::Excluded),
            Verdict::No(WhyNot::Reserved),
        ]
    );
}

#[test]
fn without_moves_nothing_is_repaired() {
    let unit = UnitLoad {
        unit: crate::UnitId(0),
        core: CoreId(0),
        measured_on: CoreId(0),
        load: Load::percent(90),
        vm: None,
        is_priority: false,
        hold: crate::Hold::Free,
    };
    let table = table(&[(95, 1), (0, 0)]);
    assert_eq!(Vse::default().repair(&table, &[unit]), []);
    assert_eq!(Vse { moves: Some(Moves::default()) }.repair(&table, &[unit]).len(), 1);
}
