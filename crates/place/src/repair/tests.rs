use super::*;
use crate::{CoreId, UnitId, VmId};

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

/// An ordinary unit that may move, with a load in percent.
fn unit(id: u32, core: u16, load: u32) -> UnitLoad {
    UnitLoad {
        unit: UnitId(id),
        core: CoreId(core),
        measured_on: CoreId(core),
        load: Load::percent(load),
        vm: None,
        is_priority: false,
        hold: Hold::Free,
    }
}

fn of(vm: u16, unit: UnitLoad) -> UnitLoad {
    UnitLoad { vm: VmId::new(vm), ..unit }
}

fn priority(unit: UnitLoad) -> UnitLoad {
    UnitLoad { is_priority: true, ..unit }
}

/// (unit, from, to, reason) of each move.
fn planned(table: &CoreTable, units: &[UnitLoad]) -> Vec<(u32, u16, u16, Reason)> {
    let plan = plan(table, units, Moves::default());
    plan.iter().map(|step| (step.unit.0, step.from.0, step.to.0, step.reason)).collect()
}

#[test]
fn a_unit_that_uses_next_to_nothing_does_not_follow_the_load_of_others() {
    let light = UnitLoad { load: Load::ppm(200), ..unit(0, 0, 0) };
    assert_eq!(planned(&table(&[(97, 0), (10, 0)]), &[light]), []);
    let worth = UnitLoad { load: Load::ppm(2500), ..light };
    assert_eq!(planned(&table(&[(97, 0), (10, 0)]), &[worth]), [(0, 0, 1, Reason::Overload)]);
}

#[test]
fn a_unit_leaves_a_guests_core_as_soon_as_another_is_free() {
    let found = planned(&table(&[(60, 1), (30, 0)]), &[unit(0, 0, 40)]);
    assert_eq!(found, [(0, 0, 1, Reason::Collision)]);
}

#[test]
fn a_unit_too_large_for_any_core_still_leaves_a_guests_core_for_an_empty_one() {
    let found = planned(&table(&[(100, 1), (3, 0)]), &[unit(0, 0, 100)]);
    assert_eq!(found, [(0, 0, 1, Reason::Collision)]);
}

#[test]
fn a_unit_stays_on_a_guests_core_while_the_others_are_above_the_threshold() {
    assert_eq!(planned(&table(&[(60, 1), (51, 0)]), &[unit(0, 0, 20)]), []);
}

#[test]
fn a_core_at_the_threshold_is_free_for_a_unit_on_a_guests_core() {
    let found = planned(&table(&[(60, 1), (50, 0)]), &[unit(0, 0, 10)]);
    assert_eq!(found, [(0, 0, 1, Reason::Collision)]);
}

/// The guest pays for what it receives, also when that fills its core.
#[test]
fn an_overloaded_core_of_a_guest_sheds_nothing_to_cores_above_the_threshold() {
    assert_eq!(planned(&table(&[(99, 1), (60, 0)]), &[of(1, unit(0, 0, 10))]), []);
}

/// It would be shed to where it has to make room for priority, and come back here, for ever.
#[test]
fn a_unit_stays_on_a_guests_core_if_an_empty_one_would_shed_it_at_once() {
    let with_other = |load| {
        let mut table = table(&[(60, 1), (load, 0)]);
        table.threshold = Load::percent(90);
        planned(&table, &[unit(0, 0, 20)])
    };
    let mark = Moves::default().overload.minus(Moves::default().margin);
    let most = mark.minus(Load::percent(20)).as_per_mille() / 10;
    assert_eq!(with_other(most), [(0, 0, 1, Reason::Collision)]);
    assert_eq!(with_other(most + 1), []);
}

#[test]
fn a_unit_leaves_a_core_that_was_excluded() {
    let mut table = table(&[(20, 0), (10, 0)]);
    table.core_mut(CoreId(0)).unwrap().role = Role::Excluded;
    assert_eq!(planned(&table, &[unit(0, 0, 20)]), [(0, 0, 1, Reason::NotAllowed)]);
}

#[test]
fn an_ordinary_unit_leaves_a_core_that_was_reserved_and_a_priority_unit_stays() {
    let mut table = table(&[(40, 0), (10, 0)]);
    table.core_mut(CoreId(0)).unwrap().role = Role::Reserved;
    let units = [priority(unit(0, 0, 20)), unit(1, 0, 20)];
    assert_eq!(planned(&table, &units), [(1, 0, 1, Reason::NotAllowed)]);
}

