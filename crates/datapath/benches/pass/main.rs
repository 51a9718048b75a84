//! Cycles per packet of the datapath with ports in memory: what it costs to take 64-byte frames from a source that always has a
//! full batch, through the tables, to destinations that take all. Unit: timestamp-counter cycles per received packet.
//!
//! `all` is what a worker that does nothing else needs for a packet, the turns of its loop included; `rx`, `pipeline` and `tx` are its own
//! account. `cargo bench -p suiro-datapath --bench pass -- vlink` runs the cases whose names have "vlink" in them.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to say")]

mod cases;
mod ports;
mod seen;

use cases::MILLION;
use datapath::{
    Clock, Config, Datapath, Filter, MonotonicClock, PortAt, Publisher, Queues, StageCycles,
    SwitchId,
};
use flow::{Action, FlowMod, Limits, Nanos, Output, Pipeline, PortState};
use port::{Drops, RxBatch, RxQueue, TxFrame, TxQueue};
use ports::{Flow, LEN, Sink, Source};
use std::sync::Arc;
use std::time::Duration;
use wire::Field;

const WARM_UP: Duration = Duration::from_millis(100);
const WINDOW: Duration = Duration::from_millis(3);
const WINDOWS: usize = 200;

/// Frames a round, unless a case says otherwise.
const ROUND: usize = 32;

/// What goes into port 1 of switch 1, and what it has in its tables.
struct Case {
    name: String,
    rules: Box<dyn Fn() -> Vec<FlowMod>>,
    batch: usize,
    /// More switches, each behind port 9 of the one before it.
    hops: u32,
    /// Stations heard before, and where.
    heard: Vec<(u64, u32)>,
    /// Which of its frames a capture at port 1 is to see; there is none if that is not said.
    seen: Option<Filter>,
}

impl Case {
    fn of(name: impl Into<String>, rules: impl Fn() -> Vec<FlowMod> + 'static) -> Self {
        Self {
            name: name.into(),
            rules: Box::new(rules),
            batch: ROUND,
            hops: 0,
            heard: Vec::new(),
            seen: None,
        }
    }

    /// Runs it with `flows` flows.
    fn run(self, flows: u64, flow: impl Flow) {
        if std::env::args()
            .skip(1)
            .any(|part| !part.starts_with("--") && !self.name.contains(&part))
        {
            return;
        }
        let config = Config { cores: vec![1], ..Config::default() };
        let (datapath, _events) = Datapath::start(config).unwrap();
        let _publishers = self.switches(&datapath);
        for port in 2..=4 {
            datapath.attach(at(1, port), queues(vec![])).unwrap();
        }
        if self.hops > 0 {
            datapath.attach(at(1 + self.hops, 2), queues(vec![])).unwrap();
        }
        let source = Source::new(self.batch, flows, flow).unwrap();
        datapath.attach(at(1, 1), queues(vec![Box::new(source)])).unwrap();
        let reader = self.seen.map(|filter| seen::begin(&datapath, at(1, 1), filter));
        std::thread::sleep(WARM_UP);
        // The best of many short windows: other programs share the machine, and a window in which one of them ran says nothing.
        let windows = (0..WINDOWS).filter_map(|_| window(&datapath));
        let best =
            windows.min_by(|a, b| a.all.total_cmp(&b.all)).expect("the worker ran in some window");
        best.print(&self.name);
        if let Some(reader) = reader {
            println!("    {}", reader.end(&datapath));
        }
    }

    fn switches(&self, datapath: &Datapath) -> Vec<Arc<Publisher>> {
        let mut publishers =
            vec![switch(datapath, 1, &[1, 2, 3, 4, 9], &(self.rules)(), &self.heard)];
        for hop in 2..2 + self.hops {
            let last = hop == 1 + self.hops;
            let on = cases::all(vec![cases::output(if last { 2 } else { 9 })]);
            publishers.push(switch(datapath, hop, &[1, 2, 9], &on, &[]));
            datapath.attach_vlink(at(hop - 1, 9), at(hop, 1)).unwrap();
        }
        publishers
    }
}

fn switch(
    datapath: &Datapath,
    switch: u32,
    ports: &[u32],
    rules: &[FlowMod],
    heard: &[(u64, u32)],
) -> Arc<Publisher> {
    let mut pipeline =
        Pipeline::new(Limits { switch, ..Limits::default() }, &flow::Serials::default());
    pipeline.set_ports(ports.iter().map(|&port| PortState::up(port)).collect());
    for rule in rules {
        pipeline.flow_mod(rule, Nanos(1)).unwrap();
    }
    for &(address, port) in heard {
        pipeline.mac_table().learn(0, address, port, MonotonicClock.now());
    }
    datapath.add_switch(SwitchId(switch), pipeline.snapshot())
}

fn at(switch: u32, port: u32) -> PortAt {
    PortAt { switch: SwitchId(switch), port }
}

fn queues(rx: Vec<Box<dyn RxQueue>>) -> Queues {
    Queues { rx, tx: vec![Box::new(Sink([0; LEN]))], mtu: 1500 }
}

/// Cycles per packet.
struct PerPacket {
    all: f64,
    rx: f64,
    pipeline: f64,
    tx: f64,
}

impl PerPacket {
    fn print(&self, name: &str) {
        let Self { all, rx, pipeline, tx } = self;
        let busy = rx + pipeline + tx;
        println!(
            "{name:<48} all {all:>6.1}   busy {busy:>6.1} = rx {rx:>5.1} + pipeline {pipeline:>6.1} + tx {tx:>5.1}"
        );
    }
}

