//! A datapath with switches whose ports are lines in memory.

use crate::line::Line;
use datapath::{
    Clock, Config, Datapath, Event, Events, MonotonicClock, PortAt, Publisher, SwitchId,
};
use flow::{
    Action, FlowMod, Instructions, Limits, Miss, Nanos, Output, Pipeline, PortNo, PortState,
    Serials, SwitchConfig,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::build::{Frame, Ipv4};
use wire::{DropReason, Field, Key};

/// One rule: priority, what it matches, what it does.
pub type Rule = (u16, Vec<(Field, u128)>, Vec<Action>);

/// A datapath under test.
pub struct Rig {
    pub datapath: Datapath,
    pub events: Events,
    pub workers: usize,
    lines: BTreeMap<PortAt, Line>,
    switches: BTreeMap<u32, Switch>,
    serials: Serials,
}

struct Switch {
    pipeline: Pipeline,
    publisher: Arc<Publisher>,
    ports: Vec<PortNo>,
}

/// `at(1, 2)`: port 2 of switch 1.
pub fn at(switch: u32, port: PortNo) -> PortAt {
    PortAt { switch: SwitchId(switch), port }
}

pub fn output(port: PortNo) -> Action {
    Action::Output(Output::Port(port))
}

pub fn controller(max_len: u16) -> Action {
    Action::Output(Output::Controller { max_len })
}

pub fn set(field: Field, value: u128) -> Action {
    Action::SetField { field, of: None, value, mask: field.full() }
}

/// Frames that come in at `port` undergo `actions`.
pub fn from(port: PortNo, actions: Vec<Action>) -> Rule {
    (10, vec![(Field::InPort, port.into())], actions)
}

/// A UDP frame; `flow` tells flows apart, `payload` is its last byte, repeated.
pub fn udp(flow: u16, payload: u8, len: usize) -> Vec<u8> {
    Frame::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
        .ipv4(Ipv4::default())
        .udp(1000 + flow, 2000)
        .payload(&vec![payload; len])
        .finish()
}

impl Rig {
    /// Workers on the first `workers` cores.
    pub fn new(workers: usize) -> Self {
        Self::with(Config {
            cores: (0..workers).collect(),
            cache_entries: 4096,
            ..Config::default()
        })
    }

    pub fn with(config: Config) -> Self {
        Self::with_clock(config, MonotonicClock)
    }

    pub fn with_clock(config: Config, clock: impl Clock) -> Self {
        let workers = config.cores.len();
        let (datapath, events) = Datapath::start_with(config, clock).unwrap();
        Self {
            datapath,
            events,
            workers,
            lines: BTreeMap::new(),
            switches: BTreeMap::new(),
            serials: Serials::default(),
        }
    }

    /// A switch with these ports in memory.
    pub fn switch(&mut self, switch: u32, ports: &[PortNo], rules: &[Rule]) {
        let mut pipeline = Pipeline::new(Limits { switch, ..Limits::default() }, &self.serials);
        pipeline.set_config(SwitchConfig { miss: Miss::Drop, ..SwitchConfig::default() });
        let publisher = self.datapath.add_switch(SwitchId(switch), pipeline.snapshot());
        self.switches.insert(switch, Switch { pipeline, publisher, ports: Vec::new() });
        for &port in ports {
            let line = Line::new();
            self.datapath.attach(at(switch, port), line.queues(self.workers)).unwrap();
            self.lines.insert(at(switch, port), line);
            self.know(at(switch, port));
        }
        self.rules(switch, rules);
    }

    /// A vlink between two switches.
    pub fn vlink(&mut self, one: PortAt, other: PortAt) {
        self.datapath.attach_vlink(one, other).unwrap();
        self.know(one);
        self.know(other);
    }

    /// Adds rules.
    pub fn rules(&mut self, switch: u32, rules: &[Rule]) {
        let switch = self.switches.get_mut(&switch).unwrap();
        for (priority, fields, actions) in rules {
            let (mut key, mut mask) = (Key::default(), Key::default());
            for &(field, value) in fields {
                key.set(field, value);
                mask.set(field, field.full());
            }
            let instructions = Instructions { apply: actions.clone(), ..Instructions::default() };
            let change =
                FlowMod { key, mask, priority: *priority, instructions, ..FlowMod::default() };
            switch.pipeline.flow_mod(&change, Nanos(1)).unwrap();
        }
        switch.publisher.publish(switch.pipeline.snapshot());
    }

    /// What happens without a matching rule.
    pub fn on_miss(&mut self, switch: u32, miss: Miss) {
        let switch = self.switches.get_mut(&switch).unwrap();
        switch.pipeline.set_config(SwitchConfig { miss, ..SwitchConfig::default() });
        switch.publisher.publish(switch.pipeline.snapshot());
    }

    /// Makes a switch a bridge, floods of whose ports may cause so many copies a second.
    pub fn bridge(&mut self, switch: u32, flood_copies_per_s: u32) {
        let flood_copies_per_s = Some(flood_copies_per_s);
        let config =
            SwitchConfig { miss: Miss::Normal, flood_copies_per_s, ..SwitchConfig::default() };
        self.pipeline(switch, |tables| tables.set_config(config));
    }

    /// Does something with a switch's tables, and publishes what came of it.
    pub fn pipeline<T>(&mut self, switch: u32, work: impl FnOnce(&mut Pipeline) -> T) -> T {
        let switch = self.switches.get_mut(&switch).unwrap();
        let done = work(&mut switch.pipeline);
        switch.publisher.publish(switch.pipeline.snapshot());
        done
    }

    /// The tables as they are now.
    pub fn tables(&mut self, switch: u32) -> Arc<flow::Snapshot> {
        self.switches.get_mut(&switch).unwrap().pipeline.snapshot()
    }

    pub fn publisher(&self, switch: u32) -> &Publisher {
        &self.switches[&switch].publisher
    }

    pub fn line(&self, switch: u32, port: PortNo) -> &Line {
        &self.lines[&at(switch, port)]
    }

    /// Tells the pipeline that the test brings these ports itself.
    pub fn ports(&mut self, switch: u32, ports: &[PortNo]) {
        ports.iter().for_each(|&port| self.know(at(switch, port)));
    }

    /// Adds a port whose frames have tunnel ids.
    pub fn tunnel(&mut self, switch: u32, port: PortNo) {
        let line = Line::tunnel();
        self.datapath.attach(at(switch, port), line.queues(self.workers)).unwrap();
        self.lines.insert(at(switch, port), line);
        self.know(at(switch, port));
    }

    /// Tells the pipeline that a port is there.
    fn know(&mut self, at: PortAt) {
        let switch = self.switches.get_mut(&at.switch.0).unwrap();
        switch.ports.push(at.port);
        switch.pipeline.set_ports(switch.ports.iter().map(|&port| PortState::up(port)).collect());
        switch.publisher.publish(switch.pipeline.snapshot());
    }

    /// Makes a port drop what it receives (`OFPPC_NO_RECV`).
    pub fn set_no_recv(&mut self, at: PortAt) {
        let switch = self.switches.get_mut(&at.switch.0).unwrap();
        let state = |&port: &PortNo| PortState { no_recv: port == at.port, ..PortState::up(port) };
        switch.pipeline.set_ports(switch.ports.iter().map(state).collect());
        switch.publisher.publish(switch.pipeline.snapshot());
    }

    /// The next event, waited for.
    pub fn event(&self) -> Event {
        loop {
            self.events.acknowledge();
            if let Some(event) = self.events.pop() {
                return event;
            }
            let patience = Timespec { tv_sec: 20, tv_nsec: 0 };
            let ready =
                poll(&mut [PollFd::new(&self.events, PollFlags::IN)], Some(&patience)).unwrap();
            assert!(ready > 0, "no event came");
        }
    }

    /// Waits until each worker has nothing more to do: none sleeps while frames go on from pass to pass.
    pub fn quiet(&self) {
        let sleeps =
            || self.datapath.worker_stats().iter().map(|worker| worker.sleeps).collect::<Vec<_>>();
        let (before, begin) = (sleeps(), std::time::Instant::now());
        self.datapath.barrier();
        while sleeps().iter().zip(&before).any(|(now, before)| now == before) {
            assert!(begin.elapsed().as_secs() < 20, "{:?}", self.datapath.worker_stats());
            std::thread::yield_now();
        }
    }

    /// A switch's drops of one reason.
    pub fn drops(&self, switch: u32, reason: DropReason) -> u64 {
        let counters = self.datapath.switch_counters(SwitchId(switch)).unwrap();
        counters.drops.iter().filter(|(other, _)| *other == reason).map(|&(_, count)| count).sum()
    }

    /// Frames received and sent by a port.
    pub fn traffic(&self, switch: u32, port: PortNo) -> (u64, u64) {
        let counters = self.datapath.port_counters(at(switch, port)).unwrap();
        (counters.rx_frames, counters.tx_frames)
    }
}
