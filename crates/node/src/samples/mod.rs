//! # Samples: what collectors of sFlow and IPFIX are told
//!
//! **Question answered**: how does a collector get a true picture of the traffic from what workers note anyway?
//!
//! Each worker notes one passed frame in 32, with the rung that took it (crate `datapath`, "flight"), and counts all frames. [`Samples`] looks ten times a
//! second: a `Chooser` for each worker says which of the new notes go out, and how many frames each of them stands for.
//! So workers do nothing more than they did.
//!
//! ## Invariants
//!
//! * All weights together are the frames that workers received. At high rates fewer are noted than one in 32, and each stands for more.
//! * A collector that is slow or away costs a datagram: nothing waits for it, nothing is sent again.
//! * Memory is bounded: a look's notes, and a bounded number of flows for each switch.
//!
//! Frames past the workers are not among the samples: rungs of the kernel note none. They count each, so IPFIX has their flows as they were counted.

mod chooser;
mod past;
mod socket;

use crate::captures::real_time;
use crate::config::SamplesSpec;
use crate::service::Node;
use api::{DropView, PortView};
use capture::samples::ipfix::{Domain, Flow};
use capture::samples::sflow::{Counters, Direction, SubAgent};
use capture::samples::{Place, Sample};
use chooser::Chooser;
use datapath::{Captured, Clock, MonotonicClock, Rung};
use flow::Nanos;
use past::{More, Past};
use socket::{Collector, agent_address};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Between two looks at the notes. Chosen: a worker's memory reaches 200 ms back when it notes as much as it may.
const LOOK: Duration = Duration::from_millis(100);

/// The core of what no worker had.
const NO_WORKER: u32 = u32::MAX;

/// What collectors know of a switch.
struct Told {
    sflow: SubAgent,
    ipfix: Domain,
    /// Frames that each port has received, as of the last telling.
    pools: HashMap<u32, u64>,
}

/// Who tells.
struct Samples {
    spec: SamplesSpec,
    node: Arc<Node>,
    began: Instant,
    agent: IpAddr,
    /// By worker: what goes out of its notes, and from when on they are new.
    workers: Vec<(Chooser, Nanos)>,
    /// By datapath id.
    switches: BTreeMap<u64, Told>,
    past: Past,
    sflow: Option<Collector>,
    ipfix: Option<Collector>,
}

/// Tells collectors until `ended` says so.
pub async fn serve(spec: SamplesSpec, node: Arc<Node>, mut ended: watch::Receiver<()>) {
    let interval = spec.interval;
    let mut samples = Samples::new(spec, node);
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = Instant::now();
    samples.tell().await;
    loop {
        tokio::select! {
            _ = looks.tick() => samples.look(),
            _ = ended.changed() => break,
        }
        if told.elapsed() >= interval {
            told = Instant::now();
            samples.tell().await;
        }
    }
    samples.look();
    samples.tell().await;
}

impl Samples {
    fn new(spec: SamplesSpec, node: Arc<Node>) -> Self {
        let agent = spec.agent.or_else(|| spec.sflow.and_then(agent_address));
        let agent = agent.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let workers = node.cores().iter().map(|_| (Chooser::new(spec.every), Nanos(0))).collect();
        let sflow = spec.sflow.map(|to| Collector::new("sFlow", to));
        let ipfix = spec.ipfix.map(|to| Collector::new("IPFIX", to));
        let (began, switches, past) = (Instant::now(), BTreeMap::new(), Past::default());
        Self { spec, node, began, agent, workers, switches, past, sflow, ipfix }
    }

    /// Takes what was noted since the last look. sFlow's frames go out at once.
    fn look(&mut self) {
        let offset = real_time().saturating_sub(MonotonicClock.now().0);
        for worker in 0..self.workers.len() {
            let (chooser, since) = &mut self.workers[worker];
            let notes = self.node.passed(worker, *since);
            if let Some(last) = notes.last() {
                *since = Nanos(last.seen().at.0 + 1);
            }
            for chosen in chooser.choose(self.node.received(worker), notes.len()) {
                self.take(&notes[chosen.note].seen(), chosen.weight, offset);
            }
        }
        let uptime = self.uptime_ms();
        for told in self.switches.values_mut() {
            send(&mut self.sflow, told.sflow.finish(uptime));
        }
    }

