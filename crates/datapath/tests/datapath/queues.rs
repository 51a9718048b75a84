//! Ports with queues, counted by frames under a clock that stands still until it is set on.

use crate::captures::{capture, of_point, rows};
use crate::line::{Fault, Wired};
use crate::rig::{Rig, at, from, output, udp};
use crate::time::{Manual, wait};
use datapath::{
    BadQueues, BitRate, Config, Latency, Point, PortQueues, QueueCounters, QueueRates, QueuesError,
    SwitchId, What,
};
use flow::Action;
use wire::{DropReason, Gso, Offload};

const MILLISECOND: u64 = 1_000_000;
/// 1000 bytes a millisecond, and 10 ms of it at once.
const RATE: u64 = 8_000_000;
/// Bytes that one queue of such a rate may hold.
const HELD: usize = 128 << 10;

fn queue(id: u32, max: u64) -> QueueRates {
    QueueRates { id, min: None, max: BitRate::new(max) }
}

fn queues(queues: &[QueueRates]) -> PortQueues {
    PortQueues { rate: None, queues: queues.to_vec() }
}

/// A frame of 1000 bytes.
fn frame(number: u8) -> Vec<u8> {
    udp(1, number, 1000 - 42)
}

/// Frames from port 1 leave by port 2, through queue `chosen`.
fn rig(chosen: u32) -> (Rig, Manual) {
    let clock = Manual::default();
    clock.pass(1000 * MILLISECOND);
    let mut rig =
        Rig::with_clock(Config { cache_entries: 4096, ..Config::default() }, clock.clone());
    rig.switch(1, &[1, 2, 3], &[from(1, vec![Action::SetQueue(chosen), output(2)])]);
    (rig, clock)
}

fn counters(rig: &Rig) -> Vec<(u32, u64, u64, u64)> {
    let counters = rig.datapath.queue_counters(at(1, 2));
    counters.iter().map(|q| (q.id, q.tx_frames, q.tx_bytes, q.tx_errors)).collect()
}

/// Frames that wait in each queue.
fn waiting(rig: &Rig) -> Vec<u64> {
    rig.datapath.queue_counters(at(1, 2)).iter().map(|q| q.waiting).collect()
}

#[test]
fn a_burst_leaves_what_exceeds_it_waits_and_what_does_not_fit_is_dropped() {
    let (rig, clock) = rig(7);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(7, RATE)])).unwrap();
    let frames: Vec<_> = (0..200u8).map(frame).collect();
    rig.line(1, 1).pass(frames.clone());
    let (burst, held) = (10, HELD / 1000);
    assert_eq!(rig.line(1, 2).take_bytes(), frames[..burst]);
    let lost = (200 - burst - held) as u64;
    assert_eq!(rig.drops(1, DropReason::QueueFull), lost);
    assert_eq!(counters(&rig), [(7, burst as u64, 10_000, lost)]);
    assert_eq!(waiting(&rig), [held as u64]);
    let mut later = Vec::new();
    for ms in 1..=held {
        clock.pass(MILLISECOND);
        wait(|| rig.traffic(1, 2).1 == (burst + ms) as u64);
        later.append(&mut rig.line(1, 2).take_bytes());
    }
    assert_eq!(later, frames[burst..burst + held], "one each millisecond, whole and in order");
    let all = (burst + held) as u64;
    assert_eq!(counters(&rig), [(7, all, all * 1000, lost)]);
    assert_eq!(waiting(&rig), [0]);
    let waited = rig.datapath.queue_counters(at(1, 2)).remove(0).wait;
    let all_ms: u64 = (1..=held as u64).sum();
    assert_eq!((waited.frames(), waited.sum_ns), (held as u64, all_ms * MILLISECOND));
    let (stayed, everywhere) = rig.datapath.latency();
    assert_eq!(everywhere, waited);
    assert_eq!((stayed.received.frames(), stayed.received.sum_ns), (200, 0), "each came once");
    assert_eq!(rig.datapath.latency_at(SwitchId(1)), Some(stayed));
}

