//! `suiro bench latency`: round trips from a switch that may sleep, beside a Linux bridge, the kernel's vxlan, and Open vSwitch, which polls.
//!
//! Two guests on the generators' core, the switch on its own. `ping` each 100, 10 and 2 ms and as a flood; requests by UDP and TCP of 1, 8 and 64 clients, each of which
//! waits for its answer. Machines on vhost-user ports have no network stack: they send a frame there and back. Processor time is what the switch's processes took meanwhile, in percent of a core; a bridge has none of its own.

mod machines;

use super::Common;
use super::cases::{BRIDGE, ovs, suiro};
use crate::report::{Peer, Report, Row, Spread};
use anyhow::{Context, Result, ensure};
use machines::Machines;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::machine::placement_class;
use testbed::netns::{Guest, run as command};
use testbed::peer::tunnel::{Joined, Tunnelled, Underlay, Wire};
use testbed::peer::vhost::Kind;
use testbed::peer::{Attach, Contend, Contender, Running};
use testbed::process::Process;
use testbed::traffic::request::{self, Answers, Pace};

const ASKED: Duration = Duration::from_millis(1500);

/// What guests do.
#[derive(Clone, Copy)]
enum Load {
    Ping(Pace, u32),
    Udp(u16),
    Tcp(u16),
}

const LOADS: [(&str, Load); 10] = [
    ("ping each 100 ms", Load::Ping(Pace::Each(Duration::from_millis(100)), 40)),
    ("ping each 10 ms", Load::Ping(Pace::Each(Duration::from_millis(10)), 200)),
    ("ping each 2 ms", Load::Ping(Pace::Each(Duration::from_millis(2)), 1000)),
    ("ping flood", Load::Ping(Pace::Flood, 20_000)),
    ("UDP requests, 1 client", Load::Udp(1)),
    ("UDP requests, 8 clients", Load::Udp(8)),
    ("UDP requests, 64 clients", Load::Udp(64)),
    ("TCP requests, 1 client", Load::Tcp(1)),
    ("TCP requests, 8 clients", Load::Tcp(8)),
    ("TCP requests, 64 clients", Load::Tcp(64)),
];

/// Who joins the guests.
#[derive(Clone, Copy)]
enum Way {
    Direct(Contender),
    /// suiro, with a second switch between them.
    Hop,
    Tunnel(Tunnelled),
    /// Machines on vhost-user ports.
    Machines(Kind),
}

enum Started {
    Direct(Running),
    Tunnel(Joined),
    Machines(Box<Machines>),
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Direct(contender) => contender.name(),
            Self::Hop => "suiro tap, over a vlink".into(),
            Self::Tunnel(tunnel) => format!("{}, vxlan", tunnel.name()),
            Self::Machines(kind) => format!("{} vhost-user", kind.name()),
        }
    }

    fn start(self) -> Result<Started> {
        Ok(match self {
            Self::Direct(contender) => Started::Direct(contender.start()?),
            Self::Hop => {
                let running = suiro(Attach::Tap).start()?;
                hop(&running)?;
                Started::Direct(running)
            }
            Self::Tunnel(tunnel) => Started::Tunnel(tunnel.start()?),
            Self::Machines(kind) => Started::Machines(Machines::start(kind)?.into()),
        })
    }
}

/// Puts a switch between the guests: what the one sends goes over a vlink there, and over another one back.
fn hop(running: &Running) -> Result<()> {
    let suiro = |words: &[&str]| -> Result<()> {
        let mut program = Command::new(std::env::current_exe().context("own binary")?);
        program.env("SUIRO_API", running.directory()?.join("api.sock"));
        command(program.args(words)).map(drop)
    };
    suiro(&["switch", "add", "sw1", "--fail-mode", "secure"])?;
    for number in ["3", "4"] {
        let (here, there) = (format!("to{number}"), format!("sw1:from{number}"));
        let add = ["port", "add", "sw0", &here, "--number", number];
        suiro(&[&add[..], &["--type", "vlink", "--peer", &there]].concat())?;
        let (here, there) = (format!("from{number}"), format!("sw0:to{number}"));
        let add = ["port", "add", "sw1", &here, "--number", number];
        suiro(&[&add[..], &["--type", "vlink", "--peer", &there]].concat())?;
    }
    for (switch, from, to) in [
        ("sw0", "1", "3"),
        ("sw0", "4", "2"),
        ("sw0", "2", "4"),
        ("sw0", "3", "1"),
        ("sw1", "3", "4"),
        ("sw1", "4", "3"),
    ] {
        suiro(&["flow", "add", switch, &format!("in_port={from},actions=output:{to}")])?;
    }
    Ok(())
}

impl Started {
    /// Processor time of the switches so far; none where the kernel does it.
    fn cpu_time(&self) -> Result<Option<Duration>> {
        let processes: Vec<&Process> = match self {
            Self::Direct(running) => running.state.processes().iter().collect(),
            Self::Tunnel(joined) => joined.processes().collect(),
            Self::Machines(machines) => return machines.cpu_time().map(Some),
        };
        match &processes[..] {
            [] => Ok(None),
            some => some.iter().map(|process| process.cpu_time()).sum::<Result<_>>().map(Some),
        }
    }

