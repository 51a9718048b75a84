//! A queue's greatest rate over a worker's shaper and the kernel's programs, by both of their clocks and in one word, while its flow moves all the time.

use super::*;
use crate::clock::{Clock, MonotonicClock};
use api::{PortQueues, QueueRates};
use arrayvec::ArrayVec;
use flow::{
    Action, BucketShape, FlowMod, Instructions, Limits, Output, Pipeline, PortAt, PortNo,
    PortState, Serials, SharedBucket, SwitchId, UNITS,
};
use offload::{
    Declined, Facts, FlowProgram, Handle, LimitId, MAX_LIMITS, MAX_SHAPES, Provider, Side,
};
use port::Body;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use testbed::netns::Namespace;
use wire::Offload;
use wire::build::{Frame, Ipv4};
use xdp::offload::{Flows, Interface, Limit, Past, RungPort as _, Tc, TcPort, Way};

const RATE: u64 = 10_000_000;
const LEN: usize = 400;
/// Nanoseconds of the rate that a frame takes.
const COST: u64 = LEN as u64 * 8 * 1_000_000_000 / RATE;
const WINDOW: u64 = 100_000_000;
/// A moment at which so little of the rate is left, in nanoseconds: between two such moments nothing can be saved up.
const LITTLE: u64 = 300_000;
/// What a worker may have taken and not spent.
const LEASE: u64 = 50_000;
const QUEUE: u32 = 1;
/// Frames that wait before the source pauses.
const MANY: u64 = 8;
/// How long frames come, and every which one is followed by a pause in which the rate is saved up.
const DURATION: u64 = 1_500_000_000;
const PAUSE_EACH: u64 = 2000;
const SAVED: u64 = 40_000_000;

struct Pins(PathBuf);

impl Drop for Pins {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The exit's facts: one greatest rate.
struct Rated(u32);

impl Facts for Rated {
    fn mtu(&self, _: PortNo) -> Result<u32, Declined> {
        Ok(1500)
    }

    fn shapes(
        &self,
        _: PortNo,
        queue: u32,
        out: &mut ArrayVec<LimitId, MAX_SHAPES>,
    ) -> Result<(), Declined> {
        assert_eq!(queue, QUEUE);
        out.push(LimitId(self.0));
        Ok(())
    }

