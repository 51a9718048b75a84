//! `suiro bench tunnel`: what guests on two hosts see.

mod cipher;

use super::Common;
use super::cases::{self, BRIDGE, Better, Case, ovs, suiro};
use crate::report::Report;
use anyhow::Result;
use std::time::Duration;
use testbed::peer::Attach::{AfPacket, AfXdpGeneric, AfXdpNative};
use testbed::peer::Contender;
use testbed::peer::tunnel::{Joined, Tunnelled, Underlay, Wire};
use testbed::traffic::frames::{self, Receiver};
use testbed::traffic::latency::{RoundTrip, round_trips};
use testbed::traffic::tcp::{self, Cores};

const WINDOW: Duration = Duration::from_secs(3);
const TCP_SECONDS: u32 = 4;
const PROBES: usize = 1000;
/// UDP payload of the longest packet that ESP leaves room for in 1500 bytes, in round figures.
const LONG: u16 = 1400 - 28;

fn tcp_gbits(joined: &Joined) -> Result<f64> {
    let [a, b] = &joined.guests;
    tcp::throughput(a, b, Cores::Generators, TCP_SECONDS)
}

fn tcp_gbits_any_core(joined: &Joined) -> Result<f64> {
    let [a, b] = &joined.guests;
    tcp::throughput(a, b, Cores::Any, TCP_SECONDS)
}

fn mega_frames(joined: &Joined) -> Result<f64> {
    delivered(joined, frames::SMALLEST)
}

fn mega_frames_long(joined: &Joined) -> Result<f64> {
    delivered(joined, LONG)
}

fn delivered(joined: &Joined, payload: u16) -> Result<f64> {
    let [a, b] = &joined.guests;
    joined.accept_live_frames()?;
    let result = frames::flood(a, b, Receiver::Program, payload, WINDOW)?;
    eprintln!("  offered {:.2} Mpps", result.offered / 1e6);
    Ok(result.delivered / 1e6)
}

fn latency(joined: &Joined) -> Result<RoundTrip> {
    let [a, b] = &joined.guests;
    round_trips(a, b, PROBES)
}

/// The table of cases; goals are the "must" column of the project's performance plan.
fn cases() -> Vec<Case<Tunnelled>> {
    use Better::{Less, More};
    let over = |by: Contender| Tunnelled {
        by,
        underlay: Underlay::V4,
        is_encrypted: false,
        wire: Wire::Kernels,
    };
    let over_v6 = |by: Contender| Tunnelled { underlay: Underlay::V6, ..over(by) };
    let encrypted = |by: Contender| Tunnelled { is_encrypted: true, ..over(by) };
    let kernel = over(BRIDGE);
    let frames_peers = || {
        let ovs = |attach| (over(ovs(attach, false)), None);
        vec![(kernel, None), ovs(AfPacket), ovs(AfXdpNative), ovs(AfXdpGeneric)]
    };
    let case = |name, unit, better, ours, peers, measure: fn(&Joined) -> Result<f64>| Case {
        name,
        unit,
        better,
        ours,
        peers,
        measure,
    };
    let packet = over(suiro(AfPacket));
    let past = Tunnelled { wire: Wire::SwitchsPastKernel, ..over(suiro(AfXdpNative)) };
    let wire_peers = || {
        let through = Tunnelled { wire: Wire::Switchs, ..past };
        let ovs = |attach| (over(ovs(attach, false)), None);
        vec![(through, None), ovs(AfPacket), ovs(AfXdpNative), ovs(AfXdpGeneric)]
    };
    let xdp = over(suiro(AfXdpNative));
    vec![
        case(
            "TCP",
            "Gbit/s",
            More,
            packet,
            vec![(kernel, Some(0.8)), (over(ovs(AfPacket, false)), Some(4.0))],
            tcp_gbits,
        ),
        case(
            "TCP, guests on both cores",
            "Gbit/s",
            More,
            packet,
            vec![(kernel, None)],
            tcp_gbits_any_core,
        ),
        case(
            "TCP over IPv6",
            "Gbit/s",
            More,
            over_v6(suiro(AfPacket)),
            vec![(over_v6(BRIDGE), Some(0.8))],
            tcp_gbits,
        ),
        case(
            "TCP, encrypted; the others are not",
            "Gbit/s",
            More,
            encrypted(suiro(AfPacket)),
            vec![(packet, None), (kernel, None), (over(ovs(AfPacket, false)), None)],
            tcp_gbits,
        ),
        case("60 B UDP", "Mpps", More, xdp, frames_peers(), mega_frames),
        case("1400 B UDP", "Mpps", More, xdp, frames_peers(), mega_frames_long),
        case(
            "1400 B UDP, encrypted; the other is not",
            "Mpps",
            More,
            encrypted(suiro(AfXdpNative)),
            vec![(xdp, None)],
            mega_frames_long,
        ),
        case("TCP, the switch has the wire", "Gbit/s", More, past, wire_peers(), tcp_gbits),
        case("60 B UDP, the switch has the wire", "Mpps", More, past, wire_peers(), mega_frames),
        case(
            "1400 B UDP, the switch has the wire",
            "Mpps",
            More,
            past,
            wire_peers(),
            mega_frames_long,
        ),
        case("round trip p50, the switch has the wire", "us", Less, past, wire_peers(), |joined| {
            Ok(latency(joined)?.p50)
        }),
        case("round trip p50", "us", Less, packet, vec![(kernel, None)], |joined| {
            Ok(latency(joined)?.p50)
        }),
        case("round trip p99", "us", Less, packet, vec![(kernel, None)], |joined| {
            Ok(latency(joined)?.p99)
        }),
    ]
}

/// Runs them.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    cases::run(cases(), common, report)?;
    report.add(cipher::rows(common)?)?;
    Ok(())
}
