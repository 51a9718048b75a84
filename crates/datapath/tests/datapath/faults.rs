//! Sources that vanish, code that panics, readiness that lies.

use crate::line::Fault;
use crate::rig::{Rig, at, from, output, udp};
use datapath::Event;
use wire::DropReason;

fn pair(rig: &mut Rig, switch: u32) {
    rig.switch(switch, &[1, 2], &[from(1, vec![output(2)]), from(2, vec![output(1)])]);
}

/// Frames still pass from port 1 to port 2.
fn works(rig: &Rig, switch: u32) {
    rig.line(switch, 2).take();
    rig.line(switch, 1).pass([udp(0, 0, 0)]);
    assert_eq!(rig.line(switch, 2).take().len(), 1);
}

#[test]
fn a_vanished_source_is_reported_once_and_disturbs_no_one() {
    let mut rig = Rig::new(1);
    pair(&mut rig, 1);
    pair(&mut rig, 2);
    rig.line(1, 1).set_fault(Some(Fault::Gone));
    let Event::PortFault { at: place, worker, error } = rig.event() else { panic!("not a fault") };
    assert_eq!((place, worker, error.to_string().as_str()), (at(1, 1), 0, "no such device"));
    works(&rig, 2);
    rig.line(1, 2).pass([udp(0, 0, 0)]);
    assert_eq!(rig.line(1, 1).take().len(), 1, "its sending half is a matter of its own");
    let rounds = rig.line(1, 1).rounds();
    rig.line(1, 1).wake();
    works(&rig, 2);
    assert_eq!(rig.line(1, 1).rounds(), rounds, "it is not polled any more");
    assert!(rig.events.pop().is_none());
    assert!(rig.datapath.detach(at(1, 1)));
}

#[test]
fn a_panic_is_reported_and_the_worker_goes_on_with_its_ports() {
    let mut rig = Rig::new(1);
    pair(&mut rig, 1);
    pair(&mut rig, 2);
    rig.line(1, 1).set_fault(Some(Fault::RxPanicsOnce));
    let Event::WorkerDied { worker, at: place, message } = rig.event() else {
        panic!("not a panic")
    };
    assert_eq!((worker, place, message.as_str()), (0, Some(at(1, 1)), "rx of the double"));
    works(&rig, 1);
    works(&rig, 2);
    assert_eq!(rig.datapath.worker_stats()[0].restarts, 1);
}

#[test]
fn a_source_that_panics_again_and_again_is_taken_out_of_service() {
    let mut rig = Rig::new(1);
    pair(&mut rig, 1);
    pair(&mut rig, 2);
    rig.line(1, 1).set_fault(Some(Fault::RxPanics));
    let mut deaths = 0;
    loop {
        match rig.event() {
            Event::WorkerDied { .. } => deaths += 1,
            Event::PortFault { at: place, .. } => break assert_eq!(place, at(1, 1)),
            Event::PacketIn(_) => panic!("no one asked for that"),
        }
    }
    assert_eq!(deaths, 2, "the third comes with the fault");
    works(&rig, 2);
}

/// Puts frames on the line until its source is out of service; what becomes of its buffers is the claim.
fn until_out_of_service(rig: &mut Rig, fault: Fault) {
    rig.line(1, 1).set_fault(Some(fault));
    loop {
        rig.line(1, 1).put([udp(0, 0, 0)]);
        match rig.event() {
            Event::WorkerDied { .. } => {}
            Event::PortFault { at: place, .. } => return assert_eq!(place, at(1, 1)),
            Event::PacketIn(_) => panic!("no one asked for that"),
        }
    }
}

#[test]
fn a_source_out_of_service_has_given_its_buffers_back() {
    let mut rig = Rig::new(1);
    pair(&mut rig, 1);
    pair(&mut rig, 2);
    until_out_of_service(&mut rig, Fault::RxPanicsHolding);
    rig.line(1, 1).let_go();
    works(&rig, 2);
}

#[test]
fn one_that_cannot_even_give_them_back_is_left_alone() {
    let mut rig = Rig::new(1);
    pair(&mut rig, 1);
    pair(&mut rig, 2);
    until_out_of_service(&mut rig, Fault::ReleasePanics);
    works(&rig, 2);
    let restarts = rig.datapath.worker_stats()[0].restarts;
    works(&rig, 2);
    assert_eq!(rig.datapath.worker_stats()[0].restarts, restarts);
}

#[test]
fn a_destination_that_panics_loses_its_frames_and_then_its_place() {
    let mut rig = Rig::new(1);
    pair(&mut rig, 1);
    rig.line(1, 2).set_fault(Some(Fault::TxPanics));
    for _ in 0..3 {
        rig.line(1, 1).pass([udp(0, 0, 0)]);
    }
    rig.line(1, 1).pass([udp(0, 0, 0)]);
    let source = rig.datapath.port_counters(at(1, 1)).unwrap();
    assert_eq!(source.rx_drops, [(DropReason::WorkerFault, 3)]);
    assert_eq!(rig.drops(1, DropReason::TxError), 1, "the fourth frame is not tried");
}

#[test]
fn readiness_without_frames_does_not_keep_a_worker_busy() {
    let mut rig = Rig::new(1);
    pair(&mut rig, 1);
    pair(&mut rig, 2);
    rig.line(1, 1).keep_ready();
    for _ in 0..100 {
        works(&rig, 2);
    }
    let sleeps = || rig.datapath.worker_stats()[0].sleeps;
    let before = sleeps();
    while sleeps() < before + 5 {
        std::thread::yield_now();
    }
    let (polls, sleeps_then) = (rig.line(1, 1).rounds(), sleeps());
    while sleeps() < sleeps_then + 10 {
        std::thread::yield_now();
    }
    let polled = rig.line(1, 1).rounds() - polls;
    assert!(polled < 10_000, "{polled} polls in ten sleeps");
}