#[test]
fn a_capture_of_a_queue_shows_what_comes_to_it_leaves_it_and_is_dropped() {
    let (rig, clock) = rig(7);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(0, RATE), queue(7, RATE)])).unwrap();
    let points = [Point::Queue(at(1, 2), 0), Point::Queue(at(1, 2), 7)];
    let mut capture = capture(&rig, &points, 1 << 16, 1 << 20).unwrap();
    let frames: Vec<_> = (0..150u8).map(frame).collect();
    rig.line(1, 1).pass(frames.clone());
    let (burst, held) = (10, HELD / 1000);
    let rows = rows(&mut capture);
    let of = |what| of_point(&rows, 1, what);
    assert_eq!(of(What::Received), frames);
    assert_eq!(of(What::Sent), frames[..burst]);
    assert_eq!(of(What::Lost(DropReason::QueueFull)), frames[burst + held..]);
    assert_eq!(rows.len(), 150 + burst + (150 - burst - held));
    clock.pass(MILLISECOND);
    wait(|| rig.traffic(1, 2).1 == burst as u64 + 1);
    let later = crate::captures::rows(&mut capture);
    assert_eq!(later, [(1, What::Sent, frames[burst].clone())]);
}

#[test]
fn a_queue_that_the_port_does_not_have_is_queue_zero() {
    let (rig, _clock) = rig(5);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(0, RATE), queue(7, RATE)])).unwrap();
    rig.line(1, 1).pass((0..20).map(frame));
    assert_eq!(counters(&rig), [(0, 10, 10_000, 0), (7, 0, 0, 0)]);
    assert_eq!(waiting(&rig), [10, 0]);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(7, RATE)])).unwrap();
    // The queue without a limit lets all go, as soon as the worker comes to it.
    wait(|| rig.traffic(1, 2).1 == 20);
}

#[test]
fn each_output_takes_the_queue_that_was_chosen_before_it() {
    let (mut rig, _clock) = rig(7);
    let actions = vec![Action::SetQueue(1), output(2), Action::SetQueue(2), output(2), output(3)];
    rig.rules(1, &[(20, vec![], actions)]);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(1, RATE), queue(2, RATE)])).unwrap();
    rig.line(1, 1).pass((0..3).map(frame));
    assert_eq!(counters(&rig), [(1, 3, 3000, 0), (2, 3, 3000, 0)]);
    assert_eq!(rig.line(1, 3).take().len(), 3);
}

#[test]
fn a_packet_out_takes_a_queue_too() {
    let (rig, _clock) = rig(7);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(9, RATE)])).unwrap();
    let actions = vec![Action::SetQueue(9), output(2)];
    let offload = Offload::default();
    let frame = frame(1);
    let out = datapath::PacketOut { switch: SwitchId(1), in_port: 1, frame, offload, actions };
    rig.datapath.packet_out(out).unwrap();
    rig.datapath.barrier();
    assert_eq!(counters(&rig), [(9, 1, 1000, 0)]);
}

#[test]
fn frames_that_wait_keep_body_and_checksum_state() {
    let (rig, clock) = rig(7);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(7, RATE)])).unwrap();
    rig.line(1, 1).pass((0..11).map(frame));
    let offload = Offload { gso: Gso::Udp, gso_size: 1000, ..Offload::default() };
    let large = Wired { bytes: udp(1, 9, 40_000), offload };
    rig.line(1, 1).pass([large.clone()]);
    rig.line(1, 2).take();
    clock.pass(2 * MILLISECOND);
    wait(|| rig.traffic(1, 2).1 == 12);
    assert_eq!(rig.line(1, 2).take().pop(), Some(large));
    rig.line(1, 1).pass([frame(1)]);
    // 40 segments of 42 + 1000 bytes; half a millisecond of credit was left.
    clock.pass(39 * MILLISECOND);
    rig.datapath.barrier();
    assert_eq!(rig.line(1, 2).take(), []);
    clock.pass(2 * MILLISECOND);
    wait(|| rig.traffic(1, 2).1 == 13);
}

