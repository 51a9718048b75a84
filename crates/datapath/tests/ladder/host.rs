//! A datapath of one worker that goes through cases with one set of rungs.

use crate::case::{Batch, Case, LINES, Switch, TUNNEL, VLINK};
use crate::line::{Line, Tunnelled, Wired};
use crate::ring::Rings;
use crate::tap::{Loss, Seen};
use datapath::{
    BitRate, Clock, Config, Datapath, Event, Events, PortAt, PortCounters, PortQueues, Publisher,
    Punt, QueueRates, Rung, Rungs, SwitchCounters, SwitchId,
};
use flow::{FlowFilter, FlowMod, Limits, MacEntry, Nanos, Pipeline, PortNo, Serials};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vhost::Features;

/// A moment that lasts: what depends on time is the same for all.
struct Still;

const NOW: Nanos = Nanos(1_000_000_000);

impl Clock for Still {
    fn now(&self) -> Nanos {
        NOW
    }

    fn cycles(&self) -> u64 {
        NOW.0
    }
}

/// All that can be seen of a case from outside.
#[derive(Default)]
pub struct Outcome {
    /// Frames by port, in the order in which they left, and what tunnels were told of them.
    pub sent: BTreeMap<PortAt, (Vec<Wired>, Vec<Tunnelled>)>,
    pub losses: Vec<Loss>,
    pub ports: Vec<Option<PortCounters>>,
    /// Number, frames, bytes and errors of each queue.
    pub queues: Vec<(PortAt, u32, u64, u64, u64)>,
    pub switches: Vec<SwitchCounters>,
    /// Table, priority, packets and bytes of each entry, in the order of their matches.
    pub entries: Vec<(u8, String, u64, u64)>,
    /// Lookups and matches.
    pub tables: Vec<(u64, u64)>,
    pub groups: Vec<String>,
    pub meters: Vec<String>,
    pub macs: Vec<(u16, u64, PortNo)>,
    pub punts: Vec<Punt>,
}

/// The datapath.
pub struct Host {
    rungs: Rungs,
    datapath: Datapath,
    events: Events,
    seen: Seen,
    serials: Serials,
    /// Split and packed.
    rings: [Rings; 2],
}

/// A switch of a case.
struct Member {
    pipeline: Pipeline,
    publisher: Arc<Publisher>,
    lines: Vec<(PortNo, Line)>,
}

impl Host {
    pub fn new(rungs: Rungs) -> Self {
        let seen = Seen::default();
        let config = Config {
            spin: Duration::ZERO,
            cache_entries: 4096,
            rungs,
            tap: seen.tap(),
            ..Config::default()
        };
        let (datapath, events) = Datapath::start_with(config, Still).unwrap();
        let rings = [Features::default(), Features::RING_PACKED].map(Rings::new);
        Self { rungs, datapath, events, seen, serials: Serials::default(), rings }
    }

    /// The names of its rungs.
    pub fn name(&self) -> String {
        self.rungs.iter().map(Rung::name).collect::<Vec<_>>().join(" ")
    }

    /// Frames by rung.
    pub fn taken(&self) -> [u64; 5] {
        self.datapath.worker_stats()[0].rungs.map(|rung| rung.frames)
    }

    /// Frames that went unread from ring to ring, by rungs `port` and `pattern`.
    pub fn unread(&self) -> [u64; 2] {
        let [split, packed] = self.rings.each_ref().map(Rings::taken);
        [split[0] + packed[0], split[1] + packed[1]]
    }

    /// The same, for people.
    pub fn summary(&self) -> String {
        let taken = Rung::ALL.into_iter().zip(self.taken());
        taken.map(|(rung, frames)| format!("{rung} {frames}")).collect::<Vec<_>>().join(", ")
    }

    /// Goes through a case with new switches, and takes them down.
    pub fn run(&self, case: &Case) -> Outcome {
        let mut members = self.bring_up(case);
        for (at, batch) in case.batches.iter().enumerate() {
            send(&members[batch.switch as usize], batch);
            if at == case.late.0 {
                members.iter_mut().for_each(|member| member.change(&case.late.1));
                self.datapath.barrier();
            }
        }
        let outcome = self.look(&mut members, case);
        (0..2).for_each(|switch| self.datapath.remove_switch(SwitchId(switch)));
        outcome
    }

