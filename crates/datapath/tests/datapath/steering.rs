//! Flows of a switch on the worker that they are placed on, with workers that are threads.

use crate::line::{Fault, Wired, sender};
use crate::rig::{Rig, at, controller, from, output, udp};
use datapath::{Event, HandoverCounts, Queues, Steering, SteeringEntry, SteeringError, SwitchId};
use place::steering::{Field, FlowKey, Options, PolicyKind, Target, Unmatched, Urgency};
use place::{Core, CoreId, CoreTable, Load, Reason, Stage, UnitId};
use port::{BodyAt, Drops, RxBatch, RxQueue, Sent, TxFrame, TxQueue};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wire::{DropReason, Gso, Offload};

const ONE: SwitchId = SwitchId(1);

/// Two workers, a switch whose port 1 is received by one of them and sends to port 2.
fn rig() -> Rig {
    let mut rig = Rig::new(2);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    rig
}

/// The core of the worker that receives port 1, and the other.
fn cores(rig: &Rig) -> (CoreId, CoreId) {
    let core = rig.datapath.assignments(at(1, 1)).unwrap()[0].core as u16;
    (CoreId(core), CoreId(1 - core))
}

fn table(loads: [u32; 2]) -> CoreTable {
    let core = |(id, percent): (u16, u32)| {
        let mut core = Core::new(CoreId(id));
        core.load[Stage::Packet] = Load::percent(percent);
        core
    };
    CoreTable::new((0..).zip(loads).map(core).collect()).unwrap()
}

/// An entry for frames of these UDP source ports: `port` under `mask`.
fn entry(unit: UnitId, port: u16, mask: u16, target: Target) -> SteeringEntry {
    let (key, mask) = (
        FlowKey::default().with(Field::TpSrc, port.into()),
        FlowKey::default().with(Field::TpSrc, mask.into()),
    );
    SteeringEntry {
        unit,
        key,
        mask,
        priority: 10,
        target,
        is_priority: false,
        wants_own_core: false,
        vm: None,
    }
}

/// Waits until all that was handed over was taken, and passed.
fn settle(rig: &Rig, steering: &Steering) {
    rig.line(1, 1).settle();
    let begin = Instant::now();
    while steering.handovers().iter().any(|pair| pair.given != pair.taken) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", steering.handovers());
        std::thread::yield_now();
    }
    rig.datapath.barrier();
}

fn pair(steering: &Steering, from: CoreId, to: CoreId) -> HandoverCounts {
    let all = steering.handovers();
    all.into_iter().find(|pair| (pair.from, pair.to) == (from, to)).unwrap()
}

/// Frames that each worker sent out of port 2, by core.
fn sent_by(rig: &Rig) -> [u64; 2] {
    let mut sent = [0; 2];
    for worker in rig.datapath.worker_stats() {
        let port = worker.ports.iter().find(|port| port.at == at(1, 2)).unwrap();
        sent[worker.core] = port.tx_frames;
    }
    sent
}

#[test]
fn frames_of_an_entry_are_processed_on_its_core_and_others_stay() {
    let rig = rig();
    let (here, there) = cores(&rig);
    let mut steering = rig
        .datapath
        .steer(ONE, Options { unmatched: Unmatched::Stay, is_fcf: false, ..Options::default() })
        .unwrap();
    let unit = steering.free_unit().unwrap();
    steering
        .set_entries(&rig.datapath, vec![entry(unit, 1000, 0xffff, Target::Core(there))])
        .unwrap();
    rig.line(1, 1).put((0..300u16).map(|flow| udp(flow % 3, 0, 20)));
    settle(&rig, &steering);
    let sent = sent_by(&rig);
    assert_eq!((sent[usize::from(here.0)], sent[usize::from(there.0)]), (200, 100));
    assert_eq!((pair(&steering, here, there).taken, steering.unsteered()), (100, 200));
    let unit = steering.unit(unit);
    assert_eq!((unit.frames, unit.core, unit.reason), (100, Some(there), Some(Reason::Fixed)));
    assert_eq!(rig.traffic(1, 1), (300, 0), "received once");
    let over = rig.datapath.worker_stats().into_iter().map(|worker| worker.taken_over).sum::<u64>();
    assert_eq!(over, 100);
    let stayed = rig.datapath.latency_at(ONE).unwrap();
    assert_eq!(stayed.handed.frames(), 100);
    assert!(stayed.handed.sum_ns > 0 && stayed.received.frames() <= 200, "{stayed:?}");
    assert_eq!(rig.line(1, 2).take().len(), 300);
}

