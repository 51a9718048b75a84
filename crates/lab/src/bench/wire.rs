//! `suiro bench wire`: what users of namespaces, containers and testbeds see.

use super::cases::{self, BRIDGE, Better, Case, ovs, suiro};
use super::{Common, headers};
use crate::report::Report;
use anyhow::Result;
use std::time::Duration;
use testbed::peer::{Attach, Running};
use testbed::traffic::frames::Receiver;
use testbed::traffic::tcp::Cores;
use testbed::traffic::{frames, latency, openflow, tcp};

const WINDOW: Duration = Duration::from_secs(3);
const TCP_SECONDS: u32 = 4;

fn mega_frames(running: &Running) -> Result<f64> {
    to(Receiver::Program, running)
}

fn mega_frames_to_gro(running: &Running) -> Result<f64> {
    to(Receiver::Stack { gro: true }, running)
}

fn mega_frames_to_stack(running: &Running) -> Result<f64> {
    to(Receiver::Stack { gro: false }, running)
}

fn to(receiver: Receiver, running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    running.accept_live_frames()?;
    let result = frames::flood(a, b, receiver, frames::SMALLEST, WINDOW)?;
    eprintln!("  offered {:.2} Mpps", result.offered / 1e6);
    Ok(result.delivered / 1e6)
}

fn tcp_gbits(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    tcp::throughput(a, b, Cores::Generators, TCP_SECONDS)
}

fn tcp_gbits_any_core(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    tcp::throughput(a, b, Cores::Any, TCP_SECONDS)
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
    let af_xdp_peers = || vec![(ovs(AfXdpGeneric, false), None), (ovs(AfXdpNative, false), None)];
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
            name: "60 B UDP veth to a stack with GRO, af_xdp",
            unit: "Mpps",
            better: More,
            ours: suiro(AfXdpNative),
            peers: af_xdp_peers(),
            measure: mega_frames_to_gro,
        },
        Case {
            name: "60 B UDP veth to a stack, af_xdp",
            unit: "Mpps",
            better: More,
            ours: suiro(AfXdpNative),
            peers: af_xdp_peers(),
            measure: mega_frames_to_stack,
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
            name: "TCP tap to tap, guests on both cores",
            unit: "Gbit/s",
            better: More,
            ours: suiro(Tap),
            peers: vec![(BRIDGE, None), (ovs(Tap, true), None)],
            measure: tcp_gbits_any_core,
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
            name: "TCP veth to veth, af_packet, guests on both cores",
            unit: "Gbit/s",
            better: More,
            ours: suiro(AfPacket),
            peers: vec![(BRIDGE, None), (ovs(AfPacket, true), None)],
            measure: tcp_gbits_any_core,
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

/// Runs them.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    cases::run(cases(), common, report)?;
    cases::run(headers::cases(), common, report)
}
