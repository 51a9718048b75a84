//! What it costs to steer flows between workers, in timestamp-counter cycles per frame of 64 bytes: at the worker that receives it and at
//! the one that processes it, by the workers' own account of rounds that had frames (rx, pipeline and tx together).
//!
//! Three cases: the switch is not steered; it is, and every frame stays; it is, and every frame is handed over. Ports are in memory; the
//! source stops while more than 1500 frames are on their way, so that nothing is dropped.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to say")]

use datapath::{Config, Datapath, PortAt, Queues, StageCycles, Steering, SteeringEntry, SwitchId};
use flow::{Action, FlowMod, Instructions, Limits, Nanos, Output, Pipeline, PortState};
use place::steering::{FlowKey, Options, PolicyKind, Target};
use place::{Core, CoreId, CoreTable};
use port::{BodyAt, Drops, RxBatch, RxQueue, Sent, TxFrame, TxQueue};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wire::build::{Frame, Ipv4};

const SWITCH: SwitchId = SwitchId(1);
const ROUND: usize = 32;
const WINDOW: Duration = Duration::from_millis(5);
const WINDOWS: usize = 200;

struct Source {
    ready: OwnedFd,
    frame: Vec<u8>,
    made: u64,
    sent: Arc<AtomicU64>,
}

impl RxQueue for Source {
    fn rx(&mut self, batch: &mut RxBatch, _: &mut Drops) -> io::Result<usize> {
        if self.made > self.sent.load(Relaxed) + 1500 {
            return Ok(0);
        }
        for slot in &mut batch.free()[..ROUND] {
            let bytes = &mut slot.head.area()[..self.frame.len()];
            bytes.copy_from_slice(&self.frame);
            bytes[35] = self.made as u8;
            slot.head.set_len(self.frame.len());
            (slot.body, slot.offload) = (BodyAt::Nowhere, wire::Offload::default());
            self.made += 1;
        }
        batch.advance(ROUND);
        Ok(ROUND)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

struct Sink(Arc<AtomicU64>);

impl TxQueue for Sink {
    fn tx(&mut self, frames: &[TxFrame<'_>], _: &mut Drops) -> Sent {
        let bytes = frames.iter().map(|frame| std::hint::black_box(frame.head).len() as u64).sum();
        self.0.fetch_add(frames.len() as u64, Relaxed);
        Sent { frames: frames.len() as u64, bytes }
    }
}

/// Busy cycles per frame over one window: of the worker that receives and of the other one; `None` without frames.
fn window(datapath: &Datapath) -> [Option<f64>; 2] {
    let look = || {
        datapath
            .worker_stats()
            .into_iter()
            .map(|worker| (worker.frames + worker.taken_over, worker.cycles))
    };
    let before: Vec<_> = look().collect();
    std::thread::sleep(WINDOW);
    let mut per_frame = look().zip(before).map(|((frames, now), (frames_before, before))| {
        let busy = |cycles: &StageCycles| cycles.busy() as f64;
        let frames = frames - frames_before;
        (frames > 1000).then(|| (busy(&now) - busy(&before)) / frames as f64)
    });
    [per_frame.next().flatten(), per_frame.next().flatten()]
}

fn measure(name: &str, to: Option<CoreId>) {
    let config = Config { cores: vec![0, 1], ..Config::default() };
    let (datapath, _events) = Datapath::start(config).unwrap();
    let mut pipeline =
        Pipeline::new(Limits { switch: 1, ..Limits::default() }, &flow::Serials::default());
    pipeline.set_ports(vec![PortState::up(1), PortState::up(2)]);
    let apply = vec![Action::Output(Output::Port(2))];
    let instructions = Instructions { apply, ..Instructions::default() };
    pipeline.flow_mod(&FlowMod { instructions, ..FlowMod::default() }, Nanos(1)).unwrap();
    let _publisher = datapath.add_switch(SWITCH, pipeline.snapshot());
    let sent = Arc::<AtomicU64>::default();
    let sink = || Box::new(Sink(Arc::clone(&sent))) as Box<dyn TxQueue>;
    let queues = |rx: Vec<Box<dyn RxQueue>>| Queues { rx, tx: vec![sink(), sink()], mtu: 1500 };
    datapath.attach(PortAt { switch: SWITCH, port: 2 }, queues(vec![])).unwrap();
    let _steering = to.map(|core| steer(&datapath, core));
    let frame =
        Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(1, 2).payload(&[0; 22]).finish();
    let ready = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
    let source = Source { ready, frame, made: 0, sent: Arc::clone(&sent) };
    datapath.attach(PortAt { switch: SWITCH, port: 1 }, queues(vec![Box::new(source)])).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let windows: Vec<_> = (0..WINDOWS).map(|_| window(&datapath)).collect();
    // The best of many short windows: other programs share the machine.
    let best = |worker: usize| {
        let seen = windows.iter().filter_map(|window| window[worker]);
        seen.min_by(f64::total_cmp).map_or("       -".to_owned(), |cycles| format!("{cycles:8.0}"))
    };
    println!("{name:<24}{}{}", best(0), best(1));
}

/// Every frame goes to the worker of that core.
fn steer(datapath: &Datapath, core: CoreId) -> Steering {
    let mut steering = datapath.steer(SWITCH, Options::default()).unwrap();
    let cores = (0..2).map(|id| Core::new(CoreId(id))).collect();
    steering.set_core_table(&CoreTable::new(cores).unwrap(), PolicyKind::Vse);
    let (key, mask, target) = (FlowKey::default(), FlowKey::default(), Target::Core(core));
    let unit = steering.free_unit().unwrap();
    let entry = SteeringEntry {
        unit,
        key,
        mask,
        priority: 1,
        target,
        is_priority: false,
        wants_own_core: false,
        vm: None,
    };
    steering.set_entries(datapath, vec![entry]).unwrap();
    steering
}

fn main() {
    println!("cycles per frame        receiver   other");
    measure("not steered", None);
    measure("steered, stays", Some(CoreId(0)));
    measure("steered, handed over", Some(CoreId(1)));
}