#[test]
fn a_group_goes_to_the_least_loaded_worker_one_that_comes_with_it_to_the_other_and_both_say_why() {
    let rig = rig();
    let (here, there) = cores(&rig);
    let steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    let mut loads = [0; 2];
    loads[usize::from(here.0)] = 40;
    steering.set_core_table(&table(loads), PolicyKind::Vse);
    rig.line(1, 1).put((0..50).map(|frame| udp(frame / 25, 0, 20)));
    settle(&rig, &steering);
    let placed = steering.placed();
    assert_eq!(placed.iter().map(|placed| placed.core).collect::<Vec<_>>(), [there, here]);
    assert!(placed.iter().all(|placed| placed.reason == Reason::LeastLoaded));
    assert!(placed.iter().all(|placed| placed.facts.rx_core == here));
    assert_eq!(placed.len(), steering.units().len());
    assert_eq!(sent_by(&rig), [25; 2]);
}

#[test]
fn without_a_core_below_the_threshold_flows_stay() {
    let rig = rig();
    let (here, _) = cores(&rig);
    let steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    steering.set_core_table(&table([90, 90]), PolicyKind::Vse);
    rig.line(1, 1).put((0..50).map(|flow| udp(flow, 0, 20)));
    settle(&rig, &steering);
    assert_eq!(sent_by(&rig)[usize::from(here.0)], 50);
    assert!(steering.placed().iter().all(|placed| placed.reason == Reason::AboveThreshold));
    // When there is one, they go.
    steering.set_core_table(
        &table([if here.0 == 0 { 90 } else { 1 }, if here.0 == 1 { 90 } else { 1 }]),
        PolicyKind::Vse,
    );
    rig.line(1, 1).put((0..50).map(|flow| udp(flow, 0, 20)));
    settle(&rig, &steering);
    assert_eq!(sent_by(&rig), [50, 50]);
}

#[test]
fn frames_are_handed_over_with_their_bodies_and_their_state() {
    let rig = rig();
    let (_, there) = cores(&rig);
    let mut steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    let unit = steering.free_unit().unwrap();
    steering.set_entries(&rig.datapath, vec![entry(unit, 0, 0, Target::Core(there))]).unwrap();
    let offload = Offload { gso: Gso::Udp, gso_size: 1400, gso_ecn: false, ..Offload::default() };
    let frames: Vec<Wired> = [20, 300, 1400, 60_000]
        .map(|len| Wired {
            bytes: udp(1, len as u8, len),
            offload: if len > 1500 { offload } else { Offload::default() },
        })
        .into();
    rig.line(1, 1).put(frames.clone());
    settle(&rig, &steering);
    assert_eq!(rig.line(1, 2).take(), frames);
    assert_eq!(sent_by(&rig)[usize::from(there.0)], 4);
}

#[test]
fn frames_are_handed_over_with_their_tunnel_ids() {
    let mut rig = Rig::new(2);
    rig.switch(1, &[2], &[]);
    rig.tunnel(1, 1);
    let both = vec![(wire::Field::TunnelId, 7), (wire::Field::TunSrc, sender(7).into())];
    rig.rules(1, &[(10, both, vec![output(2)])]);
    let (_, there) = cores(&rig);
    let mut steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    let unit = steering.free_unit().unwrap();
    steering.set_entries(&rig.datapath, vec![entry(unit, 0, 0, Target::Core(there))]).unwrap();
    for id in [7, 8, 7] {
        rig.line(1, 1).put_by(id, udp(1, id as u8, 20));
    }
    settle(&rig, &steering);
    assert_eq!(rig.line(1, 2).take_bytes(), [udp(1, 7, 20), udp(1, 7, 20)]);
    assert_eq!(sent_by(&rig)[usize::from(there.0)], 2);
}

