//! A switch of two ports: its frames go to a worker of our own, or by the programs of the kernel. No wire carries them.

use arrayvec::ArrayVec;
use flow::{
    Action, Band, BandKind, BucketShape, Counted, FlowMod, Instructions, Limits, MeterConfig,
    MeterMod, MeterUnit, Nanos, Output, Packet, PacketIn, Pipeline, PortAt, PortNo, PortState,
    Serials, SharedBucket, Sink, Snapshot, SwitchId, Then, Workspace, process,
};
use offload::{
    Counts, Declined, Facts, FlowName, FlowProgram, FlowReason, Handle, LimitId, MAX_LIMITS,
    MAX_SHAPES, Orphan, Provider, Refusal, Side, known,
};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use testbed::netns::Namespace;
use wire::build::{Frame, Ipv4};
use wire::{DropReason, Head, Key, Offload};
use xdp::offload::{Flows, Interface, Limit, RungPort as _, Tc, TcPort, Way};

pub const SWITCH: SwitchId = SwitchId(1);

/// The clock of the programs.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Frames of one test, unless `SUIRO_OFFLOAD_FRAMES` asks for more.
pub fn frames(short: u64) -> u64 {
    let asked = std::env::var("SUIRO_OFFLOAD_FRAMES").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(short)
}

/// A UDP frame of a flow that comes in by port 1.
pub fn frame(flow: u16, len: usize) -> Vec<u8> {
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(flow, 9);
    frame.payload(&vec![0; len - 42]).finish()
}

pub fn name(flow: u16) -> FlowName {
    let (key, _) = wire::parse(&Head::copy_of(&frame(flow, 60)), 1);
    (at(1), key.masked(&offload::told_apart(&key)))
}

pub fn at(port: PortNo) -> PortAt {
    PortAt { switch: SWITCH, port }
}

/// A drop band of 1 ms.
pub fn band(rate: u32) -> Band {
    Band { rate, burst: (rate / 1000).max(1), kind: BandKind::Drop }
}

pub fn meter(unit: MeterUnit, bands: &[Band]) -> MeterConfig {
    MeterConfig { unit, burst: true, stats: true, bands: bands.to_vec() }
}

/// Where everything is pinned.
struct Pins(PathBuf);

impl Drop for Pins {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// What tables say.
pub struct Tables {
    pub pipeline: Pipeline,
    pub snapshot: Arc<Snapshot>,
    flows: Arc<Flows>,
    /// Buckets that rungs take from.
    pub limits: RefCell<Vec<Arc<Limit>>>,
    /// The greatest rate of whatever leaves.
    pub greatest: Option<BucketShape>,
    /// What rungs told of frames since they were asked first.
    pub credited: Counts,
}

impl Tables {
    pub fn renew(&mut self) -> Arc<Snapshot> {
        std::mem::replace(&mut self.snapshot, self.pipeline.snapshot())
    }

    pub fn add(&mut self, rule: &FlowMod, now: Nanos) {
        self.pipeline.flow_mod(rule, now).unwrap();
        self.renew();
    }

    pub fn add_meter(&mut self, id: u32, config: MeterConfig, now: Nanos) {
        self.pipeline.meter_mod(MeterMod::Add { id, config }, now).unwrap();
        self.renew();
    }
}

/// All frames of a flow in table 0: through `meter`, if it says so, and out by port 2 or on.
pub fn rule(flow: u16, meter: Option<u32>, goto: Option<u8>) -> FlowMod {
    let (mut key, mut mask) = (Key::default(), Key::default());
    for (field, value) in [
        (wire::Field::EthType, 0x0800),
        (wire::Field::IpProto, 17),
        (wire::Field::TpSrc, u128::from(flow)),
    ] {
        key.set(field, value);
        mask.set(field, field.full());
    }
    let apply = if goto.is_none() { vec![Action::Output(Output::Port(2))] } else { vec![] };
    let instructions = Instructions { meter, apply, goto, ..Instructions::default() };
    FlowMod { key, mask, instructions, ..FlowMod::default() }
}

impl Facts for Tables {
    fn mtu(&self, _: PortNo) -> Result<u32, Declined> {
        Ok(1500)
    }