    fn limits(&self, _: u32, _: &mut ArrayVec<LimitId, MAX_LIMITS>) -> Result<(), Declined> {
        Ok(())
    }
}

fn at(port: PortNo) -> PortAt {
    PortAt { switch: SwitchId(1), port }
}

fn frame(number: u64) -> Vec<u8> {
    let mut payload = vec![0; LEN - 42];
    payload[..8].copy_from_slice(&number.to_be_bytes());
    Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(7, 9).payload(&payload).finish()
}

/// What the tables make of such frames: out of the queue.
fn program(place: u32) -> FlowProgram {
    let mut pipeline = Pipeline::new(Limits::default(), &Serials::default());
    pipeline.set_ports((1..=2).map(PortState::up).collect());
    let apply = vec![Action::SetQueue(QUEUE), Action::Output(Output::Port(2))];
    let instructions = Instructions { apply, ..Instructions::default() };
    pipeline.flow_mod(&FlowMod { instructions, ..FlowMod::default() }, Nanos(0)).unwrap();
    let (key, _) = wire::parse(&Head::copy_of(&frame(0)), 1);
    let resolved = pipeline.snapshot().resolve(&key, &offload::known(&key), Nanos(0));
    FlowProgram::of(at(1), &key, &resolved, &Rated(place)).unwrap()
}

/// A port on the rung, its queue at a worker, and a flow between.
struct World {
    shaper: Shaper,
    limit: Arc<Limit>,
    held: Arc<AtomicU64>,
    rung: Tc,
    port: Arc<TcPort>,
    flow: Handle,
    /// Numbers of frames in the order in which they left.
    left: Vec<u64>,
    by_rung: u64,
    received: u64,
    ups: u64,
    _netns: Namespace,
    _pins: Pins,
}

impl World {
    fn new() -> Self {
        testbed::sys::pin(0);
        let netns = Namespace::create("rated").unwrap();
        let pins = Pins(std::env::temp_dir().join(format!("{}-pins", netns.name())));
        std::fs::create_dir_all(&pins.0).unwrap();
        mount("bpf", &pins.0, "bpf", MountFlags::empty(), None::<&CStr>).unwrap();
        let flows = Arc::new(Flows::open(&pins.0.join("offload")).unwrap());
        let mut rung = Tc::new(flows.clone());
        netns.ip(&["link", "add", "one", "type", "veth", "peer", "name", "two"]).unwrap();
        let [port, exit] = [(1, "one"), (2, "two")].map(|(number, name)| {
            let opened = netns.enter(|| {
                let index = testbed::sys::interface_index(name)?;
                let interface = Interface { name, index, netns: 1, exit: Ok(()) };
                Ok(TcPort::open(&flows, &interface, Vec::new())?)
            });
            let port = Arc::new(opened.unwrap());
            rung.port_came(at(number), port.clone());
            port
        });
        let queue = QueueRates { id: QUEUE, min: None, max: BitRate::new(RATE) };
        let wanted = PortQueues { rate: None, queues: vec![queue] };
        let held = Arc::<AtomicU64>::default();
        let shared = PortQueuesShared::new(&wanted, MonotonicClock.now(), 1, (None, &held));
        Past::Tc(exit).set_held(&held);
        let (rate, line) = shared.greatest(QUEUE).unwrap().next().unwrap();
        let mut limit = None;
        let mut find = |shape: &BucketShape| -> Option<Arc<dyn SharedBucket>> {
            limit = flows.limit(shape, None).map(Arc::new);
            limit.clone().map(|limit| limit as Arc<dyn SharedBucket>)
        };
        let place = line.shared(rate, &mut find).unwrap();
        line.share();
        let flow = rung.install(&program(place)).unwrap();
        rung.want(flow, Side::Rung).unwrap();
        let (shaper, limit) = (Shaper::new(&shared, 0), limit.unwrap());
        let (left, _netns, _pins) = (Vec::new(), netns, pins);
        let (by_rung, received, ups) = (0, 0, 0);
        Self { shaper, limit, held, rung, port, flow, left, by_rung, received, ups, _netns, _pins }
    }

    /// A frame comes in.
    fn offer(&mut self, number: u64) {
        let bytes = frame(number);
        if self.port.rehearse(&bytes).unwrap() == Way::Rung {
            self.by_rung += 1;
            return self.left.push(number);
        }
        self.received += 1;
        let (head, body) = bytes.split_at(60);
        let offload = Offload::default();
        let body = Body::private(body);
        let frame = TxFrame { head, body, offload, tunnel_id: 0, tun_dst: 0 };
        let lane = self.shaper.lane(QUEUE);
        match self.shaper.admit(lane, &frame, LEN as u32, MonotonicClock.now()) {
            Admission::Go => self.left.push(number),
            Admission::Held => {}
            Admission::Full => panic!("there is room for more than {MANY}"),
        }
    }

    /// The worker looks after its queue, and says so when nothing is under way.
    fn work(&mut self) {
        while let Some((lane, stored)) = self.shaper.pop(MonotonicClock.now()) {
            let bytes = self.shaper.frame(lane, &stored);
            let number = bytes.head[42..50].try_into().map(u64::from_be_bytes).unwrap();
            self.left.push(number);
            self.shaper.arrived(1);
        }
        if self.port.is_asked() {
            self.port.quiet(self.received, || Ok(0)).unwrap();
        }
    }

    /// Down if it is up, and back.
    fn turn(&mut self) {
        let is_up = self.rung.side(self.flow) == Side::Rung;
        self.ups += u64::from(is_up);
        self.rung.want(self.flow, if is_up { Side::Worker } else { Side::Rung }).unwrap();
    }

