use super::sys::ProgramArray;
use super::{OBJECT, PROGRAM, STAGES, Stage, WHOLE_OBJECT, load, program};
use aya::maps::Map;
use aya::programs::{TestRun, TestRunOptions};
use std::os::fd::AsFd;

const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;

/// Whether programs may be loaded.
fn may_load() -> bool {
    std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_none_or(|value| value != "1")
}

/// The action of a hook of that shape, without and with a worker stage of that shape.
fn actions(hook: &[u8], worker: &[u8]) -> (u32, u32) {
    let (mut hook, mut worker) = (load(hook).unwrap(), load(worker).unwrap());
    let stage = program(&mut worker, "suiro_worker").unwrap();
    stage.load().unwrap();
    program(&mut hook, PROGRAM).unwrap().load().unwrap();
    let Some(Map::ProgramArray(stages)) = hook.map(STAGES) else { panic!("no stages") };
    let stages = ProgramArray::of(stages).unwrap();
    let mut run = || {
        let options = TestRunOptions { data_in: Some(&[0; 60]), ..TestRunOptions::new() };
        program(&mut hook, PROGRAM).unwrap().test_run(options).unwrap().return_value
    };
    let without = run();
    assert_eq!(stages.get(Stage::Worker as u32).unwrap(), None);
    stages.set(Stage::Worker as u32, stage.fd().unwrap().as_fd()).unwrap();
    assert_eq!(stages.get(Stage::Worker as u32).unwrap(), Some(stage.info().unwrap().id()));
    let with = run();
    stages.clear(Stage::Worker as u32).unwrap();
    stages.clear(Stage::Worker as u32).expect("none before is no error");
    assert_eq!(run(), XDP_PASS);
    (without, with)
}

#[test]
fn hook_and_stage_fit_each_other_for_frames_in_pieces_and_for_whole_ones() {
    if !may_load() {
        return;
    }
    assert_eq!(actions(OBJECT, crate::OBJECT), (XDP_PASS, XDP_DROP));
    assert_eq!(actions(WHOLE_OBJECT, crate::worker::WHOLE_OBJECT), (XDP_PASS, XDP_DROP));
}