#[test]
fn an_overloaded_core_sheds_its_heaviest_ordinary_unit() {
    let units = [unit(0, 0, 20), priority(unit(1, 0, 45)), unit(2, 0, 30)];
    let found = planned(&table(&[(95, 0), (40, 0)]), &units);
    assert_eq!(found[0], (2, 0, 1, Reason::Overload));
}

#[test]
fn a_unit_goes_nowhere_if_that_core_would_then_be_the_fuller_one() {
    let found = planned(&table(&[(95, 0), (80, 0)]), &[unit(0, 0, 50), unit(1, 0, 45)]);
    assert_eq!(found, []);
}

#[test]
fn an_overloaded_core_keeps_units_that_use_nothing() {
    assert_eq!(planned(&table(&[(95, 0), (10, 0)]), &[unit(0, 0, 0)]), []);
}

#[test]
fn ordinary_units_make_room_for_priority_at_the_cost_of_their_guest() {
    let units = [priority(unit(0, 1, 50)), of(2, unit(1, 1, 45))];
    let found = planned(&table(&[(99, 2), (95, 0)]), &units);
    assert_eq!(found, [(1, 1, 0, Reason::YieldedToPriority)]);
}

#[test]
fn who_made_room_does_not_come_back_into_it() {
    let units = [priority(unit(0, 1, 45)), of(2, unit(1, 0, 45))];
    assert_eq!(planned(&table(&[(99, 2), (45, 0)]), &units), []);
}

#[test]
fn without_a_priority_unit_nobody_makes_room() {
    let units = [unit(0, 1, 50), of(2, unit(1, 1, 45))];
    assert_eq!(planned(&table(&[(99, 2), (95, 0)]), &units), []);
}

#[test]
fn the_fullest_core_gives_to_the_emptiest_until_they_are_even() {
    let units: Vec<_> = (0..8).map(|id| unit(id, 0, 5)).collect();
    let found = planned(&table(&[(40, 0), (0, 0)]), &units);
    assert_eq!(found.len(), 4);
    assert!(
        found.iter().all(|&(_, from, to, reason)| (from, to, reason) == (0, 1, Reason::Balance))
    );
}

#[test]
fn the_unit_that_brings_two_cores_closest_together_goes() {
    let units = [unit(0, 0, 5), unit(1, 0, 18), unit(2, 0, 30)];
    let found = planned(&table(&[(53, 0), (13, 0)]), &units);
    assert_eq!(found, [(1, 0, 1, Reason::Balance)]);
}

#[test]
fn a_core_within_the_margin_or_a_25th_of_the_mean_is_not_too_full() {
    let units: Vec<_> = (0..8).map(|id| unit(id, 0, 1)).collect();
    assert_eq!(planned(&table(&[(12, 0), (10, 0)]), &units), []);
    assert_ne!(planned(&table(&[(13, 0), (10, 0)]), &units), []);
    assert_eq!(planned(&table(&[(84, 0), (78, 0)]), &units), []);
    assert_ne!(planned(&table(&[(85, 0), (78, 0)]), &units), []);
}

#[test]
fn resting_fixed_and_priority_units_are_not_moved_for_evenness() {
    let held = |hold| UnitLoad { hold, ..unit(0, 0, 20) };
    let units = [held(Hold::Resting), held(Hold::Fixed), priority(unit(2, 0, 20))];
    assert_eq!(planned(&table(&[(60, 0), (0, 0)]), &units), []);
}

#[test]
fn a_move_that_does_not_show_in_the_loads_yet_is_not_made_again() {
    let moved = |id| UnitLoad { core: CoreId(1), ..unit(id, 0, 10) };
    let units = [unit(0, 0, 10), unit(1, 0, 10), moved(2), moved(3)];
    assert_eq!(planned(&table(&[(40, 0), (0, 0)]), &units), []);
}

#[test]
fn one_call_moves_no_more_than_it_may() {
    let units: Vec<_> = (0..100).map(|id| unit(id, 0, 1)).collect();
    assert_eq!(planned(&table(&[(100, 0), (0, 0)]), &units).len(), Moves::default().at_once);
}

#[test]
fn units_on_cores_that_the_table_does_not_know_are_left_alone() {
    assert_eq!(planned(&table(&[(0, 0), (0, 0)]), &[unit(0, 7, 50)]), []);
}
