//! Coming into service and going out of it, under traffic.

use crate::line::Line;
use crate::rig::{Rig, at, from, output, udp};
use datapath::{AttachError, Config, Datapath, StartError, SwitchId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn detach_drops_the_queues_on_the_calling_thread() {
    let mut rig = Rig::new(2);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let (first, stop) = (rig.line(1, 1).clone(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                first.put((0..64).map(|i| udp(i, 0, 100)));
            }
        });
        for _ in 0..20 {
            let second = rig.line(1, 2).clone();
            assert!(rig.datapath.detach(at(1, 2)));
            let here = std::thread::current().id();
            let dropped = second.dropped_by();
            assert!(dropped.iter().all(|&by| by == here));
            second.take();
            rig.datapath.attach(at(1, 2), second.queues(2)).unwrap();
        }
        stop.store(true, Relaxed);
    });
    rig.line(1, 1).settle();
    rig.line(1, 2).take();
    rig.line(1, 1).pass([udp(0, 0, 0)]);
    assert_eq!(rig.line(1, 2).take().len(), 1);
}

#[test]
fn what_was_counted_at_a_port_goes_on_when_it_comes_back_and_ends_when_it_does_not() {
    let mut rig = Rig::new(2);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let second = rig.line(1, 2).clone();
    let attach = |rig: &Rig| rig.datapath.attach(at(1, 2), second.queues(2)).unwrap();
    rig.line(1, 1).pass([udp(0, 0, 0)]);
    assert_eq!(second.take().len(), 1);
    for _ in 0..3 {
        rig.datapath.detach(at(1, 2));
        assert_eq!(rig.traffic(1, 2), (0, 1), "while it is away");
        attach(&rig);
    }
    rig.line(1, 1).pass([udp(0, 0, 0)]);
    assert_eq!((second.take().len(), rig.traffic(1, 2)), (1, (0, 2)));
    rig.datapath.forget_port(at(1, 2));
    assert_eq!(rig.traffic(1, 2), (0, 2), "not of one in service");
    rig.datapath.detach(at(1, 2));
    rig.datapath.forget_port(at(1, 2));
    assert!(rig.datapath.port_counters(at(1, 2)).is_none());
    attach(&rig);
    assert_eq!(rig.traffic(1, 2), (0, 0), "another port of its number");
}

#[test]
fn queues_are_spread_over_the_workers_and_each_is_served_by_its_own() {
    let mut rig = Rig::new(2);
    rig.switch(1, &[1, 2, 3, 4], &[from(1, vec![output(2)]), from(2, vec![output(1)])]);
    let workers = |port| rig.datapath.assignments(at(1, port)).unwrap()[0].worker;
    assert_eq!([1, 2, 3, 4].map(workers), [0, 1, 0, 1]);
    rig.line(1, 1).pass((0..100).map(|i| udp(i, 0, 0)));
    rig.line(1, 2).pass((0..100).map(|i| udp(i, 0, 0)));
    assert_eq!((rig.line(1, 1).take().len(), rig.line(1, 2).take().len()), (100, 100));
    assert_ne!(rig.line(1, 1).received_by(), rig.line(1, 2).received_by());
    rig.datapath.barrier(); // a round is counted after its frames were given back
    let stats = rig.datapath.worker_stats();
    for (worker, (rx, tx)) in [(0, (1, 2)), (1, (2, 1))] {
        assert_eq!((stats[worker].frames, stats[worker].core), (100, worker));
        let port =
            |number| *stats[worker].ports.iter().find(|load| load.at == at(1, number)).unwrap();
        assert_eq!((port(rx).rx_queues, port(rx).rx_frames, port(tx).tx_frames), (1, 100, 100));
    }
    assert_eq!(rig.traffic(1, 1), (100, 100));
}

#[test]
fn published_tables_hold_after_a_barrier() {
    let mut rig = Rig::new(2);
    rig.switch(1, &[1, 2, 3], &[from(1, vec![output(2)])]);
    let first = rig.tables(1);
    for round in 0..50u16 {
        let port = 2 + u32::from(round) % 2;
        rig.rules(1, &[(100 + round, vec![], vec![output(port)])]);
        rig.datapath.barrier();
        rig.line(1, 1).pass([udp(0, 0, 0)]);
        assert_eq!(rig.line(1, port).take().len(), 1);
    }
    assert!(
        Arc::strong_count(&first) <= 2,
        "no one but the pipeline and this test holds on to old tables"
    );
}

#[test]
fn what_does_not_fit_is_refused_with_its_name() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1], &[]);
    let line = Line::new();
    let refused = |at, queues| rig.datapath.attach(at, queues).unwrap_err().to_string();
    assert_eq!(refused(at(1, 1), line.queues(1)), "switch 1 port 1 is in service already");
    assert_eq!(refused(at(2, 1), line.queues(1)), "switch 2 is not in service");
    assert_eq!(
        refused(at(1, 2), line.queues(3)),
        "switch 1 port 2 has 3 sending halves for 1 workers"
    );
    assert!(matches!(rig.datapath.attach_vlink(at(1, 5), at(1, 5)), Err(AttachError::Itself(_))));
    assert!(matches!(
        rig.datapath.attach_vlink(at(1, 5), at(1, 1)),
        Err(AttachError::PortInUse(_))
    ));
    assert!(!rig.datapath.detach(at(1, 5)));
    assert!(rig.datapath.port_counters(at(1, 5)).is_none());
}

#[test]
fn a_removed_switch_takes_its_ports_along_and_its_place_is_used_again() {
    let mut rig = Rig::new(2);
    for _ in 0..3 {
        rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
        rig.line(1, 1).pass([udp(0, 0, 0)]);
        assert_eq!(rig.line(1, 2).take().len(), 1);
        rig.datapath.remove_switch(SwitchId(1));
        assert_eq!(rig.line(1, 1).dropped_by().len(), 3, "one receive queue, two sending halves");
    }
    assert!(rig.datapath.switch_counters(SwitchId(1)).is_none());
}

#[test]
fn shutdown_drops_everything_on_the_calling_thread() {
    let mut rig = Rig::new(2);
    rig.switch(1, &[1], &[]);
    let line = rig.line(1, 1).clone();
    rig.datapath.shutdown();
    assert_eq!(line.dropped_by(), vec![std::thread::current().id(); 3]);
}

#[test]
fn cores_are_checked() {
    let start = |cores| {
        Datapath::start(Config { cores, cache_entries: 16, ..Config::default() }).map(|_| ())
    };
    assert!(matches!(start(vec![]), Err(StartError::NoCores)));
    assert!(matches!(start(vec![0, 1, 0]), Err(StartError::SameCore(0))));
    assert!(matches!(start(vec![1000]), Err(StartError::Worker { core: 1000, .. })));
    assert!(matches!(start((0..300).collect()), Err(StartError::TooMany { cores: 300, .. })));
}
