//! Order, by a scheduler of turns: workers are not threads here but take turns as a random number says, so that every run is the same and
//! moves meet workers that lag as far as they like.

use super::*;
use crate::clock::Clock;
use crate::command::Command;
use crate::config::Config;
use crate::counters::DropSums;
use crate::event::EventRing;
use crate::id::{PortAt, PortIx};
use crate::local::{LocalPort, Sink};
use crate::mailbox::Mailbox;
use crate::quota::Quota;
use crate::rung::Rungs;
use crate::samples::{Sampler, Samples};
use crate::shared::PortShared;
use crate::steering::choosing::Choosing;
use crate::switch::SwitchShared;
use crate::worker::Worker;
use flow::{Action, FlowMod, Instructions, Limits, Output, Pipeline, PortState};
use place::steering::{Unmatched, Urgency};
use place::{CoreId, Reason, UnitId};
use port::{BodyAt, Drops, RxBatch, RxQueue, Sent, TxFrame, TxQueue};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use wire::build::{Frame, Ipv4};

const FLOWS: u64 = 64;
const SWITCH: SwitchId = SwitchId(7);
const IX: SwitchIx = SwitchIx(0);

/// Time as the scheduler says.
struct Given(AtomicU64);

impl Clock for Given {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Relaxed))
    }

    fn cycles(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Frames with a number of their own in each flow, as many as the scheduler allows.
struct Source {
    ready: Arc<OwnedFd>,
    template: Vec<u8>,
    allowed: Arc<AtomicU64>,
    next: u64,
    numbers: [u64; FLOWS as usize],
}

impl RxQueue for Source {
    fn rx(&mut self, batch: &mut RxBatch, _: &mut Drops) -> io::Result<usize> {
        let count = self.allowed.load(Relaxed).min(batch.free().len() as u64);
        self.allowed.fetch_sub(count, Relaxed);
        for slot in &mut batch.free()[..count as usize] {
            let flow = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
            self.next += 1;
            let number = &mut self.numbers[flow as usize];
            *number += 1;
            let end = self.template.len();
            let bytes = &mut slot.head.area()[..end];
            bytes.copy_from_slice(&self.template);
            bytes[34..36].copy_from_slice(&(flow as u16).to_be_bytes());
            bytes[end - 8..].copy_from_slice(&number.to_be_bytes());
            slot.head.set_len(end);
            (slot.body, slot.offload) = (BodyAt::Nowhere, wire::Offload::default());
        }
        batch.advance(count as usize);
        if count == 0 {
            // Nothing is there: the scheduler says when there is.
            let _ = rustix::io::read(&self.ready, &mut [0; 8]);
        }
        Ok(count as usize)
    }

    fn arm(&mut self) -> bool {
        self.allowed.load(Relaxed) == 0
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// What came out.
struct Seen {
    last: [u64; FLOWS as usize],
    by_worker: [u64; 8],
    reordered: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { last: [0; FLOWS as usize], by_worker: [0; 8], reordered: 0 }
    }
}

struct Seeing {
    worker: usize,
    seen: Arc<Mutex<Seen>>,
}

impl TxQueue for Seeing {
    fn tx(&mut self, frames: &[TxFrame<'_>], _: &mut Drops) -> Sent {
        let (mut seen, mut sent) = (self.seen.lock().unwrap(), Sent::default());
        for frame in frames {
            let flow = usize::from(frame.head[34]) << 8 | usize::from(frame.head[35]);
            let number = u64::from_be_bytes(*frame.head.last_chunk().unwrap());
            seen.reordered += u64::from(number <= seen.last[flow]);
            seen.last[flow] = number;
            seen.by_worker[self.worker] += 1;
            sent.count(frame.len());
        }
        sent
    }
}

/// A small generator with a state that tests name.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct Host {
    clock: Arc<Given>,
    mailboxes: Vec<Arc<Mailbox>>,
    workers: Vec<Worker<Given>>,
    switch: Arc<SwitchShared>,
    shared: Arc<Shared>,
    allowed: Arc<AtomicU64>,
    ready: Arc<OwnedFd>,
    seen: Arc<Mutex<Seen>>,
    given: u64,
    _pipeline: Pipeline,
}

impl Host {
    /// Workers with one switch: port 1, received by worker 0, to port 2; all groups of flows steered.
    fn new(count: usize) -> Self {
        let clock = Arc::new(Given(AtomicU64::new(1_000_000_000)));
        let events = EventRing::new(64).unwrap();
        let mailboxes: Vec<_> = (0..count).map(|_| Mailbox::new(Rungs::ALL).unwrap()).collect();
        let config = Config { cache_entries: 1024, ..Config::default() };
        let worker = |(number, mailbox): (usize, &Arc<Mailbox>)| {
            let (clock, events) = (Arc::clone(&clock), Arc::clone(&events));
            Worker::new(
                (number, [1, 2]),
                &config,
                clock,
                Arc::clone(mailbox),
                (events, Sampler::new(Samples::new())),
            )
            .unwrap()
        };
        let workers = mailboxes.iter().enumerate().map(worker).collect();
        let mut pipeline =
            Pipeline::new(Limits { switch: 7, ..Limits::default() }, &flow::Serials::default());
        pipeline.set_ports(vec![PortState::up(1), PortState::up(2)]);
        let apply = vec![Action::Output(Output::Port(2))];
        let instructions = Instructions { apply, ..Instructions::default() };
        pipeline.flow_mod(&FlowMod { instructions, ..FlowMod::default() }, Nanos(1)).unwrap();
        let switch =
            SwitchShared::new(SWITCH, pipeline.snapshot(), Quota::new(1000, events.share()), count);
        let cores = (0..count as u16).map(CoreId).collect();
        let mut host = Self {
            clock,
            workers,
            switch,
            shared: Arc::new(Shared::new(cores, Choosing::new())),
            allowed: Arc::default(),
            ready: Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap()),
            seen: Arc::default(),
            given: 0,
            _pipeline: pipeline,
            mailboxes,
        };
        host.serve();
        host
    }

    fn serve(&mut self) {
        let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default());
        let template = frame.udp(0, 9).payload(&[0; 20]).finish();
        let ready = Arc::clone(&self.ready);
        let source = Source {
            ready,
            template,
            allowed: Arc::clone(&self.allowed),
            next: 0,
            numbers: [0; 64],
        };
        let mut rx: Vec<Box<dyn RxQueue>> = vec![Box::new(source)];
        let ports = [1, 2].map(|port| {
            PortShared::new(
                PortAt { switch: SWITCH, port },
                1500,
                crate::counters::blocks(self.workers.len()).into(),
            )
        });
        let classifier = classifier(1024);
        let wakers: Vec<_> =
            self.mailboxes.iter().map(|mailbox| Arc::clone(&mailbox.waker)).collect();
        let mut parts = connect(&wakers).into_iter();
        for worker in 0..self.workers.len() {
            let shared = Arc::clone(&self.switch);
            self.ask(worker, |reply| Command::AddSwitch { ix: IX, shared, reply });
            for (at, shared) in ports.iter().enumerate() {
                let sink = Seeing { worker, seen: Arc::clone(&self.seen) };
                let port = LocalPort::new(Arc::clone(shared), IX, Sink::Queue(Box::new(sink)));
                let (ix, rx) = (PortIx(at as u32), std::mem::take(&mut rx));
                self.ask(worker, |reply| Command::Attach { ix, port: Box::new(port), rx, reply });
            }
            let steered = Steered::new(SWITCH, Arc::clone(&self.shared), Arc::clone(&classifier));
            let (part, steered) = (parts.next().map(Box::new), Box::new(steered));
            self.ask(worker, |reply| Command::Steer { ix: IX, part, steered, reply });
        }
    }

    /// Asks a worker, which answers in its next turn or a later one.
    fn ask<A>(&mut self, worker: usize, command: impl FnOnce(Sender<A>) -> Command) -> Receiver<A> {
        let (reply, answer) = channel();
        self.mailboxes[worker].command(command(reply));
        self.turn(worker);
        answer
    }

    fn turn(&mut self, worker: usize) {
        // So that no one sleeps: there is no other thread to wake it.
        self.mailboxes[worker].waker.force();
        self.clock.0.fetch_add(300, Relaxed);
        assert!(self.workers[worker].turn().is_continue());
    }

    fn give(&mut self, frames: u64) {
        self.allowed.fetch_add(frames, Relaxed);
        rustix::io::write(&self.ready, &1u64.to_ne_bytes()).unwrap();
        self.given += frames;
    }

    fn rest(&mut self) {
        (0..200).for_each(|turn| self.turn(turn % self.workers.len()));
        for _ in 0..20_000 {
            (0..self.workers.len()).for_each(|worker| self.turn(worker));
            if self.lost() + self.sent() == self.given {
                return;
            }
        }
        panic!("{} given, {} sent, {} lost", self.given, self.sent(), self.lost());
    }

    fn sent(&self) -> u64 {
        self.seen.lock().unwrap().by_worker.iter().sum()
    }

    fn lost(&self) -> u64 {
        let mut drops = DropSums::default();
        self.switch.counters.iter().for_each(|block| block.drops.add_to(&mut drops));
        drops.named().iter().map(|(_, count)| count).sum()
    }

    fn moves(&self) -> u64 {
        let status =
            |unit| self.shared.status(UnitId(unit), classifier::UnitFacts::default()).moves;
        (0..1024).map(status).sum()
    }
}