    /// None where nobody can load it so.
    fn answers(&self, load: Load) -> Result<Option<Answers>> {
        let [a, b]: &[Guest; 2] = match self {
            Self::Direct(running) => &running.guests,
            Self::Tunnel(joined) => &joined.guests,
            Self::Machines(machines) => {
                let Load::Ping(pace, count) = load else { return Ok(None) };
                return machines.ping(pace, count).map(Some);
            }
        };
        let answers = match load {
            Load::Ping(pace, count) => request::ping(a, b, pace, count),
            Load::Udp(clients) => request::by_udp(a, b, clients, ASKED),
            Load::Tcp(clients) => request::by_tcp(a, b, clients, ASKED),
        };
        answers.map(Some)
    }
}

/// What is compared: the first of each is ours.
fn comparisons() -> Vec<(Way, Vec<Way>)> {
    let over = |by: Contender| {
        let (underlay, is_encrypted, wire) = (Underlay::V4, false, Wire::Kernels);
        Way::Tunnel(Tunnelled { by, underlay, is_encrypted, wire })
    };
    let bridge = Way::Direct(BRIDGE);
    let beside = |attach| vec![bridge, Way::Direct(ovs(attach, false))];
    vec![
        (Way::Direct(suiro(Attach::Tap)), beside(Attach::Tap)),
        (Way::Direct(suiro(Attach::AfPacket)), beside(Attach::AfPacket)),
        (Way::Direct(suiro(Attach::AfXdpNative)), beside(Attach::AfXdpNative)),
        (Way::Hop, vec![bridge]),
        (over(suiro(Attach::AfPacket)), vec![over(BRIDGE), over(ovs(Attach::AfPacket, false))]),
        (Way::Machines(Kind::Suiro), vec![Way::Machines(Kind::OvsDpdk)]),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Figure {
    P50,
    P99,
    Cpu,
}

impl Figure {
    const EACH: [Self; 3] = [Self::P50, Self::P99, Self::Cpu];

    const fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::P50 => ("p50", "us"),
            Self::P99 => ("p99", "us"),
            Self::Cpu => ("processor time", "%"),
        }
    }
}

type Figures = BTreeMap<(usize, Figure), Vec<f64>>;

/// Runs it.
///
/// # Errors
/// A step failed.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    for (ours, peers) in comparisons() {
        let ways: Vec<Way> = std::iter::once(ours).chain(peers).collect();
        if !ways[0].name().contains(&common.only) {
            continue;
        }
        let mut all: Vec<Figures> = ways.iter().map(|_| Figures::new()).collect();
        let mut classes: BTreeMap<&str, u32> = BTreeMap::new();
        for round in 1..=common.rounds {
            for (way, figures) in ways.iter().zip(&mut all) {
                *classes.entry(placement_class()).or_default() += 1;
                measure(*way, figures).with_context(|| format!("round {round}: {}", way.name()))?;
            }
        }
        let classes: Vec<String> =
            classes.iter().map(|(class, count)| format!("{class}{count}")).collect();
        report.add(rows(&ways, &all, &classes.join("+")))?;
    }
    Ok(())
}

fn measure(way: Way, figures: &mut Figures) -> Result<()> {
    let started = way.start()?;
    for (at, (name, load)) in LOADS.iter().enumerate() {
        // Warm, as neighbours and caches are between guests that talk.
        started.answers(Load::Ping(Pace::Flood, 100))?;
        let (before, began) = (started.cpu_time()?, Instant::now());
        let answers = started.answers(*load).with_context(|| (*name).to_owned())?;
        let Some(answers) = answers else { continue };
        let (after, time) = (started.cpu_time()?, began.elapsed());
        ensure!(answers.per_s > 0.0, "{name}: nobody answered");
        let cpu = before.zip(after).map(|(before, after)| {
            100.0 * after.saturating_sub(before).as_secs_f64() / time.as_secs_f64()
        });
        eprintln!(
            "{}, {name}: p50 {:.1} us, p99 {:.1}, {:.0} answers/s, processor {}",
            way.name(),
            answers.p50,
            answers.p99,
            answers.per_s,
            cpu.map_or("the kernel's".into(), |cpu| format!("{cpu:.0} %"))
        );
        let values = [
            (Figure::P50, Some(answers.p50)),
            (Figure::P99, Some(answers.p99)),
            (Figure::Cpu, cpu),
        ];
        for (figure, value) in values {
            value
                .into_iter()
                .for_each(|value| figures.entry((at, figure)).or_default().push(value));
        }
    }
    Ok(())
}

/// For each load and figure a row beside each peer that has it.
fn rows(ways: &[Way], all: &[Figures], classes: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for ((at, (load, _)), figure) in
        LOADS.iter().enumerate().flat_map(|load| Figure::EACH.map(|figure| (load, figure)))
    {
        let of = |figures: &Figures| figures.get(&(at, figure)).map(|all| Spread::of(all.clone()));
        let Some(ours) = of(&all[0]) else { continue };
        let (what, unit) = figure.name();
        let row = |peer: Option<Peer>| Row {
            case: format!("{}, {load}: {what}", ways[0].name()),
            unit,
            cores: classes.into(),
            ours,
            ratio: peer.as_ref().map(|peer| peer.spread.median / ours.median),
            peer,
            goal: None,
        };
        let peers = ways.iter().zip(all).skip(1).filter_map(|(way, figures)| {
            Some(row(Some(Peer { name: way.name(), spread: of(figures)? })))
        });
        let before = rows.len();
        rows.extend(peers);
        if rows.len() == before {
            rows.push(row(None));
        }
    }
    rows
}
