//! Why packets go where they go, as the API asks.

use super::Node;
use super::directory::{Member, MemberPort};
use super::rules::{port_names, resolver};
use crate::offload;
use crate::refusal::{Refusal, Why};
use crate::why::{self, Beyond, Place, Places};
use ::offload::told_apart;
use api::steer::SWITCH_PREFIX;
use api::{FailMode, Fault, PortKind, WhyAnswer, WhyCost, WhyPlace, WhyQuestion, WhyWait};
use datapath::{Clock, MonotonicClock, PortAt, Way};
use flow::Asked;
use port::Outside;
use std::net::IpAddr;
use std::sync::Arc;
use wire::{Field, Key, eth_type, ip_proto};

impl Node {
    /// What would become of a packet that came in at a switch now. Nothing is sent, counted or learned; looks at rules for up to some tenths
    /// of a second.
    ///
    /// # Errors
    /// There is no such switch, the packet cannot be read, or its way depends on what was not said of it.
    pub async fn why(
        self: Arc<Self>,
        switch: &str,
        question: &WhyQuestion,
    ) -> Result<WhyAnswer, Refusal> {
        let member = self.member(switch)?;
        let invalid = |fault| Refusal::new(Why::Invalid, fault);
        let thing = format!("switch {switch}");
        let ends = self.ports.ends();
        let question = why::read(&thing, question, &resolver(&member), ends).map_err(invalid)?;
        if member.port(&question.in_port.to_string()).is_none() {
            let cause = format!("there is no port {}", question.in_port);
            let fault = Fault::new(thing, "read the packet", cause, "say a port: suiro port list");
            return Err(invalid(fault));
        }
        let at = member.at(question.in_port);
        let place = self.place_of(&member, at, &question.frame).await;
        let told = tokio::task::spawn_blocking(move || {
            let places = self.places();
            member.switch.publish();
            let way = self.datapath.why(at, question.frame.clone(), &places);
            let beyond = Around { node: &self, places: &places };
            why::tell(&way, (question, place), (&places, &beyond), self.ports.ends())
        });
        let ended = |error: tokio::task::JoinError| {
            let fault = Fault::new("node", "follow the packet", error.to_string(), "report it");
            Refusal::new(Why::Impossible, fault)
        };
        told.await.map_err(ended)?.map_err(invalid)
    }

    fn places(&self) -> Places {
        let all = self.directory.all();
        Places(all.iter().map(|member| (member.id, place(member))).collect())
    }

    /// Who processes a packet.
    async fn place_of(&self, member: &Member, at: PortAt, frame: &Asked) -> WhyPlace {
        let polls = self.datapath.assignments(at).unwrap_or_default();
        let mut workers: Vec<_> = polls.iter().map(|found| (found.core, found.worker)).collect();
        workers.sort_unstable();
        workers.dedup();
        let (rung, rung_why, remedy) = self.rung_of(member, at, frame).await;
        WhyPlace {
            steering: self.steering_of(member, frame).await,
            rung,
            rung_why,
            remedy,
            cost: self.cost_of(workers.iter().map(|&(_, worker)| worker)),
            cores: workers.into_iter().map(|(core, _)| core).collect(),
        }
    }

    /// The rung of a packet's flow, why, and what can be done about it.
    async fn rung_of(
        &self,
        member: &Member,
        at: PortAt,
        frame: &Asked,
    ) -> (String, String, Option<String>) {
        let on_worker = |why: String, remedy: &str| ("worker".into(), why, Some(remedy.into()));
        let apart = told_apart(&frame.key);
        let asked = (frame.key, apart.masked(&frame.known));
        let lines = self.offload.flows(Some(member.id), asked).await.unwrap_or_default();
        if let Some(line) = lines.first() {
            let (now, switch) = (MonotonicClock.now(), member.name());
            let shown = offload::shown(line, now, (&switch, self.ports.ends()), |_| None);
            let remedy = line.declined.as_ref().map(|declined| declined.remedy().to_owned());
            return (shown.rung, shown.why, remedy);
        }
        let is_on = self.offload.look().await.is_ok_and(|look| look.is_on);
        if !is_on {
            return on_worker("offload is off".into(), "let flows leave: suiro offload on");
        }
        match self.offload.why((at, frame.key.masked(&apart))).await {
            Ok((_, Err(declined))) => on_worker(declined.to_string(), declined.remedy()),
            Ok((_, Ok((rung, _)))) => on_worker(
                format!("no frame of its flow was seen lately; rung {rung} would take it"),
                "see suiro offload flows once it sends",
            ),
            Err(fault) => on_worker(fault.cause, &fault.remedy),
        }
    }