    fn waiting(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// The word and the idle time at a moment when next to nothing is left.
    fn look(&self) -> Option<Look> {
        let (full_at, idle) = (self.limit.full_at().load(Relaxed), self.limit.idle().load(Relaxed));
        let at = MonotonicClock.now();
        let ahead = full_at.wrapping_sub(flow::units(at)) as i64;
        let is_used_up = ahead > ((bucket::DEPTH - LITTLE) * UNITS) as i64;
        is_used_up.then_some(Look { at: at.0, full_at, idle })
    }
}

#[derive(Clone, Copy)]
struct Look {
    at: u64,
    full_at: u64,
    idle: u64,
}

/// Least and greatest of what left in each window, by what the rate gave in the time that the bucket was not full.
fn windows(looks: &[Look]) -> (f64, f64, usize) {
    let (mut end, mut range) = (0, (f64::INFINITY, 0.0_f64, 0));
    for first in looks {
        while end < looks.len() && looks[end].at < first.at + WINDOW {
            end += 1;
        }
        let Some(last) = looks.get(end) else { break };
        let idle = last.idle.wrapping_sub(first.idle);
        let left = last.full_at.wrapping_sub(first.full_at).wrapping_sub(idle);
        let given = (last.at - first.at) as f64 - idle as f64 / UNITS as f64;
        let share = left as f64 / UNITS as f64 / given;
        // Where it was idle, less than a window was given.
        if given > WINDOW as f64 * 0.9 {
            range = (range.0.min(share), range.1.max(share), range.2 + 1);
        }
    }
    range
}

#[test]
fn a_queues_greatest_rate_holds_in_every_window_while_its_flow_moves() {
    if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
        return;
    }
    let remedy = "run it as root, or set SUIRO_SKIP_PRIVILEGED=1 to skip it";
    assert!(rustix::process::geteuid().is_root(), "this test loads programs: {remedy}");
    let mut world = World::new();
    let start = world.limit.full_at().load(Relaxed);
    let (mut looks, mut sent, mut rounds) = (Vec::new(), 0, 0_u64);
    let begin = MonotonicClock.now().0;
    let (mut next, mut is_pausing) = (begin, false);
    // The word began at 0, so all time before the first frame was idle.
    let first_idle = flow::units(Nanos(begin));
    while MonotonicClock.now().0 < begin + DURATION {
        rounds += 1;
        world.work();
        is_pausing = world.waiting() >= MANY || is_pausing && world.waiting() > 0;
        if is_pausing {
            next = next.max(MonotonicClock.now().0);
        } else if MonotonicClock.now().0 >= next {
            world.offer(sent);
            sent += 1;
            // After what half a frame to one and a half takes: on the whole, a tenth more than the rate.
            next += COST / 2 + sent * 7919 % COST * 8 / 10;
            if sent % PAUSE_EACH == 0 {
                next += SAVED;
            }
        }
        if rounds % 16 == 0 {
            looks.extend(world.look());
        }
        if rounds % 64 == 0 {
            world.turn();
        }
    }
    while world.waiting() > 0 {
        world.work();
    }
    let by_worker = sent - world.by_rung;
    assert!(world.left.is_sorted(), "none passed another");
    assert_eq!(world.left.len() as u64, sent, "and none is lost");
    let idle = world.limit.idle().load(Relaxed);
    let moved = world.limit.full_at().load(Relaxed).wrapping_sub(start);
    let taken = moved.wrapping_sub(idle) / UNITS;
    let spent = sent * COST;
    assert!(
        (spent..=spent + LEASE).contains(&taken),
        "{taken} ns of the rate were taken for {spent} ns of frames"
    );
    let (least, most, count) = windows(&looks);
    println!(
        "10 Mbit/s: {by_worker} frames by the worker and {} by the rung, {} times up, idle {} ms; {count} windows of 100 ms: {least:.4} to {most:.4} of what idle leaves",
        world.by_rung,
        world.ups,
        (idle - first_idle) / UNITS / 1_000_000
    );
    let is_mixed = world.by_rung > 100 && by_worker > 100 && world.ups > 20;
    assert!(is_mixed && count > 20, "{count} windows, {} up, {by_worker} down", world.by_rung);
    assert!(least >= 0.99 && most <= 1.01, "{least} to {most}");
}