#[test]
fn a_port_that_goes_down_drops_what_waits_there() {
    let (rig, clock) = rig(7);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(7, RATE)])).unwrap();
    rig.line(1, 1).pass((0..20).map(frame));
    rig.datapath.set_up(at(1, 2), false);
    clock.pass(MILLISECOND);
    wait(|| rig.drops(1, DropReason::PortDown) == 10);
    assert_eq!(counters(&rig), [(7, 10, 10_000, 10)]);
    assert_eq!(waiting(&rig), [0]);
}

#[test]
fn a_port_may_leave_with_frames_that_wait_and_its_place_be_taken() {
    let (mut rig, clock) = rig(7);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(7, RATE)])).unwrap();
    rig.line(1, 1).pass((0..20).map(frame));
    assert!(rig.datapath.detach(at(1, 2)));
    rig.switch(2, &[1, 2], &[from(1, vec![output(2)])]);
    clock.pass(100 * MILLISECOND);
    rig.line(2, 1).pass((0..20).map(frame));
    assert_eq!(rig.line(2, 2).take().len(), 20);
    assert_eq!(rig.datapath.queue_counters(at(1, 2)), []);
}

#[test]
fn counters_and_age_go_on_when_other_queues_change() {
    let (rig, clock) = rig(7);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(7, RATE)])).unwrap();
    rig.line(1, 1).pass((0..5).map(frame));
    clock.pass(3 * MILLISECOND);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(8, RATE), queue(7, 2 * RATE)])).unwrap();
    clock.pass(MILLISECOND);
    let seven = QueueCounters {
        id: 7,
        tx_frames: 5,
        tx_bytes: 5000,
        tx_errors: 0,
        waiting: 0,
        wait: Latency::default(),
        age_ns: 4 * MILLISECOND,
    };
    let (tx_frames, tx_bytes) = (0, 0);
    let eight = QueueCounters { id: 8, tx_frames, tx_bytes, age_ns: MILLISECOND, ..seven.clone() };
    assert_eq!(rig.datapath.queue_counters(at(1, 2)), [seven, eight]);
}

#[test]
fn a_panic_of_the_destination_loses_the_frames_in_hand_and_counts_them() {
    let (rig, clock) = rig(7);
    rig.datapath.set_queues(at(1, 2), &queues(&[queue(7, RATE)])).unwrap();
    rig.line(1, 1).pass((0..20).map(frame));
    rig.line(1, 2).set_fault(Some(Fault::TxPanics));
    clock.pass(2 * MILLISECOND);
    wait(|| rig.drops(1, DropReason::WorkerFault) == 2);
    rig.line(1, 2).set_fault(None);
    clock.pass(8 * MILLISECOND);
    wait(|| rig.traffic(1, 2).1 == 18);
}

#[test]
fn what_cannot_be_is_refused() {
    let (mut rig, _clock) = rig(7);
    rig.switch(2, &[1], &[]);
    rig.vlink(at(1, 9), at(2, 9));
    let one = queues(&[queue(1, RATE)]);
    let set = |at, queues: &PortQueues| rig.datapath.set_queues(at, queues).unwrap_err();
    assert_eq!(set(at(1, 4), &one), QueuesError::NoPort(at(1, 4)));
    assert_eq!(set(at(1, 9), &one), QueuesError::Vlink(at(1, 9)));
    let twice = queues(&[queue(1, RATE), queue(1, RATE)]);
    let bad = QueuesError::Bad { at: at(1, 2), source: BadQueues::Twice(1) };
    assert_eq!(set(at(1, 2), &twice), bad);
}