/// One window; `None` if the worker hardly ran.
fn window(datapath: &Datapath) -> Option<PerPacket> {
    let (before, begin) = (datapath.worker_stats().remove(0), MonotonicClock.cycles());
    std::thread::sleep(WINDOW);
    let (after, end) = (datapath.worker_stats().remove(0), MonotonicClock.cycles());
    let frames = (after.frames - before.frames) as f64;
    if frames < 1000.0 {
        return None;
    }
    let per = |stage: fn(&StageCycles) -> u64| {
        (stage(&after.cycles) - stage(&before.cycles)) as f64 / frames
    };
    Some(PerPacket {
        all: (end - begin) as f64 / frames,
        rx: per(|c| c.rx),
        pipeline: per(|c| c.pipeline),
        tx: per(|c| c.tx),
    })
}

/// What the ports cost that every case's packets pass.
fn measure_ports() {
    let (mut source, mut sink) =
        (Source::new(ROUND, MILLION, cases::five_tuple).unwrap(), Sink([0; LEN]));
    let (mut batch, mut drops) = (RxBatch::default(), Drops::default());
    let mut best = [f64::INFINITY; 2];
    for _ in 0..10_000 {
        batch.clear();
        let times = [(); 2].map(|()| MonotonicClock.cycles());
        let empty = times[1] - times[0];
        let begin = MonotonicClock.cycles();
        source.rx(&mut batch, &mut drops).unwrap();
        let received = MonotonicClock.cycles();
        let frame =
            |slot: &'_ port::Slot| -> [u8; LEN] { *slot.head.bytes().first_chunk().unwrap() };
        let heads: Vec<[u8; LEN]> = batch.frames().iter().map(frame).collect();
        let frames: Vec<TxFrame<'_>> = heads
            .iter()
            .map(|head| TxFrame {
                head,
                body: port::Body::default(),
                offload: wire::Offload::default(),
                tunnel_id: 0,
                tun_dst: 0,
            })
            .collect();
        let filled = MonotonicClock.cycles();
        sink.tx(&frames, &mut drops);
        let sent = MonotonicClock.cycles();
        for (best, cycles) in best.iter_mut().zip([received - begin, sent - filled]) {
            *best = best.min(cycles.saturating_sub(empty) as f64 / ROUND as f64);
        }
    }
    println!("of which the ports in memory: rx {:.1}, tx {:.1}", best[0], best[1]);
}

fn main() {
    println!("cycles per received packet, 64 B, batches of {ROUND}, ports in memory");
    measure_ports();
    for batch in [64, 32, 8, 1] {
        Case { batch, ..Case::of(format!("in_port rule, batch {batch}"), || cases::in_port(1)) }
            .run(1000, cases::five_tuple);
    }
    for (flows, name) in [(1, "1"), (1000, "1k"), (MILLION, "1M")] {
        Case::of(format!("IP rule, {name} flows"), cases::ipv4).run(flows, cases::five_tuple);
    }
    Case { batch: 64, ..Case::of("IP rule, 1M flows, batch 64", cases::ipv4) }
        .run(MILLION, cases::five_tuple);
    for (rules, name) in [(1000, "1k"), (MILLION, "1M")] {
        Case::of(format!("{name} five-tuple rules"), move || cases::five_tuples(rules))
            .run(rules, cases::five_tuple);
    }
    let pairs = cases::STATIONS * cases::STATIONS;
    Case::of("1000 MAC rules, 1M flows", cases::stations).run(pairs, cases::between_stations);
    let apply = |actions: Vec<Action>| move || cases::all(actions.clone());
    let normal = apply(vec![Action::Output(Output::Normal)]);
    Case {
        heard: cases::heard().collect(),
        ..Case::of("NORMAL, 1000 + 1000 MACs, 1M flows", normal)
    }
    .run(pairs, cases::to_heard);
    for (hops, batch) in [(64, 32), (1, 32), (1, 64)] {
        let name = format!("10k prefixes, {hops} next hops, 1M flows, batch {batch}");
        Case { batch, ..Case::of(name, move || cases::routes(hops)) }.run(MILLION, cases::routed);
    }
    Case::of("506 masks, 1M flows", cases::leaving).run(MILLION, cases::left);
    let (two, edit) = (cases::output(2), cases::set(Field::EthSrc, 7));
    Case::of("set eth_src, output", apply(vec![edit, two])).run(1000, cases::five_tuple);
    let twice = vec![two, edit, cases::output(3)];
    Case::of("output, set eth_src, output (copy of the head)", apply(twice))
        .run(1000, cases::five_tuple);
    let flood = (2..=4).map(cases::output).collect();
    Case::of("flood to 3 ports", apply(flood)).run(1000, cases::five_tuple);
    Case::of("no vlink", apply(vec![two])).run(1000, cases::five_tuple);
    for hops in [1, 2, 4, 8] {
        let on = apply(vec![cases::output(9)]);
        Case { hops, ..Case::of(format!("{hops} vlinks"), on) }.run(1000, cases::five_tuple);
    }
    for batch in [32, 1] {
        for (share, filter) in seen::shares() {
            let name = format!("IP rule, batch {batch}, capture of {share}");
            Case { batch, seen: filter, ..Case::of(name, cases::ipv4) }.run(1000, seen::one_in_100);
        }
    }
}
