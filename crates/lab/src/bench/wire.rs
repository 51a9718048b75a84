//! `suiro bench wire`: what users of namespaces, containers and testbeds see.
//!
//! Each case has a measurement and its contenders. A round starts every contender afresh, in turn, so that drift of the machine
//! meets all alike (A B C A B C …). The first contender is suiro's; the ratio is taken to the best of the others that the case
//! names as its peer.

use super::Common;
use crate::machine::{Machine, placement_class};
use crate::peer::{Attach, Contender, Running, Switch};
use crate::report::{Peer, Report, Row, Spread};
use crate::traffic::{frames, latency, openflow, tcp};
use anyhow::Result;
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether more or less of a figure is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    More,
    Less,
}

struct Case {
    name: &'static str,
    unit: &'static str,
    better: Better,
    ours: Contender,
    peers: Vec<(Contender, Option<f64>)>,
    measure: fn(&Running) -> Result<f64>,
}

const fn suiro(attach: Attach) -> Contender {
    Contender { switch: Switch::Suiro, attach }
}

const fn ovs(attach: Attach, tso: bool) -> Contender {
    Contender { switch: Switch::Ovs { tso }, attach }
}

const BRIDGE: Contender =
    Contender { switch: Switch::Bridge { offloads: true }, attach: Attach::Kernel };

const WINDOW: Duration = Duration::from_secs(3);
const TCP_SECONDS: u32 = 4;

fn mega_frames(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    running.accept_live_frames()?;
    let result = frames::flood(a, b, WINDOW)?;
    eprintln!("  offered {:.2} Mpps", result.offered / 1e6);
    Ok(result.delivered / 1e6)
}

fn tcp_gbits(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    tcp::throughput(a, b, TCP_SECONDS)
}

fn latency_p50(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    Ok(latency::round_trips(a, b, 1000)?.p50)
}

fn latency_p99(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    Ok(latency::round_trips(a, b, 1000)?.p99)
}

/// The table of cases; goals are the "must" column of the project's performance plan.
fn cases() -> Vec<Case> {
    use Attach::{AfPacket, AfXdpGeneric, AfXdpNative, Tap};
    use Better::{Less, More};
    let any_ovs_frames = vec![
        (ovs(AfXdpGeneric, false), Some(1.2)),
        (ovs(AfXdpNative, false), Some(1.2)),
        (ovs(AfPacket, false), None),
        (BRIDGE, None),
    ];
    let tcp_peers = |attach| {
        vec![(BRIDGE, Some(0.8)), (ovs(attach, false), Some(8.0)), (ovs(attach, true), None)]
    };
    let quick_peers = || vec![(ovs(AfXdpGeneric, false), None), (BRIDGE, None)];
    let control_peer = |goal| vec![(ovs(AfXdpGeneric, false), Some(goal))];
    vec![
        Case {
            name: "60 B UDP veth to veth, af_xdp",
            unit: "Mpps",
            better: More,
            ours: suiro(AfXdpNative),
            peers: any_ovs_frames,
            measure: mega_frames,
        },
        Case {
            name: "60 B UDP veth to veth, af_xdp generic",
            unit: "Mpps",
            better: More,
            ours: suiro(AfXdpGeneric),
            peers: vec![(ovs(AfXdpGeneric, false), Some(1.2))],
            measure: mega_frames,
        },
        Case {
            name: "60 B UDP veth to veth, af_packet",
            unit: "Mpps",
            better: More,
            ours: suiro(AfPacket),
            peers: vec![(ovs(AfPacket, false), None)],
            measure: mega_frames,
        },
        Case {
            name: "TCP tap to tap",
            unit: "Gbit/s",
            better: More,
            ours: suiro(Tap),
            peers: tcp_peers(Tap),
            measure: tcp_gbits,
        },
        Case {
            name: "TCP veth to veth, af_packet",
            unit: "Gbit/s",
            better: More,
            ours: suiro(AfPacket),
            peers: tcp_peers(AfPacket),
            measure: tcp_gbits,
        },
        Case {
            name: "TCP veth to veth, af_xdp",
            unit: "Gbit/s",
            better: More,
            ours: suiro(AfXdpNative),
            peers: vec![(ovs(AfXdpNative, false), None)],
            measure: tcp_gbits,
        },
        Case {
            name: "round trip p50, af_xdp",
            unit: "us",
            better: Less,
            ours: suiro(AfXdpNative),
            peers: quick_peers(),
            measure: latency_p50,
        },
        Case {
            name: "round trip p99, af_xdp",
            unit: "us",
            better: Less,
            ours: suiro(AfXdpNative),
            peers: quick_peers(),
            measure: latency_p99,
        },
        Case {
            name: "flow-mods, one connection",
            unit: "k/s",
            better: More,
            ours: suiro(AfXdpNative),
            peers: control_peer(2.0),
            measure: openflow::flow_mods,
        },
        Case {
            name: "packet-ins, one connection",
            unit: "k/s",
            better: More,
            ours: suiro(AfXdpNative),
            peers: control_peer(2.0),
            measure: openflow::packet_ins,
        },
        Case {
            name: "memory per entry at 1M entries",
            unit: "B",
            better: Less,
            ours: suiro(AfXdpNative),
            peers: control_peer(1.0),
            measure: openflow::bytes_per_entry,
        },
    ]
}

pub fn run(common: &Common) -> Result<Report> {
    let mut results = Vec::new();
    for case in cases().into_iter().filter(|case| case.name.contains(&common.only)) {
        results.extend(measure(&case, common.rounds)?);
    }
    Ok(Report { bench: "wire", machine: Machine::here(), results })
}

/// All rounds of one case; one row per peer.
fn measure(case: &Case, rounds: u32) -> Result<Vec<Row>> {
    let contenders: Vec<Contender> = std::iter::once(case.ours)
        .chain(case.peers.iter().map(|&(contender, _)| contender))
        .collect();
    let mut figures = vec![Vec::new(); contenders.len()];
    let mut classes: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 1..=rounds {
        for (contender, figures) in contenders.iter().zip(&mut figures) {
            *classes.entry(placement_class()).or_default() += 1;
            let running = contender.start()?;
            let figure = (case.measure)(&running)?;
            eprintln!(
                "round {round}/{rounds}  {}: {} {figure:.3} {}",
                case.name,
                contender.name(),
                case.unit
            );
            figures.push(figure);
        }
    }
    let mut spreads = figures.into_iter().map(Spread::of);
    let ours = spreads.next().expect("we are the first contender");
    let cores = classes
        .iter()
        .map(|(class, count)| format!("{class}{count}"))
        .collect::<Vec<_>>()
        .join("+");
    Ok(case
        .peers
        .iter()
        .zip(spreads)
        .map(|(&peer, spread)| row(case, ours, peer, spread, &cores))
        .collect())
}

fn row(
    case: &Case,
    ours: Spread,
    (peer, goal): (Contender, Option<f64>),
    spread: Spread,
    cores: &str,
) -> Row {
    let ratio = match case.better {
        Better::More => ours.median / spread.median,
        Better::Less => spread.median / ours.median,
    };
    Row {
        case: case.name.into(),
        unit: case.unit,
        cores: cores.into(),
        ours,
        peer: Some(Peer { name: peer.name(), spread }),
        ratio: Some(ratio),
        goal,
    }
}
