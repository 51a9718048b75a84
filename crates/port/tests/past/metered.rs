//! A meter of 1 ms over a flow that moves between worker and rung all the time: it keeps its rate in every window.

use crate::lab;
use crate::world::{UDP, Under, World, at, bound, inside};
use arrayvec::ArrayVec;
use flow::{
    Action, Band, BandKind, BucketShape, FlowMod, Instructions, Limits, MeterConfig, MeterMod,
    MeterUnit, Nanos, Output, Packet, PacketIn, Pipeline, PortNo, PortState, Serials, SharedBucket,
    Sink, Snapshot, Then, Workspace, process,
};
use offload::{Declined, Facts, FlowProgram, FlowReason, LimitId, Provider};
use port::{OpenPort, RxBatch};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use wire::{DropReason, Head};
use xdp::offload::{Flows, Limit, TcPort, XdpPort};

/// 100 Mbit/s.
const RATE: u64 = 100_000;
/// Nanoseconds that a bucket saves up.
const BURST: u64 = 1_000_000;
/// Bytes of a frame.
const FRAME: usize = 1400;
/// Headers of UDP over IPv4.
const HEADERS: usize = 42;
/// Nanoseconds of the rate that a frame takes: 112 us.
const COST: f64 = (FRAME * 8) as f64 * 1e6 / RATE as f64;
const WINDOW: u64 = 100_000_000;
const UNITS: u64 = 1024;

/// How long frames come; the long form takes ten times that.
fn duration() -> Duration {
    let is_long = std::env::var_os("SUIRO_ORDER_FRAMES").is_some();
    Duration::from_secs(if is_long { 20 } else { 2 })
}

fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Ports of 1500 bytes, and the places of buckets.
struct Metered<'s>(&'s Snapshot, &'s Arc<Flows>, RefCell<Vec<Arc<Limit>>>);

impl Facts for Metered<'_> {
    fn mtu(&self, _: PortNo) -> Result<u32, Declined> {
        Ok(1500)
    }

    fn limits(&self, meter: u32, out: &mut ArrayVec<LimitId, 4>) -> Result<(), Declined> {
        let mut find = |shape: &BucketShape| -> Option<Arc<dyn SharedBucket>> {
            let limit = Arc::new(self.1.limit(shape, None)?);
            self.2.borrow_mut().push(limit.clone());
            Some(limit)
        };
        out.extend(
            self.0
                .shared_meter(meter, &mut find)
                .ok_or(FlowReason::Limits)?
                .into_iter()
                .map(LimitId),
        );
        Ok(())
    }
}

/// The tables: all that guest a sends passes the meter.
fn tables() -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), &Serials::default());
    pipeline.set_ports((1..=2).map(PortState::up).collect());
    let band = Band { rate: RATE as u32, burst: RATE as u32 / 1000, kind: BandKind::Drop };
    let config = MeterConfig { unit: MeterUnit::Kbps, burst: true, stats: true, bands: vec![band] };
    pipeline.meter_mod(MeterMod::Add { id: 1, config }, now()).unwrap();
    let apply = vec![Action::Output(Output::Port(2))];
    let instructions = Instructions { meter: Some(1), apply, ..Instructions::default() };
    pipeline.flow_mod(&FlowMod { instructions, ..FlowMod::default() }, now()).unwrap();
    pipeline
}

#[derive(Default)]
struct Left(bool);

