//! Cycles per packet of the datapath with ports in memory: what it costs to take 64-byte frames from a source that always has a
//! full batch, through the tables, to a destination that takes all. Unit: timestamp-counter cycles per received packet.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to say")]

use datapath::{Config, Datapath, PortAt, Publisher, Queues, StageCycles, SwitchId};
use flow::{Action, FlowMod, Instructions, Limits, Nanos, Output, Pipeline, PortState};
use port::{BodyAt, Drops, RxBatch, RxQueue, Sent, TxFrame, TxQueue};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use wire::build::{Frame, Ipv4};
use wire::{Field, Offload};

const WARM_UP: Duration = Duration::from_millis(100);
const WINDOW: Duration = Duration::from_millis(3);
const WINDOWS: usize = 300;

struct Source {
    ready: OwnedFd,
    frames: Vec<Vec<u8>>,
    next: usize,
    batch: usize,
}

impl RxQueue for Source {
    fn rx(&mut self, batch: &mut RxBatch, _drops: &mut Drops) -> io::Result<usize> {
        for slot in &mut batch.free()[..self.batch] {
            let frame = &self.frames[self.next];
            self.next = if self.next + 1 == self.frames.len() { 0 } else { self.next + 1 };
            slot.head.area()[..frame.len()].copy_from_slice(frame);
            slot.head.set_len(frame.len());
            slot.body = BodyAt::Nowhere;
            slot.offload = Offload::default();
        }
        batch.advance(self.batch);
        Ok(self.batch)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

struct Sink([u8; 64]);

impl TxQueue for Sink {
    fn tx(&mut self, frames: &[TxFrame<'_>], _drops: &mut Drops) -> Sent {
        let mut bytes = 0;
        for frame in frames {
            let len = frame.head.len().min(64);
            self.0[..len].copy_from_slice(&frame.head[..len]);
            bytes += frame.len() as u64;
        }
        std::hint::black_box(&self.0);
        Sent { frames: frames.len() as u64, bytes }
    }
}

fn at(switch: u32, port: u32) -> PortAt {
    PortAt { switch: SwitchId(switch), port }
}

fn output(port: u32) -> Action {
    Action::Output(Output::Port(port))
}

fn switch(datapath: &Datapath, switch: u32, ports: &[u32], actions: Vec<Action>) -> Arc<Publisher> {
    let mut pipeline = Pipeline::new(Limits { switch, ..Limits::default() });
    pipeline.set_ports(ports.iter().map(|&port| PortState::up(port)).collect());
    let instructions = Instructions { apply: actions, ..Instructions::default() };
    pipeline.flow_mod(&FlowMod { instructions, ..FlowMod::default() }, Nanos(1)).unwrap();
    datapath.add_switch(SwitchId(switch), pipeline.snapshot())
}

/// One case: `flows` flows in batches of `batch` into port 1 of switch 1, whose program is `actions`, with `hops` more switches
/// behind its port 9.
fn measure(name: &str, flows: u16, batch: usize, hops: u32, actions: Vec<Action>) {
    // `cargo bench --bench pass -- vlinks` runs the cases whose names have "vlinks" in them.
    if std::env::args().skip(1).any(|part| !part.starts_with("--") && !name.contains(&part)) {
        return;
    }
    let (datapath, _events) =
        Datapath::start(Config { cores: vec![1], ..Config::default() }).unwrap();
    let mut publishers = vec![switch(&datapath, 1, &[1, 2, 3, 4, 9], actions)];
    for hop in 2..2 + hops {
        let last = hop == 1 + hops;
        publishers.push(switch(&datapath, hop, &[1, 2, 9], vec![output(if last { 2 } else { 9 })]));
        datapath.attach_vlink(at(hop - 1, 9), at(hop, 1)).unwrap();
    }
    let queues =
        |rx: Vec<Box<dyn RxQueue>>| Queues { rx, tx: vec![Box::new(Sink([0; 64]))], mtu: 1500 };
    for port in 2..=4 {
        datapath.attach(at(1, port), queues(vec![])).unwrap();
    }
    if hops > 0 {
        datapath.attach(at(1 + hops, 2), queues(vec![])).unwrap();
    }
    let frame = |flow| {
        Frame::ethernet([2; 6], [4; 6])
            .ipv4(Ipv4::default())
            .udp(flow, 2)
            .payload(&[0; 22])
            .finish()
    };
    let ready = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
    let source = Source { ready, frames: (0..flows).map(frame).collect(), next: 0, batch };
    datapath.attach(at(1, 1), queues(vec![Box::new(source)])).unwrap();
    std::thread::sleep(WARM_UP);
    // The best of many short windows: other programs share the machine, and a window in which one of them ran says nothing.
    let windows = (0..WINDOWS).filter_map(|_| window(&datapath));
    let best =
        windows.min_by(|a, b| a.busy.total_cmp(&b.busy)).expect("the worker ran in some window");
    println!(
        "{name:<44} {:>7.1} = rx {:>5.1} + pipeline {:>6.1} + tx {:>5.1}",
        best.busy, best.rx, best.pipeline, best.tx
    );
}

/// Cycles per packet.
struct PerPacket {
    busy: f64,
    rx: f64,
    pipeline: f64,
    tx: f64,
}

/// One window; `None` if the worker hardly ran.
fn window(datapath: &Datapath) -> Option<PerPacket> {
    let before = datapath.worker_stats().remove(0);
    std::thread::sleep(WINDOW);
    let after = datapath.worker_stats().remove(0);
    let frames = (after.frames - before.frames) as f64;
    if frames < 1000.0 {
        return None;
    }
    let per = |stage: fn(&StageCycles) -> u64| {
        (stage(&after.cycles) - stage(&before.cycles)) as f64 / frames
    };
    Some(PerPacket {
        busy: per(|c| c.busy()),
        rx: per(|c| c.rx),
        pipeline: per(|c| c.pipeline),
        tx: per(|c| c.tx),
    })
}

fn main() {
    let edit =
        Action::SetField { field: Field::EthSrc, of: None, value: 7, mask: Field::EthSrc.full() };
    println!("cycles per received packet, 64 B, ports in memory");
    for batch in [32, 8, 1] {
        measure(
            &format!("port to port, 1000 flows, batch {batch}"),
            1000,
            batch,
            0,
            vec![output(2)],
        );
    }
    measure("port to port, 1 flow, batch 32", 1, 32, 0, vec![output(2)]);
    measure("set eth_src, output", 1000, 32, 0, vec![edit, output(2)]);
    measure(
        "output, set eth_src, output (copy of the head)",
        1000,
        32,
        0,
        vec![output(2), edit, output(3)],
    );
    measure("flood to 3 ports", 1000, 32, 0, vec![output(2), output(3), output(4)]);
    for hops in [1, 2, 4, 8] {
        measure(&format!("{hops} vlinks"), 1000, 32, hops, vec![output(9)]);
    }
}