    /// What steering says of a packet, if its switch is steered.
    async fn steering_of(&self, member: &Member, frame: &Asked) -> Option<String> {
        let name = format!("{SWITCH_PREFIX}{}", member.name());
        let steered = self.steer.ask(|agent| Ok(agent.interface_names())).await.ok()?;
        if !steered.contains(&name) {
            return None;
        }
        if let Some(open) = spread_by(&frame.key, &frame.known) {
            return Some(format!("its core depends on {}", why::name(open)));
        }
        let flow = offload::words(&frame.key, self.ports.ends());
        let told = match self.steer_why(Some(name), flow).await {
            Ok(told) => told,
            Err(refusal) => return Some(refusal.fault.cause),
        };
        let unit = told.unit.unwrap_or_else(|| "no unit".into());
        let (Some(core), Some(decision)) = (told.core, told.decision) else {
            return Some(format!("{unit}: none of its frames came yet, and no core is chosen"));
        };
        Some(format!("{unit} on core {core}: {}", decision.reason))
    }

    /// What frames have cost these workers.
    fn cost_of(&self, workers: impl Iterator<Item = usize>) -> Option<WhyCost> {
        let stats = self.datapath.worker_stats();
        let of: Vec<_> = workers.filter_map(|worker| stats.get(worker)).collect();
        let frames: u64 = of.iter().map(|stats| stats.frames + stats.taken_over).sum();
        if frames == 0 {
            return None;
        }
        let each = |cycles: fn(&datapath::StageCycles) -> u64| {
            of.iter().map(|stats| cycles(&stats.cycles)).sum::<u64>() / frames
        };
        let [cycles_rx, cycles_pipeline, cycles_tx] =
            [each(|stage| stage.rx), each(|stage| stage.pipeline), each(|stage| stage.tx)];
        let per_s = of[0].cycles_per_s.max(1);
        let ns = (cycles_rx + cycles_pipeline + cycles_tx) * 1_000_000_000 / per_s;
        Some(WhyCost { frames, cycles_rx, cycles_pipeline, cycles_tx, ns })
    }
}

/// A field that is not known and that spreads flows over cores.
fn spread_by(key: &Key, known: &Key) -> Option<Field> {
    let addresses = match key.get(Field::EthType) as u16 {
        eth_type::IPV4 => [Field::Ipv4Src, Field::Ipv4Dst],
        eth_type::IPV6 => [Field::Ipv6Src, Field::Ipv6Dst],
        _ => return None,
    };
    let has_ports =
        matches!(key.get(Field::IpProto) as u8, ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP);
    let ports = [Field::TpSrc, Field::TpDst].into_iter().filter(|_| has_ports);
    let mut all = [Field::IpProto].into_iter().chain(addresses).chain(ports);
    all.find(|&field| known.get(field) != field.full())
}

/// The node around the switches.
struct Around<'n> {
    node: &'n Node,
    places: &'n Places,
}

impl Around<'_> {
    fn port(&self, at: PortAt) -> Option<MemberPort> {
        let member = self.node.directory.by_id(at.switch)?;
        let state = member.state();
        state.ports.values().find(|port| port.number == at.port).cloned()
    }
}

impl Beyond for Around<'_> {
    fn wait(&self, at: PortAt, queue: u32) -> Option<WhyWait> {
        let spec = self.port(at)?.spec;
        let queues = self.node.view_port_queues(at, &spec);
        let found = queues.iter().find(|view| view.id == queue);
        // Frames of a queue that is not there wait in queue 0.
        let found = found.or_else(|| queues.iter().find(|view| view.id == 0));
        let is_held = spec.rate.is_some() || !queues.is_empty();
        is_held.then(|| WhyWait {
            rate: spec.rate,
            min_rate: found.and_then(|view| view.min_rate),
            max_rate: found.and_then(|view| view.max_rate),
            waiting: found.map_or(0, |view| view.waiting),
        })
    }

    fn outside(&self, at: PortAt, end: Option<IpAddr>) -> Option<Outside> {
        self.node.ports.outside(at, end)
    }

    fn entrance(&self, tunnel: PortAt, outside: &Outside) -> Option<PortAt> {
        let hop = outside.hop.as_ref().ok()?;
        let netns = self.port(tunnel)?.spec.netns().cloned();
        let is_it = |member: &Member, port: &MemberPort| {
            let facts = self.node.ports.status(member.at(port.number)).unwrap_or_default().facts;
            port.spec.kind.kind() == PortKind::Tap
                && port.spec.netns() == netns.as_ref()
                && facts.index == hop.interface
        };
        self.node.directory.all().iter().find_map(|member| {
            let ports: Vec<_> = member.state().ports.values().cloned().collect();
            let port = ports.iter().find(|port| is_it(member, port))?;
            Some(member.at(port.number))
        })
    }

    fn follow(&self, at: PortAt, frame: Asked) -> Way {
        self.node.datapath.why(at, frame, self.places)
    }
}

fn place(member: &Member) -> Place {
    let mode = match member.state().spec.fail_mode {
        FailMode::Secure => "secure",
        FailMode::Standalone => "standalone",
    };
    let controllers = member.switch.connections().len();
    let connected = match controllers {
        0 => "no controller is connected".to_owned(),
        1 => "a controller is connected".to_owned(),
        many => format!("{many} controllers are connected"),
    };
    Place {
        name: member.name().to_string(),
        ports: port_names(member),
        switch: member.switch.clone(),
        control: format!("fail mode {mode}, {connected}"),
    }
}
