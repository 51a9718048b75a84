//! The program in the kernel, without an interface: `BPF_PROG_TEST_RUN`.

use aya::programs::{TestRun, TestRunOptions};
use xdp::{Verdict, WorkerStage};

const XDP_DROP: u32 = 1;

/// Loads the program, or says what is missing.
fn loaded() -> Option<WorkerStage> {
    if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
        return None;
    }
    Some(WorkerStage::new().expect("loading needs root (or set SUIRO_SKIP_PRIVILEGED=1 to skip)"))
}

#[test]
fn a_frame_without_a_socket_is_dropped_and_counted() {
    let Some(mut loaded) = loaded() else { return };
    let frame = [0_u8; 60];
    let options = TestRunOptions { data_in: Some(&frame), repeat: 3, ..TestRunOptions::new() };
    let result = loaded.program().unwrap().test_run(options).unwrap();
    assert_eq!(result.return_value, XDP_DROP);
    let counts = loaded.counts().unwrap();
    let of = |verdict| counts.iter().find(|(counted, _)| *counted == verdict).unwrap().1;
    assert_eq!((of(Verdict::NoSocket).frames, of(Verdict::NoSocket).bytes), (3, 180));
    assert_eq!(of(Verdict::Worker).frames, 0);
}
