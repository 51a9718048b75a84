//! Hundreds of switches in one process.

use crate::rig::{Rig, from, output, udp};
use std::time::Instant;

#[test]
fn three_hundred_switches_of_four_ports_forward_and_then_sleep() {
    let mut rig = Rig::new(2);
    let begin = Instant::now();
    for switch in 0..300 {
        rig.switch(switch, &[1, 2, 3, 4], &[from(1, vec![output(2)]), from(3, vec![output(4)])]);
    }
    eprintln!("300 switches with 1200 ports: {} ms", begin.elapsed().as_millis());
    for switch in 0..300 {
        rig.line(switch, 1).put((0..40).map(|i| udp(i, 0, 0)));
        rig.line(switch, 3).put((0..40).map(|i| udp(i, 0, 0)));
    }
    for switch in 0..300 {
        rig.line(switch, 1).settle();
        rig.line(switch, 3).settle();
        assert_eq!((rig.line(switch, 2).take().len(), rig.line(switch, 4).take().len()), (40, 40));
    }
    asleep(&rig);
}

/// Every worker goes to sleep, and stays so: the count of polls stands still.
fn asleep(rig: &Rig) {
    let stats = || rig.datapath.worker_stats();
    let awake =
        |worker: &datapath::WorkerStats| (worker.empty_polls, worker.batches, worker.sleeps);
    loop {
        let before: Vec<_> = stats().iter().map(awake).collect();
        // As long as a hundred spins: a worker that still polled would have been seen.
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 5 {
            std::thread::yield_now();
        }
        if before == stats().iter().map(awake).collect::<Vec<_>>() {
            return;
        }
        assert!(begin.elapsed().as_secs() < 20, "a worker does not sleep");
    }
}