    fn bring_up(&self, case: &Case) -> Vec<Member> {
        let bring_up = |(id, switch): (u32, &Switch)| {
            // What workers found not worth trying at one case's switches they try at the next one's.
            let name = 2 * case.seed as u32 + id;
            let limits = Limits { switch: name, ..Limits::default() };
            let mut pipeline = Pipeline::new(limits, &self.serials);
            pipeline.set_config(switch.config);
            pipeline.set_ports(switch.ports.clone());
            switch.groups.iter().for_each(|group| drop(pipeline.group_mod(group.clone(), NOW)));
            switch.meters.iter().for_each(|meter| drop(pipeline.meter_mod(meter.clone(), NOW)));
            let publisher = self.datapath.add_switch(SwitchId(id), pipeline.snapshot());
            let attach = |port| {
                let line = if port == TUNNEL { Line::tunnel() } else { Line::new() };
                let queues = match case.rings {
                    Some(kind) if port != TUNNEL => self.rings[kind].before(line.queues(1)),
                    _ => line.queues(1),
                };
                self.datapath.attach(at(id, port), queues).unwrap();
                (port, line)
            };
            let lines = LINES.map(attach).into();
            let mut member = Member { pipeline, publisher, lines };
            member.change(&switch.rules);
            member
        };
        let members = (0..).zip(&case.switches).map(bring_up).collect();
        self.datapath.attach_vlink(at(0, VLINK), at(1, VLINK)).unwrap();
        for (id, switch) in (0..).zip(&case.switches) {
            switch.down.iter().for_each(|&port| assert!(self.datapath.set_up(at(id, port), false)));
            switch
                .mtu
                .iter()
                .for_each(|&(port, mtu)| assert!(self.datapath.set_mtu(at(id, port), mtu)));
            if let Some(port) = switch.shaped {
                self.datapath.set_queues(at(id, port), &slow()).unwrap();
            }
        }
        self.datapath.barrier();
        members
    }

    fn look(&self, members: &mut [Member], case: &Case) -> Outcome {
        let mut outcome = Outcome::default();
        for (id, member) in (0..).zip(&mut *members) {
            for queue in case.switches[id as usize].shaped.into_iter().flat_map(|port| {
                self.datapath
                    .queue_counters(at(id, port))
                    .into_iter()
                    .map(move |queue| (port, queue))
            }) {
                let (port, queue) = queue;
                let (frames, bytes, errors) = (queue.tx_frames, queue.tx_bytes, queue.tx_errors);
                outcome.queues.push((at(id, port), queue.id, frames, bytes, errors));
            }
            // What waits leaves.
            if let Some(port) = case.switches[id as usize].shaped {
                self.datapath.set_queues(at(id, port), &PortQueues::default()).unwrap();
            }
            for (port, line) in &member.lines {
                let tunnels = if *port == TUNNEL { line.take_tunnels() } else { Vec::new() };
                outcome.sent.insert(at(id, *port), (line.take(), tunnels));
            }
            let ports = LINES.into_iter().chain([VLINK]);
            outcome.ports.extend(ports.map(|port| self.datapath.port_counters(at(id, port))));
            outcome.switches.push(self.datapath.switch_counters(SwitchId(id)).unwrap());
            member.look(&mut outcome);
        }
        outcome.losses = self.seen.take();
        self.events.acknowledge();
        while let Some(event) = self.events.pop() {
            let Event::PacketIn(punt) = event else { panic!("{event:?}") };
            outcome.punts.push(punt);
        }
        outcome
    }
}

impl Member {
    /// Makes those of the changes that the tables accept.
    fn change(&mut self, changes: &[FlowMod]) {
        changes.iter().for_each(|change| drop(self.pipeline.flow_mod(change, NOW)));
        self.publisher.publish(self.pipeline.snapshot());
    }

    fn look(&self, outcome: &mut Outcome) {
        let entry = |stats: flow::FlowStats| {
            let found = format!("{} {:?} {:?}", stats.priority, stats.key.0, stats.mask.0);
            (stats.table, found, stats.packets, stats.bytes)
        };
        let filter = FlowFilter::default();
        let mut entries: Vec<_> = self.pipeline.flows(&filter, NOW).map(entry).collect();
        entries.sort();
        outcome.entries.extend(entries);
        let tables = (0..2).map(|table| self.pipeline.table_stats(table));
        outcome.tables.extend(tables.map(|table| (table.lookups, table.matches)));
        let groups = self.pipeline.groups().stats(None, NOW);
        outcome.groups.extend(groups.iter().map(|group| format!("{group:?}")));
        let meters = self.pipeline.meters().stats(None, NOW);
        outcome.meters.extend(meters.iter().map(|meter| format!("{meter:?}")));
        let learned = |entry: MacEntry| (entry.vlan, entry.mac, entry.port);
        let mut macs: Vec<_> =
            self.pipeline.mac_table().dump(NOW).into_iter().map(learned).collect();
        macs.sort_unstable();
        outcome.macs.extend(macs);
    }
}

fn at(switch: u32, port: PortNo) -> PortAt {
    PortAt { switch: SwitchId(switch), port }
}

/// Queues that let a burst leave, hold some and drop the rest.
fn slow() -> PortQueues {
    let queue = QueueRates { id: 7, min: None, max: BitRate::new(1_000_000) };
    PortQueues { rate: BitRate::new(4_000_000), queues: vec![queue] }
}

/// Sends a batch, and waits until the switch is done with it.
fn send(member: &Member, batch: &Batch) {
    let (_, line) = member.lines.iter().find(|(port, _)| *port == batch.port).unwrap();
    let frames = batch.frames.iter().map(|arriving| arriving.frame.clone());
    match batch.port {
        TUNNEL => line.put_all_by(batch.frames.iter().map(|one| one.tunnel_id).zip(frames)),
        _ => line.put(frames),
    }
    line.settle();
}
