//! The agent with workers that are real and ports that are not.

use api::steer::{InterfaceSpec, PolicyKind, PolicyPatch, Unmatched};
use datapath::{
    Clock, Config, Datapath, MonotonicClock, PortAt, Queues, Steers, SwitchId, Workers,
};
use flow::{Action, FlowMod, Instructions, Limits, Nanos, Output, Pipeline, PortState};
use place::{Core, CoreId};
use port::testing::Memory;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use steer::{Agent, Strictness, Surroundings};
use wire::build::{Frame, Ipv4};

const SWITCH: SwitchId = SwitchId(3);

/// Two workers, on cores 0 and 1 of a host of four, and switch `s1` that sends what port 1 receives out of port 2.
struct Host {
    agent: Agent,
    datapath: Arc<Datapath>,
    line: Memory,
    heard: Receiver<Steers>,
    _pipeline: Pipeline,
}

impl Host {
    fn new() -> Self {
        let config = Config { cores: vec![0, 1], cache_entries: 1024, ..Config::default() };
        let datapath = Arc::new(Datapath::start(config).unwrap().0);
        let mut pipeline =
            Pipeline::new(Limits { switch: 3, ..Limits::default() }, &flow::Serials::default());
        pipeline.set_ports(vec![PortState::up(1), PortState::up(2)]);
        let apply = vec![Action::Output(Output::Port(2))];
        let instructions = Instructions { apply, ..Instructions::default() };
        pipeline.flow_mod(&FlowMod { instructions, ..FlowMod::default() }, Nanos(1)).unwrap();
        datapath.add_switch(SWITCH, pipeline.snapshot());
        let (line, out) = (Memory::new().unwrap(), Memory::new().unwrap());
        for (port, memory, rx) in [(1, &line, vec![line.rx()]), (2, &out, vec![])] {
            let queues = Queues { rx, tx: vec![memory.tx(), memory.tx()], mtu: 1500 };
            datapath.attach(PortAt { switch: SWITCH, port }, queues).unwrap();
        }
        let workers = Workers::default();
        let find = |name: &str| (name == "s1").then_some(SWITCH);
        let (told, heard) = channel();
        workers.serve(Arc::clone(&datapath), find, move |_, change| told.send(change).unwrap());
        let cores = (0..4).map(|id| Core::new(CoreId(id))).collect();
        let agent = Agent::new(workers, Surroundings { cores, ..Surroundings::default() });
        Self { agent, datapath, line, heard, _pipeline: pipeline }
    }

    fn attach(&mut self, unmatched: Unmatched) {
        let spec = InterfaceSpec { unmatched, ..InterfaceSpec::default() };
        let view = self.agent.attach("switch:s1", spec).unwrap();
        assert_eq!(view.name, "switch:s1");
        self.agent.tick(MonotonicClock.now().0);
    }

    /// Puts frames in, and waits until `counted` says that all were counted.
    fn pass(&mut self, ports: impl Iterator<Item = u16>, counted: impl Fn(&mut Agent) -> bool) {
        for port in ports {
            let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(port, 9);
            self.line.put(frame.payload(&[0; 20]).finish());
        }
        let begin = Instant::now();
        while !counted(&mut self.agent) {
            assert!(begin.elapsed() < Duration::from_secs(20));
            self.agent.tick(MonotonicClock.now().0);
            std::thread::yield_now();
        }
        self.agent.tick(MonotonicClock.now().0);
    }

    /// The core of the worker that receives port 1, and the other worker's.
    fn cores(&self) -> (u16, u16) {
        let at = PortAt { switch: SWITCH, port: 1 };
        let here = self.datapath.assignments(at).unwrap()[0].core as u16;
        (here, 1 - here)
    }
}

#[test]
fn the_same_rules_steer_a_switchs_flows_between_workers() {
    let mut host = Host::new();
    let (_, there) = host.cores();
    host.attach(Unmatched::Stay);
    let rule = format!("priority=7,udp,tp_src=1000,actions=place(core={there})");
    host.agent.add_rules(None, &[rule]).unwrap();
    let frames = |agent: &mut Agent| agent.flows(None, "").unwrap()[0].frames;
    host.pass((0..90).map(|flow| 1000 + flow % 3), |agent| frames(agent) == 30);
    let flow = &host.agent.flows(None, "").unwrap()[0];
    assert_eq!((flow.interface.as_deref(), flow.core), (Some("switch:s1"), Some(there)));
    let why = host.agent.why("udp,nw_src=10.0.0.1,tp_src=1000", None).unwrap();
    assert_eq!((why.core, why.frames), (Some(there), 30));
    assert!(why.rule.is_some() && why.decision.unwrap().reason.contains("names the core"));
    host.agent.del_rules(None, &["udp,tp_src=1000".into()], Strictness::Loose).unwrap();
    assert_eq!(host.heard.try_iter().collect::<Vec<_>>(), [Steers::Begins]);
    host.agent.detach("switch:s1").unwrap();
    assert_eq!(host.heard.try_iter().collect::<Vec<_>>(), [Steers::Ended]);
    assert!(host.agent.interface_names().is_empty());
}

#[test]
fn groups_are_placed_on_cores_with_workers_only_and_why_says_so() {
    let mut host = Host::new();
    host.attach(Unmatched::Place);
    // A unit's frames are counted when they are sent on their way, a core's when they have come to their end.
    let counted = |agent: &mut Agent| {
        let units: u64 = agent.unit_views().unwrap().iter().map(|unit| unit.frames).sum();
        let cores: u64 = agent.view().unwrap().cores.iter().map(|core| core.frames).sum();
        (units, cores) == (200, 200)
    };
    host.pass(0..200, counted);
    let units = host.agent.unit_views().unwrap();
    assert!(units.iter().all(|unit| unit.core.is_some_and(|core| core < 2)), "{units:?}");
    let why =
        host.agent.why("udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=5,tp_dst=9", None).unwrap();
    assert!(why.unit.unwrap().contains("flow group"));
    let view = host.agent.view().unwrap();
    assert!(view.cores.iter().all(|core| core.frames == 0 || core.core < 2));
    assert_eq!(view.cores.iter().map(|core| core.frames).sum::<u64>(), 200);
    let patch = PolicyPatch { policy: Some(PolicyKind::Hash), ..PolicyPatch::default() };
    host.agent.set_policy(&patch).unwrap();
}

#[test]
fn a_switch_that_is_not_there_is_refused_with_a_remedy() {
    let mut host = Host::new();
    let error = host.agent.attach("switch:s2", InterfaceSpec::default()).unwrap_err();
    assert!(error.cause().contains("no switch of that name"), "{}", error.cause());
    assert!(error.remedy().contains("suiro switch list"), "{}", error.remedy());
    assert!(host.heard.try_recv().is_err(), "nobody's flows come back for it");
}

#[test]
fn a_switch_that_went_and_came_back_is_steered_again() {
    let mut host = Host::new();
    host.attach(Unmatched::Place);
    host.datapath.remove_switch(SWITCH);
    let snapshot = host._pipeline.snapshot();
    host.datapath.add_switch(SWITCH, snapshot);
    let later = MonotonicClock.now().0 + 10_000_000_000;
    host.agent.tick(later);
    assert_eq!(host.agent.view().unwrap().interfaces[0].fault, None);
}