    fn limits(&self, meter: u32, out: &mut ArrayVec<LimitId, MAX_LIMITS>) -> Result<(), Declined> {
        let mut find = |shape: &BucketShape| self.limit(shape);
        let places = self.snapshot.shared_meter(meter, &mut find).ok_or(FlowReason::Limits)?;
        out.extend(places.into_iter().map(LimitId));
        Ok(())
    }

    fn shapes(
        &self,
        _: PortNo,
        _: u32,
        out: &mut ArrayVec<LimitId, MAX_SHAPES>,
    ) -> Result<(), Declined> {
        let found = self.greatest.as_ref().and_then(|shape| self.limit(shape));
        out.extend(found.map(|limit| LimitId(limit.place())));
        Ok(())
    }
}

impl Tables {
    /// A bucket that rungs take from.
    fn limit(&self, shape: &BucketShape) -> Option<Arc<dyn SharedBucket>> {
        let limit = Arc::new(self.flows.limit(shape, None)?);
        self.limits.borrow_mut().push(limit.clone());
        Some(limit)
    }
}

impl offload::World for Tables {
    fn program(&mut self, &(from, ref key): &FlowName, now: Nanos) -> Result<FlowProgram, Refusal> {
        let resolved = self.snapshot.resolve(key, &known(key), now);
        Ok(FlowProgram::of(from, key, &resolved, self)?)
    }

    fn meets(&mut self, orphan: &Orphan) -> FlowName {
        (orphan.from, orphan.key)
    }

    fn takes_up(
        &mut self,
        flow: &FlowName,
        _: &Orphan,
        now: Nanos,
    ) -> Result<FlowProgram, Declined> {
        self.program(flow, now).map_err(|refusal| refusal.why)
    }

    fn share(&mut self, program: &FlowProgram) {
        program.credits.meter.into_iter().for_each(|(meter, _)| self.snapshot.share_meter(meter));
    }

    fn holds(&mut self, program: &FlowProgram, now: Nanos) -> bool {
        self.snapshot.holds(&program.stamp, now)
    }

    fn credit(&mut self, program: &FlowProgram, counts: Counts) {
        let frames = Counted { packets: counts.frames, bytes: counts.bytes };
        let limited = Counted { packets: counts.limited, bytes: counts.limited_bytes };
        self.snapshot.credit(&program.credits, 1, (frames, limited), counts.used);
        self.credited += counts;
    }