#[test]
fn no_frame_is_lost_without_a_reason_while_flows_are_steered() {
    let mut rig = rig();
    let steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    steering.set_core_table(&table([0, 0]), PolicyKind::Hash);
    let source = (wire::Field::TpSrc, 1003);
    let matched = vec![(wire::Field::EthType, 0x0800), (wire::Field::IpProto, 17), source];
    rig.rules(
        1,
        &[
            (20, matched.clone(), vec![controller(60)]),
            (30, vec![matched[0], matched[1], (source.0, 1005)], vec![]),
        ],
    );
    rig.line(1, 1).put((0..4000).map(|flow| udp(flow % 50, 0, 20)));
    settle(&rig, &steering);
    let counters = rig.datapath.switch_counters(ONE).unwrap();
    let dropped: u64 = counters.drops.iter().map(|&(_, count)| count).sum();
    let (rx, tx) = (rig.traffic(1, 1).0, rig.traffic(1, 2).1);
    assert_eq!((rx, tx + dropped + counters.packet_ins), (4000, 4000), "{counters:?}");
    assert!(sent_by(&rig).iter().all(|&sent| sent > 500), "{:?}", sent_by(&rig));
}

#[test]
fn a_panic_at_the_target_costs_a_round_and_steering_goes_on() {
    let rig = rig();
    let (_, there) = cores(&rig);
    let mut steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    let unit = steering.free_unit().unwrap();
    steering.set_entries(&rig.datapath, vec![entry(unit, 0, 0, Target::Core(there))]).unwrap();
    rig.line(1, 2).set_fault(Some(Fault::TxPanics));
    rig.line(1, 1).put([udp(0, 0, 20)]);
    let Event::WorkerDied { worker, .. } = rig.event() else { panic!("it panics") };
    assert_eq!(rig.datapath.worker_stats()[worker].core, usize::from(there.0));
    rig.line(1, 2).set_fault(None);
    rig.line(1, 1).put([udp(0, 0, 20)]);
    rig.line(1, 1).settle();
    let begin = Instant::now();
    while rig.line(1, 2).take().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
    assert_eq!(rig.drops(1, DropReason::WorkerFault), 1);
}

#[test]
fn steering_ends_with_its_switch_and_begins_again() {
    let mut rig = rig();
    let steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    let again = rig.datapath.steer(ONE, Options::default());
    assert_eq!(again.err(), Some(SteeringError::Steered(ONE)));
    rig.datapath.remove_switch(ONE);
    assert!(!rig.datapath.is_steered(&steering));
    assert_eq!(
        rig.datapath.steer(ONE, Options::default()).err(),
        Some(SteeringError::NoSwitch(ONE))
    );
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    rig.datapath.unsteer(&steering);
    rig.line(1, 1).pass([udp(0, 0, 20)]);
    assert_eq!(rig.line(1, 2).take().len(), 1);
}

#[test]
fn what_cannot_be_steered_is_refused() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1], &[]);
    assert_eq!(rig.datapath.steer(ONE, Options::default()).err(), Some(SteeringError::OneWorker));
    let rig = Rig::new(2);
    let groups = Options { unmatched: Unmatched::Groups(300), is_fcf: false, ..Options::default() };
    assert_eq!(rig.datapath.steer(ONE, groups).err(), Some(SteeringError::Groups(300)));
}

/// Numbered frames of 64 flows, without end; a pause when the sink is far behind.
struct Numbered {
    ready: OwnedFd,
    template: Vec<u8>,
    sent: Arc<AtomicU64>,
    made: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    numbers: [u64; 64],
}

impl RxQueue for Numbered {
    fn rx(&mut self, batch: &mut RxBatch, _: &mut Drops) -> io::Result<usize> {
        let made = self.made.load(Relaxed);
        if self.stop.load(Relaxed) || made > self.sent.load(Relaxed) + 1500 {
            return Ok(0);
        }
        let slots = &mut batch.free()[..32];
        for (at, slot) in slots.iter_mut().enumerate() {
            let flow = (made as usize + at) * 7 % 64;
            self.numbers[flow] += 1;
            let end = self.template.len();
            let bytes = &mut slot.head.area()[..end];
            bytes.copy_from_slice(&self.template);
            bytes[35] = flow as u8;
            bytes[end - 8..].copy_from_slice(&self.numbers[flow].to_be_bytes());
            slot.head.set_len(end);
            (slot.body, slot.offload) = (BodyAt::Nowhere, Offload::default());
        }
        batch.advance(32);
        self.made.fetch_add(32, Relaxed);
        Ok(32)
    }