impl Sink for Left {
    fn output(&mut self, _: usize, _: &Packet<'_>, _: &[PortNo], _: Then) {
        self.0 = true;
    }
    fn packet_in(&mut self, _: usize, _: &Packet<'_>, _: PacketIn) {}
    fn lose(&mut self, _: usize, _: &Packet<'_>, _: DropReason) {}
}

/// Forwards between two ports; what comes from the left goes through the tables. How many of those frames left.
fn forward(ports: &mut [OpenPort; 2], snapshot: &Snapshot, stop: &AtomicBool) -> u64 {
    let [left, right] = ports;
    let (mut batch, mut seen) = (RxBatch::default(), lab::Seen::default());
    let (mut work, mut passed) = (Workspace::new(0, [5, 6], 0), 0);
    let mut leaves = |head: &Head, len: usize| {
        let (mut sink, mut head) = (Left::default(), Head::copy_of(head.bytes()));
        let (key, layers) = wire::parse(&head, 1);
        // Neighbours find each other past the meter.
        if key.get(wire::Field::IpProto) != u128::from(UDP) {
            return true;
        }
        let (offload, frame_len) = (wire::Offload::default(), len as u32);
        let mut packet = Packet { head: &mut head, key, layers, offload, frame_len, queue: 0 };
        process(snapshot, &mut work, &mut [&mut packet], now(), &mut sink);
        passed += u64::from(sink.0);
        sink.0
    };
    while !stop.load(Relaxed) {
        let (mut count, from) = (0, &mut left.rx[0]);
        batch.clear();
        count += from.rx(&mut batch, &mut seen.drops).unwrap();
        let frames: Vec<_> = batch
            .frames()
            .iter()
            .map(|slot| (slot, lab::frame(slot, from.as_ref())))
            .filter(|(slot, frame)| leaves(&slot.head, frame.len()))
            .map(|(_, frame)| frame)
            .collect();
        right.tx[0].tx(&frames, &mut seen.drops);
        from.release();
        batch.clear();
        count += right.rx[0].rx(&mut batch, &mut seen.drops).unwrap();
        let from = &right.rx[0];
        let frames: Vec<_> =
            batch.frames().iter().map(|slot| lab::frame(slot, from.as_ref())).collect();
        left.tx[0].tx(&frames, &mut seen.drops);
        right.rx[0].release();
        if count == 0 {
            lab::wait(left.rx.iter().chain(&right.rx));
        }
    }
    passed
}

/// The word at a moment at which the bucket is not full: time that it does not tell yet is none.
#[derive(Clone, Copy)]
struct Look {
    at: u64,
    full_at: u64,
    idle: u64,
}

impl Look {
    fn at(limit: &Limit) -> Option<Self> {
        let (idle, full_at) = (limit.idle().load(Relaxed), limit.full_at().load(Relaxed));
        let at = now().0;
        let is_drained = full_at.wrapping_sub(at * UNITS) as i64 > (BURST * UNITS / 2) as i64;
        (is_drained && limit.idle().load(Relaxed) == idle).then_some(Self { at, full_at, idle })
    }

    /// Nanoseconds of the rate that were let through since, and those that the bucket was full.
    fn since(self, before: Self) -> (f64, f64) {
        let idle = self.idle.wrapping_sub(before.idle);
        let moved = self.full_at.wrapping_sub(before.full_at);
        (moved.wrapping_sub(idle) as f64 / UNITS as f64, idle as f64 / UNITS as f64)
    }
}

/// Least and greatest of what was let through in every window, by what the rate gave while the bucket was not full.
fn windows(looks: &[Look]) -> (f64, f64) {
    let mut end = 0;
    let mut range = (f64::INFINITY, 0.0_f64);
    for first in looks {
        while end < looks.len() && looks[end].at < first.at + WINDOW {
            end += 1;
        }
        let Some(last) = looks.get(end) else { break };
        let (passed, idle) = last.since(*first);
        let given = (last.at - first.at) as f64 - idle;
        let room = BURST as f64 + COST;
        assert!((passed - given).abs() <= room, "{passed} ns let through, {given} given");
        if given > WINDOW as f64 * 0.9 {
            range = (range.0.min(passed / given), range.1.max(passed / given));
        }
    }
    range
}

/// Bytes by windows of arrival: least and greatest, as a share of the rate.
fn arrived(times: &[Instant]) -> (f64, f64) {
    let most = |first: usize| {
        times[first..]
            .iter()
            .take_while(|&&at| at < times[first] + Duration::from_nanos(WINDOW))
            .count()
    };
    let last = times.last().copied();
    let whole = times
        .iter()
        .enumerate()
        .step_by(20)
        .filter(|&(_, &at)| last.is_some_and(|last| last > at + Duration::from_nanos(WINDOW)));
    let shares = whole.map(|(first, _)| most(first) as f64 * COST / WINDOW as f64);
    shares.fold((f64::INFINITY, 0.0), |range, share| (range.0.min(share), range.1.max(share)))
}

#[test]
fn a_meter_keeps_its_rate_in_every_window_while_its_flow_moves() {
    keeps_its_rate::<TcPort>("pastmeter");
}

#[test]
fn a_meter_keeps_its_rate_while_its_flow_moves_between_xdp_and_the_worker() {
    keeps_its_rate::<XdpPort>("pastxmeter");
}

fn keeps_its_rate<P: Under>(name: &str) {
    let Some(mut world) = World::<P>::new(name) else { return };
    let mut ports = world.open();
    let mut pipeline = tables();
    let snapshot = pipeline.snapshot();
    let key = world.key(1, UDP, [7001, 7000]);
    let facts = Metered(&snapshot, &world.flows, RefCell::default());
    let resolved = snapshot.resolve(&key, &offload::known(&key), now());
    let program = FlowProgram::of(at(1), &key, &resolved, &facts).unwrap();
    let limit = facts.2.into_inner().remove(0);
    snapshot.share_meter(1);
    let handle = world.rung.install(&program).unwrap();
    world.hold(handle);
    let start = limit.full_at().load(Relaxed);

    let (stop, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let sent = AtomicU64::new(0);
    let (by_worker, times, looks) = thread::scope(|scope| {
        let worker = scope.spawn(|| forward(&mut ports, &snapshot, &stop));
        let (a, b) = (world.lab.netns("a").to_owned(), world.lab.netns("b").to_owned());
        let sink = inside(&b, || bound("10.9.0.2:7000", "10.9.0.1:7001"));
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&sink, 64 << 20).unwrap();
        sink.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let sink = scope.spawn(|| {
            let (mut times, mut bytes, sink) = (Vec::new(), [0; FRAME], sink);
            loop {
                match sink.recv(&mut bytes) {
                    Ok(_) => times.push(Instant::now()),
                    Err(_) if ended.load(Relaxed) => return times,
                    Err(_) => {}
                }
            }
        });
        // Twice the rate, 4 frames at a time.
        let until = Instant::now() + duration();
        let sent = &sent;
        let source = scope.spawn(move || {
            let socket = inside(&a, || bound("10.9.0.1:7001", "10.9.0.2:7000"));
            let begin = Instant::now();
            while Instant::now() < until {
                let due = (begin.elapsed().as_nanos() as f64 * 2.0 / COST) as u64;
                while sent.load(Relaxed) < due {
                    socket.send(&[0; FRAME - HEADERS]).unwrap();
                    sent.fetch_add(1, Relaxed);
                }
                thread::sleep(Duration::from_micros(200));
            }
        });
        let (mut looks, mut turns) = (Vec::new(), 0);
        while !source.is_finished() {
            looks.extend(Look::at(&limit));
            turns += 1;
            if turns % 4 == 0 {
                world.turn();
            }
            thread::sleep(Duration::from_micros(250));
        }
        source.join().unwrap();
        ended.store(true, Relaxed);
        let times = sink.join().unwrap();
        stop.store(true, Relaxed);
        (worker.join().unwrap(), times, looks)
    });
    let counts = world.counts()[0];
    let by_rung = counts.frames - counts.limited;
    assert_eq!(times.len() as u64, by_worker + by_rung, "all that was let through has arrived");
    let cost = (FRAME as u64 * 8) * (1_000_000 * UNITS) / RATE;
    let moved = limit.full_at().load(Relaxed).wrapping_sub(start);
    assert_eq!(
        moved,
        times.len() as u64 * cost + limit.idle().load(Relaxed),
        "the word says what passed"
    );
    let ((least, most), (fewest, greatest)) = (windows(&looks), arrived(&times));
    println!(
        "{}: 100 Mbit/s, burst 1 ms, {} frames offered, {by_worker} passed by the worker and {by_rung} by the rung, {} times up; each 100 ms of virtual time: {least:.4} to {most:.4} of what idle leaves; as they arrive: {fewest:.4} to {greatest:.4}",
        P::RUNG,
        sent.load(Relaxed),
        world.ups
    );
    assert!(
        by_rung > 100 && by_worker > 100 && world.ups > 20,
        "{by_rung}, {by_worker}, {}",
        world.ups
    );
    assert!(least >= 0.99 && most <= 1.01, "{least} to {most}");
}