fn classifier(groups: u16) -> Arc<Classifier> {
    Arc::new(Classifier::new(&[], (Unmatched::Groups(groups), false), [5, 9]).ok().unwrap())
}

/// `frames` frames, a wish for every `every`-th; workers are given turns unevenly, and one lags for a while now and then.
fn run(host: &mut Host, seed: u64, frames: u64, every: u64) {
    let mut random = Random(seed);
    let count = host.workers.len() as u64;
    let (mut lagging, mut until) = (0, 0);
    let (mut next_wish, end) = (host.given + every, host.given + frames);
    while host.given < end {
        if host.given >= next_wish {
            next_wish += every;
            let haste = [Urgency::WhenDrained, Urgency::DropToDrain][random.below(2) as usize];
            let (unit, place) = (UnitId(random.below(1024) as u32), random.below(count) as u16);
            host.shared.want(unit, place, Reason::Balance, haste);
        }
        if host.given >= until {
            (lagging, until) = (random.below(2 * count), host.given + random.below(3000));
        }
        let worker = random.below(count);
        if worker == 0 {
            host.give(random.below(40));
        }
        if worker != lagging {
            host.turn(worker as usize);
        }
    }
    host.rest();
}

#[test]
fn a_million_frames_under_more_than_a_thousand_moves_stay_in_order() {
    let mut host = Host::new(3);
    // Of 1024 groups 64 have a flow: about one wish in 25 moves one.
    run(&mut host, 1, 1_000_000, 20);
    let seen = host.seen.lock().unwrap();
    assert_eq!(seen.reordered, 0);
    assert!(seen.by_worker[..3].iter().all(|&frames| frames > 100_000), "{:?}", seen.by_worker);
    drop(seen);
    let moves = host.moves();
    assert!(moves > 1000, "{moves} moves");
    eprintln!("{} frames, {} lost, {moves} moves", host.given, host.lost());
}