    fn arm(&mut self) -> bool {
        self.stop.load(Relaxed)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// One of the halves that look whether numbers rise.
struct Checked {
    seen: Arc<Mutex<[u64; 64]>>,
    sent: Arc<AtomicU64>,
    reordered: Arc<AtomicU64>,
}

impl TxQueue for Checked {
    fn tx(&mut self, frames: &[TxFrame<'_>], _: &mut Drops) -> Sent {
        let (mut seen, mut sent) = (self.seen.lock().unwrap(), Sent::default());
        for frame in frames {
            let (flow, number) = (
                usize::from(frame.head[35]),
                u64::from_be_bytes(*frame.head.last_chunk().unwrap()),
            );
            self.reordered.fetch_add(u64::from(number <= seen[flow]), Relaxed);
            seen[flow] = number;
            sent.count(frame.len());
        }
        self.sent.fetch_add(frames.len() as u64, Relaxed);
        sent
    }
}

/// Runs until so many frames have come out, with a thousand wishes a second for units that have flows; `SUIRO_STEERED_FRAMES` asks for more.
#[test]
fn a_million_frames_through_two_threads_under_a_thousand_moves_a_second_stay_in_order() {
    let frames = std::env::var("SUIRO_STEERED_FRAMES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let mut rig = Rig::new(2);
    rig.switch(1, &[], &[(1, vec![], vec![output(2)])]);
    let (seen, sent, reordered) =
        (Arc::new(Mutex::new([0; 64])), Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (made, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let checked = || {
        let (seen, sent, reordered) =
            (Arc::clone(&seen), Arc::clone(&sent), Arc::clone(&reordered));
        Box::new(Checked { seen, sent, reordered }) as Box<dyn TxQueue>
    };
    let ready = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
    let (counted, made_too, stop_too) = (Arc::clone(&sent), Arc::clone(&made), Arc::clone(&stop));
    let source = Numbered {
        ready,
        template: udp(0, 0, 20),
        sent: counted,
        made: made_too,
        stop: stop_too,
        numbers: [0; 64],
    };
    let rx: Vec<Box<dyn RxQueue>> = vec![Box::new(source)];
    rig.ports(1, &[1, 2]);
    rig.datapath
        .attach(at(1, 2), Queues { rx: vec![], tx: vec![checked(), checked()], mtu: 1500 })
        .unwrap();
    rig.datapath
        .attach(at(1, 1), Queues { rx, tx: vec![checked(), checked()], mtu: 1500 })
        .unwrap();
    let steering = rig.datapath.steer(ONE, Options::default()).unwrap();
    steering.set_core_table(&table([0, 0]), PolicyKind::Vse);
    let begin = Instant::now();
    let mut wishes = 0_u64;
    while sent.load(Relaxed) < frames {
        assert!(begin.elapsed() < Duration::from_secs(600), "{:?}", steering.handovers());
        if begin.elapsed().as_millis() as u64 <= wishes {
            std::thread::yield_now();
            continue;
        }
        let units = steering.units();
        let Some(unit) = units.get((wishes * 31 % 97) as usize % units.len().max(1)) else {
            continue;
        };
        let to = CoreId(1 - unit.core.map_or(0, |core| core.0));
        let haste =
            if wishes.is_multiple_of(2) { Urgency::DropToDrain } else { Urgency::WhenDrained };
        steering.want(unit.unit, to, Reason::Balance, haste);
        wishes += 1;
    }
    stop.store(true, Relaxed);
    let moves: u64 = steering.units().iter().map(|unit| unit.moves).sum();
    let all: u64 = steering.handovers().iter().map(|pair| pair.given).sum();
    let lost: u64 = steering.handovers().iter().map(|pair| pair.full + pair.held_out).sum();
    eprintln!(
        "{all} frames in {} ms, {wishes} wishes, {moves} moves, {lost} lost",
        begin.elapsed().as_millis()
    );
    assert_eq!(reordered.load(Relaxed), 0);
    assert!(moves * 2 > wishes, "{moves} moves of {wishes}");
}
