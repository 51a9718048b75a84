//! `suiro bench offload`: what a flow gains that leaves the worker, beside the worker, a Linux bridge, Open vSwitch and a plain XDP redirect.

mod rig;

use super::Common;
use super::cases::{self, BRIDGE, Better, Case, ovs};
use crate::report::Report;
use anyhow::{Context, Result};
use rig::{AtWork, PAST, Rig};
use std::time::Duration;
use testbed::netns::{Guest, run as command};
use testbed::peer::{Attach, Running};
use testbed::traffic::frames::{self, Receiver};
use testbed::traffic::latency;
use testbed::traffic::tcp::{self, Cores};

const WINDOW: Duration = Duration::from_secs(2);
const WARM: Duration = Duration::from_millis(300);
const TCP_SECONDS: u32 = 2;
/// Packets of the first of three seconds, in which a connection leaves, are among those that are counted.
const TCP_PAST: f64 = 0.66;
const PINGS: &str = "10000";
const PROBES: usize = 500;

const fn suiro(attach: Attach, past: bool, limited: bool) -> Rig {
    Rig::Suiro { attach, past, limited }
}

fn mega_frames(work: &AtWork) -> Result<f64> {
    let [a, b] = &work.running.guests;
    work.running.accept_live_frames()?;
    let flood = |window| frames::flood(a, b, Receiver::Program, frames::SMALLEST, window);
    work.warmed(|| flood(WARM).map(drop))?;
    work.measured(PAST, |_| Ok(flood(WINDOW)?.delivered / 1e6))
}

fn mega_frames_out_of_tunnel(work: &AtWork) -> Result<f64> {
    let [a, b] = &work.running.guests;
    work.running.accept_live_frames()?;
    let frames = work.out_of_tunnel()?;
    let flood = |window| frames::flood_of(b, a, Receiver::Program, &frames, window);
    work.warmed(|| flood(WARM).map(drop))?;
    work.measured(PAST, |_| Ok(flood(WINDOW)?.delivered / 1e6))
}

fn tcp_one_core(work: &AtWork) -> Result<f64> {
    tcp(work, Cores::Generators)
}

fn tcp_two_cores(work: &AtWork) -> Result<f64> {
    tcp(work, Cores::Any)
}

/// Each connection is a new flow; its first second, in which it leaves, is not counted. Pings come before: a node measures what rungs cost when it sees
/// its first flow.
fn tcp(work: &AtWork, cores: Cores) -> Result<f64> {
    let [a, b] = &work.running.guests;
    work.warmed(|| ping(a, b, "500").map(drop))?;
    let of = |Running { guests: [a, b], .. }: &Running| tcp::throughput(a, b, cores, TCP_SECONDS);
    work.measured(TCP_PAST, of)
}

fn flood_ping(work: &AtWork) -> Result<f64> {
    let [a, b] = &work.running.guests;
    work.warmed(|| ping(a, b, "500").map(drop))?;
    work.measured(PAST, |_| ping(a, b, PINGS))
}

/// Mean round trip of so many pings, each sent when the one before is answered, in µs.
fn ping(from: &Guest, to: &Guest, count: &str) -> Result<f64> {
    let said =
        command(from.namespace.command("ping").args(["-f", "-q", "-c", count, &to.address]))?;
    let mean = said.lines().find_map(|line| line.strip_prefix("rtt ")?.split('/').nth(4));
    let ms: f64 = mean.and_then(|text| text.parse().ok()).context("ping: no round trip")?;
    Ok(ms * 1000.0)
}

fn round_trip_p50(work: &AtWork) -> Result<f64> {
    let [a, b] = &work.running.guests;
    let probe = |count| latency::round_trips(a, b, count);
    work.warmed(|| probe(50).map(drop))?;
    work.measured(PAST, |_| Ok(probe(PROBES)?.p50))
}

type Measure = fn(&AtWork) -> Result<f64>;

fn case(
    name: &'static str,
    (unit, better, measure): (&'static str, Better, Measure),
    ours: Rig,
    peers: Vec<(Rig, Option<f64>)>,
) -> Case<Rig> {
    Case { name, unit, better, ours, peers, measure }
}

/// The cases; goals are those of issue and performance plan.
fn cases() -> Vec<Case<Rig>> {
    use Attach::{AfPacket, AfXdpNative};
    let other = |contender| (Rig::Other(contender), None);
    let bridge = |goal| (Rig::Other(BRIDGE), goal);
    let on_packets = |goal| {
        let (ovs, tso) = (ovs(AfPacket, false), ovs(AfPacket, true));
        vec![(suiro(AfPacket, false, false), None), bridge(goal), other(ovs), other(tso)]
    };
    let on_xdp = || {
        let worker = (suiro(AfXdpNative, false, false), None);
        vec![worker, bridge(Some(1.0)), other(ovs(AfXdpNative, false))]
    };
    // Nobody completes the sums of UDP in front of a plain redirect, and ICMP has its own.
    let for_ping = || [on_xdp(), vec![(Rig::Redirect, None)]].concat();
    let of_frames = |limited, redirect| {
        let worker = (suiro(AfXdpNative, false, limited), Some(2.0));
        vec![worker, (Rig::Redirect, redirect), other(ovs(AfXdpNative, false)), bridge(None)]
    };
    let tcp = |measure: Measure| ("Gbit/s", Better::More, measure);
    let us = |measure: Measure| ("us", Better::Less, measure);
    let rate = ("Mpps", Better::More, mega_frames as Measure);
    let (packets, xdp) = (suiro(AfPacket, true, false), suiro(AfXdpNative, true, false));
    let limited = suiro(AfXdpNative, true, true);
    let tunnel = |past, sum| Rig::Tunnel { past, sum };
    let of_tunnel =
        |sum| (tunnel(true, sum), vec![(tunnel(false, sum), Some(1.7)), (Rig::Redirect, None)]);
    let [(summed, with_sum), (plain, without_sum)] = [true, false].map(of_tunnel);
    let popped = ("Mpps", Better::More, mega_frames_out_of_tunnel as Measure);
    let out = |past| Rig::OutOfTunnel { past };
    let of_pop = vec![(out(false), Some(1.7)), (Rig::Redirect, None)];
    vec![
        case(
            "TCP, af_packet, both ends on one core",
            tcp(tcp_one_core),
            packets,
            on_packets(Some(1.0)),
        ),
        case(
            "TCP, af_packet, ends on both cores",
            tcp(tcp_two_cores),
            packets,
            on_packets(Some(1.0)),
        ),
        case("flood ping, af_packet", us(flood_ping), packets, on_packets(Some(1.0))),
        case("round trip p50, af_packet", us(round_trip_p50), packets, on_packets(Some(1.0))),
        case("60 B UDP, af_xdp", rate, xdp, of_frames(false, Some(0.75))),
        case("60 B UDP, af_xdp, with a limit", rate, limited, of_frames(true, Some(0.6))),
        case("60 B UDP into VXLAN, af_xdp", rate, summed, with_sum),
        case("60 B UDP into VXLAN without outer checksum, af_xdp", rate, plain, without_sum),
        case("60 B UDP out of VXLAN without outer checksum, af_xdp", popped, out(true), of_pop),
        case("flood ping, af_xdp", us(flood_ping), xdp, for_ping()),
        case("round trip p50, af_xdp", us(round_trip_p50), xdp, on_xdp()),
    ]
}

/// Runs them.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    cases::run(cases(), common, report)
}