    fn take(&mut self, seen: &Captured<'_>, weight: u32, offset: u64) {
        // Frames that no rung read have no bytes to show; a switch that has gone has no number.
        let Some(datapath_id) = self.node.sampled_id(seen.port.switch) else { return };
        if seen.bytes.is_empty() {
            return;
        }
        let core = self.node.cores().get(seen.worker).map_or(0, |&core| core as u32);
        let rung = seen.rung.map_or("", Rung::name);
        let (port, bytes, len) = (seen.port.port, seen.bytes, seen.len);
        let (at_ns, place) = (seen.at.0 + offset, Place { core, rung });
        let sample = Sample { at_ns, port, len, bytes, weight, place };
        let (uptime, wants_flows) = (self.uptime_ms(), self.ipfix.is_some());
        let told = self.told(datapath_id);
        let pool = told.pools.entry(port).or_default();
        *pool += u64::from(weight);
        let full = told.sflow.frame(&sample, *pool, uptime);
        // One flow too many is left out.
        let _ = wants_flows && told.ipfix.frame(&sample);
        send(&mut self.sflow, full);
    }

    fn told(&mut self, datapath_id: u64) -> &mut Told {
        let (agent, enterprise) = (self.agent, self.spec.enterprise);
        // Both know a switch by 32 bits: the last ones, which are the node's own count or the operator's choice.
        let number = datapath_id as u32;
        self.switches.entry(datapath_id).or_insert_with(|| Told {
            sflow: SubAgent::new(agent, number, enterprise),
            ipfix: Domain::new(number, enterprise),
            pools: HashMap::new(),
        })
    }

    /// Adds what rungs of the kernel have counted to their flows.
    async fn count_past(&mut self) {
        if self.ipfix.is_none() {
            return;
        }
        let lines = self.node.flows_past().await;
        let now = MonotonicClock.now();
        let offset = real_time().saturating_sub(now.0);
        for More { name: (at, key), rung, frames, bytes, times } in self.past.more(&lines, now) {
            let Some(datapath_id) = self.node.sampled_id(at.switch) else { continue };
            let (port, place) = (at.port, Place { core: NO_WORKER, rung });
            let times_ns = (times.0.0 + offset, times.1.0 + offset);
            let flow = Flow { port, key: &key, place, packets: frames, octets: bytes, times_ns };
            // One flow too many is left out.
            let _ = self.told(datapath_id).ipfix.flow(&flow);
        }
    }

    /// Tells flows, and what ports have counted.
    async fn tell(&mut self) {
        self.count_past().await;
        let (uptime, now_s) = (self.uptime_ms(), (real_time() / 1_000_000_000) as u32);
        let ports = self.node.sampled_ports();
        let is_there = |id: &u64| ports.iter().any(|(datapath_id, _)| datapath_id == id);
        self.switches.retain(|id, _| is_there(id));
        for (datapath_id, port) in &ports {
            let told = self.told(*datapath_id);
            told.pools.insert(port.number, port.counters.rx_frames);
            let full = told.sflow.counters(&counters(*datapath_id, port), uptime);
            send(&mut self.sflow, full);
        }
        for told in self.switches.values_mut() {
            send(&mut self.sflow, told.sflow.finish(uptime));
            send(&mut self.ipfix, [told.ipfix.templates(now_s)]);
            send(&mut self.ipfix, told.ipfix.finish(now_s));
        }
    }

    fn uptime_ms(&self) -> u32 {
        self.began.elapsed().as_millis() as u32
    }
}

fn send(to: &mut Option<Collector>, datagrams: impl IntoIterator<Item = Vec<u8>>) {
    if let Some(collector) = to {
        datagrams.into_iter().for_each(|datagram| collector.send(&datagram));
    }
}

fn counters(datapath_id: u64, port: &PortView) -> Counters {
    let counted = &port.counters;
    let lost = |drops: &[DropView]| drops.iter().map(|drop| drop.frames).sum();
    let direction =
        |bytes, frames, drops: &[_]| Direction { bytes, frames, discards: lost(drops), errors: 0 };
    Counters {
        datapath_id,
        port: port.number,
        name: format!("{}:{}", port.switch, port.name),
        speed: u64::from(port.speed_mbps) * 1_000_000,
        is_up: port.admin_up && port.up,
        directions: [
            direction(counted.rx_bytes, counted.rx_frames, &counted.rx_drops),
            direction(counted.tx_bytes, counted.tx_frames, &counted.tx_drops),
        ],
    }
}