#[test]
fn moves_without_end_and_entries_that_change_reorder_nothing() {
    for seed in 1..40 {
        let mut host = Host::new(2 + seed as usize % 3);
        for round in 0..6 {
            run(&mut host, seed * 100 + round, 3000, 1);
            // Other groups: nearly every flow goes to another unit, and so perhaps to another worker.
            host.give(200);
            let answers: Vec<_> = (0..host.workers.len())
                .map(|worker| {
                    let groups = classifier(256 << (round % 3));
                    host.ask(worker, |reply| Command::Reclassify {
                        ix: IX,
                        classifier: groups,
                        reply,
                    })
                })
                .collect();
            host.rest();
            assert!(answers.iter().all(|answer| answer.try_recv().is_ok()), "all classify anew");
        }
        assert_eq!(host.seen.lock().unwrap().reordered, 0, "seed {seed}");
    }
}

#[test]
fn a_move_that_the_old_worker_never_finishes_for_is_given_up_and_nothing_is_lost_before_the_hold_is_full()
 {
    let mut host = Host::new(2);
    (0..1024)
        .for_each(|unit| host.shared.want(UnitId(unit), 1, Reason::Balance, Urgency::WhenDrained));
    host.give(640);
    (0..20).for_each(|_| host.turn(0)); // all on their way to worker 1, which does nothing
    (0..8)
        .for_each(|unit| host.shared.want(UnitId(unit), 0, Reason::Balance, Urgency::DropToDrain));
    (0..1024)
        .for_each(|unit| host.shared.want(UnitId(unit), 0, Reason::Balance, Urgency::DropToDrain));
    host.give(640);
    (0..20).for_each(|_| host.turn(0));
    assert_eq!((host.sent(), host.lost()), (0, 0), "held, or behind the others");
    host.clock.0.fetch_add(2 * GIVE_UP_NS, Relaxed);
    (0..20).for_each(|_| host.turn(0));
    assert!(host.workers[0].handover.as_ref().unwrap().holds.iter().all(|hold| !hold.is_taken()));
    host.rest();
    assert_eq!((host.sent(), host.lost(), host.seen.lock().unwrap().reordered), (1280, 0, 0));
    assert_eq!(host.seen.lock().unwrap().by_worker[1], 1280, "given up: where they were");
    // Now that it keeps up again, they go.
    host.give(640);
    host.rest();
    assert_eq!(host.seen.lock().unwrap().by_worker[0], 640);
}

