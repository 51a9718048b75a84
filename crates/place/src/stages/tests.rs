use super::*;
use crate::{Core, Load, VmId};

/// Core 0 receives; the rest as given: pinned guest's id (0: none) and load in percent.
fn table(cores: &[(u16, u32)]) -> CoreTable {
    let core = |(id, &(vm, load)): (u16, &(u16, u32))| {
        let mut core = Core::new(CoreId(id));
        if let Some(vm) = VmId::new(vm) {
            core.pinned.add(Some(vm));
        }
        core.load.other = Load::percent(load);
        core
    };
    CoreTable::new((0..).zip(cores).map(core).collect()).unwrap()
}

fn facts(vm: u16, is_priority: bool) -> Facts {
    let vm = VmId::new(vm);
    Facts { hash: 0, vm, is_priority, wants_own_core: false, rx_core: CoreId(0) }
}

fn assign(model: StageModel, table: &CoreTable, facts: &Facts) -> String {
    match model.assign(table, facts) {
        Ok(stages) => {
            let core = |stage| stages.core(stage).map_or("-".into(), |core| core.to_string());
            let cores: Vec<_> = Stage::ALL.into_iter().map(core).collect();
            let model = stages.model.map_or("none", StageModel::name);
            format!("{model}: {}", cores.join(" "))
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_model_shares_cores_as_the_slides_show() {
    let table = table(&[(0, 0), (0, 10), (0, 20), (7, 30)]);
    let shown = |model| assign(model, &table, &facts(7, false));
    assert_eq!(shown(StageModel::A), "a: 0 3 3 3");
    assert_eq!(shown(StageModel::B), "b: 0 1 3 3");
    assert_eq!(shown(StageModel::C), "c: 0 1 1 3");
    assert_eq!(shown(StageModel::D), "d: 0 1 2 3");
}

#[test]
fn auto_gives_a_priority_flow_every_stage_its_own_core() {
    let table = table(&[(0, 0), (0, 10), (0, 20), (7, 30)]);
    assert_eq!(assign(StageModel::Auto, &table, &facts(7, true)), "d: 0 1 2 3");
    assert_eq!(assign(StageModel::Auto, &table, &facts(7, false)), "c: 0 1 1 3");
}

#[test]
fn auto_takes_less_where_cores_are_scarce() {
    let one_free = table(&[(0, 0), (0, 10), (7, 30)]);
    assert_eq!(assign(StageModel::Auto, &one_free, &facts(7, true)), "c: 0 1 1 2");
    let none_free = table(&[(0, 0), (8, 10), (7, 30)]);
    assert_eq!(assign(StageModel::Auto, &none_free, &facts(7, false)), "a: 0 2 2 2");
    assert_eq!(assign(StageModel::Auto, &none_free, &facts(0, false)), "none: 0 0 - -");
}

#[test]
fn packets_and_vhost_never_share_the_drivers_core() {
    let all_idle = table(&[(0, 0), (0, 40), (0, 50)]);
    assert_eq!(assign(StageModel::D, &all_idle, &facts(0, false)), "d: 0 1 2 -");
}

#[test]
fn a_core_above_the_threshold_is_not_free() {
    let busy = table(&[(0, 0), (0, 51), (7, 0)]);
    let refused = assign(StageModel::C, &busy, &facts(7, false));
    assert!(
        refused.starts_with("model c needs 1 free cores beside the driver's, 0 are"),
        "{refused}"
    );
    assert_eq!(assign(StageModel::C, &busy, &facts(7, true)), "c: 0 1 1 2");
}

#[test]
fn a_model_that_uses_the_guests_core_needs_to_know_it() {
    let table = table(&[(0, 0), (0, 10)]);
    for model in [StageModel::A, StageModel::B] {
        assert_eq!(model.assign(&table, &facts(7, false)), Err(NoStages::GuestCore { model }));
    }
}

#[test]
fn a_guest_of_several_cores_is_met_on_one_that_the_driver_does_not_use() {
    let table = table(&[(7, 0), (7, 80)]);
    assert_eq!(assign(StageModel::A, &table, &facts(7, false)), "a: 0 1 1 1");
}

#[test]
fn models_are_written_in_either_case() {
    assert_eq!("A".parse(), Ok(StageModel::A));
    assert_eq!("auto".parse(), Ok(StageModel::Auto));
    assert_eq!("e".parse::<StageModel>(), Err(BadModel));
}

#[test]
fn a_guest_on_the_drivers_core_has_no_model_and_auto_still_frees_it_of_packets() {
    let table = table(&[(7, 0), (0, 10), (0, 20)]);
    for model in [StageModel::A, StageModel::B, StageModel::C, StageModel::D] {
        let refused = Err(NoStages::DriversCore { model, core: CoreId(0) });
        assert_eq!(model.assign(&table, &facts(7, false)), refused);
    }
    assert_eq!(assign(StageModel::Auto, &table, &facts(7, false)), "c: 0 1 1 0");
}