    fn quiesce(&mut self) {}
}

/// Says whether a frame left.
#[derive(Default)]
struct Left(bool);

impl Sink for Left {
    fn output(&mut self, _: usize, _: &Packet<'_>, ports: &[PortNo], _: Then) {
        assert_eq!(ports, [2]);
        self.0 = true;
    }
    fn packet_in(&mut self, _: usize, _: &Packet<'_>, _: PacketIn) {
        panic!("nothing goes to the controller");
    }
    fn lose(&mut self, _: usize, _: &Packet<'_>, reason: DropReason) {
        assert!(matches!(reason, DropReason::Meter | DropReason::NoMatch), "{reason:?}");
    }
}

/// A worker.
pub struct Worker(Workspace);

impl Default for Worker {
    fn default() -> Self {
        Self(Workspace::new(0, [5, 6], 0))
    }
}

impl Worker {
    /// Takes a frame in by port 1; whether it leaves.
    pub fn takes(&mut self, snapshot: &Snapshot, frame: &[u8], now: Nanos) -> bool {
        let (mut left, mut head) = (Left::default(), Head::copy_of(frame));
        let (key, layers) = wire::parse(&head, 1);
        let (offload, frame_len) = (Offload::default(), frame.len() as u32);
        let mut packet = Packet { head: &mut head, key, layers, offload, frame_len, queue: 0 };
        process(snapshot, &mut self.0, &mut [&mut packet], now, &mut left);
        left.0
    }
}

pub struct World {
    pub tc: Tc,
    pub tables: Tables,
    pub worker: Worker,
    /// Where frames come in.
    pub port: Arc<TcPort>,
    /// Where they leave.
    pub exit: Arc<TcPort>,
    /// Frames that the worker got.
    received: u64,
    _netns: Namespace,
    _pins: Pins,
}

impl World {
    /// `None` when the user asked to skip. The calling thread stays on one core: the programs speak to each other by words of a core.
    pub fn new(test: &str) -> Option<Self> {
        if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
            eprintln!("skipped: SUIRO_SKIP_PRIVILEGED=1");
            return None;
        }
        assert!(
            rustix::process::geteuid().is_root(),
            "this test loads programs into the kernel: run it as root, or set SUIRO_SKIP_PRIVILEGED=1 to skip it"
        );
        testbed::sys::pin(0);
        let netns = Namespace::create(test).unwrap();
        let pins = Pins(std::env::temp_dir().join(format!("{}-pins", netns.name())));
        std::fs::create_dir_all(&pins.0).unwrap();
        mount("bpf", &pins.0, "bpf", MountFlags::empty(), None::<&CStr>).unwrap();
        let flows = Arc::new(Flows::open(&pins.0.join("offload")).unwrap());
        let mut tc = Tc::new(flows.clone());
        netns.ip(&["link", "add", "one", "type", "veth", "peer", "name", "two"]).unwrap();
        let ports = [(1, "one"), (2, "two")].map(|(number, name)| {
            let opened = netns.enter(|| {
                let index = testbed::sys::interface_index(name)?;
                let interface = Interface { name, index, netns: 1, exit: Ok(()) };
                Ok(TcPort::open(&flows, &interface, Vec::new())?)
            });
            let port = Arc::new(opened.unwrap());
            tc.port_came(at(number), port.clone());
            port
        });
        let limits = Limits { tables: 2, ..Limits::default() };
        let mut pipeline = Pipeline::new(limits, &Serials::default());
        pipeline.set_ports((1..=2).map(PortState::up).collect());
        let snapshot = pipeline.snapshot();
        let (limits, credited) = (RefCell::default(), Counts::default());
        let tables = Tables { pipeline, snapshot, flows, limits, greatest: None, credited };
        let ([port, exit], worker) = (ports, Worker::default());
        Some(Self { tc, tables, worker, port, exit, received: 0, _netns: netns, _pins: pins })
    }

    /// A frame comes in by port 1 and goes by the side that the gate says; whether it left, and whether by the rung.
    pub fn send(&mut self, frame: &[u8]) -> (bool, bool) {
        match self.port.rehearse(frame).unwrap() {
            Way::Rung => (true, true),
            Way::Limited => (false, true),
            Way::Worker => {
                self.received += 1;
                (self.worker.takes(&self.tables.snapshot, frame, now()), false)
            }
        }
    }

    /// A frame comes in by port 1 and stays in the socket's queue, until the worker [takes it](Self::take).
    pub fn queue(&mut self, frame: &[u8]) {
        assert_eq!(self.port.rehearse(frame).unwrap(), Way::Worker);
    }

    /// The worker takes one of those, and sends it.
    pub fn take(&mut self, frame: &[u8]) {
        self.received += 1;
        assert!(self.worker.takes(&self.tables.snapshot, frame, now()));
    }

    /// The worker has sent all that it got.
    pub fn quiet(&self) {
        if self.port.is_asked() {
            self.port.quiet(self.received, || Ok(0)).unwrap();
        }
    }

    /// Puts a flow on the rung.
    pub fn raise(&mut self, flow: u16) -> Handle {
        let program = offload::World::program(&mut self.tables, &name(flow), now()).unwrap();
        offload::World::share(&mut self.tables, &program);
        let handle = self.tc.install(&program).unwrap();
        self.tc.want(handle, Side::Rung).unwrap();
        self.quiet();
        handle
    }

    pub fn counts(&mut self, handle: Handle) -> Counts {
        let mut counts = Vec::new();
        self.tc.read(&mut counts, usize::MAX);
        counts.into_iter().find(|&(of, _)| of == handle).unwrap().1
    }
}

/// Numbers that look random and are the same for the same seed (xorshift, Marsaglia 2003).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