#[test]
fn a_full_ring_costs_its_target_only() {
    let mut host = Host::new(3);
    (0..1024).for_each(|unit| {
        host.shared.want(UnitId(unit), 1 + unit as u16 % 2, Reason::Balance, Urgency::WhenDrained)
    });
    for _ in 0..2000 {
        host.give(64);
        host.turn(0);
        host.turn(2); // worker 1 does nothing
    }
    let full = |host: &Host, to: usize| host.shared.workers[0].given[to].full.get();
    assert!(full(&host, 1) > 10_000);
    assert_eq!((full(&host, 2), host.lost()), (0, full(&host, 1)));
    host.rest();
    assert_eq!(host.seen.lock().unwrap().reordered, 0);
}

#[test]
fn who_ends_steering_leaves_no_frame_behind() {
    let mut host = Host::new(2);
    (0..1024)
        .for_each(|unit| host.shared.want(UnitId(unit), 1, Reason::Balance, Urgency::DropToDrain));
    host.give(300);
    (0..4).for_each(|_| host.turn(0));
    let answers = [0, 1].map(|worker| host.ask(worker, |reply| Command::Unsteer { ix: IX, reply }));
    host.give(300);
    host.rest();
    assert!(answers.iter().all(|answer| matches!(answer.try_recv(), Ok(Settled::Steered(_)))));
    let seen = host.seen.lock().unwrap();
    assert_eq!((seen.by_worker[0] + seen.by_worker[1], seen.reordered), (600, 0));
    assert!(seen.by_worker[0] >= 300, "{:?}", seen.by_worker);
}
