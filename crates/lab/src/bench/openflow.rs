//! `suiro bench openflow`: what a controller sees.

use super::Common;
use super::cases::{self, Better, Case, ovs, suiro};
use crate::report::Report;
use anyhow::Result;
use std::time::Duration;
use testbed::peer::{Attach, Running};
use testbed::traffic::frames::Receiver;
use testbed::traffic::{frames, latency, openflow};

const WINDOW: Duration = Duration::from_secs(3);
const PROBES: usize = 1000;

/// Thousands of frames a second that reach the other guest by way of the controller.
fn relayed_frames(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    running.accept_live_frames()?;
    let delivered = openflow::relaying(running, || {
        frames::flood(a, b, Receiver::Program, frames::SMALLEST, WINDOW)
    })?
    .delivered;
    Ok(delivered / 1e3)
}

fn relayed_p50(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    Ok(openflow::relaying(running, || latency::round_trips(a, b, PROBES))?.p50)
}

fn relayed_p99(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    Ok(openflow::relaying(running, || latency::round_trips(a, b, PROBES))?.p99)
}

/// The goals are the "must" column of the project's performance plan.
fn cases() -> Vec<Case> {
    use Better::{Less, More};
    let case = |name, unit, better, goal, measure| Case {
        name,
        unit,
        better,
        ours: suiro(Attach::AfXdpNative),
        peers: vec![(ovs(Attach::AfXdpGeneric, false), goal)],
        measure,
    };
    vec![
        case("flow-mods, add", "k/s", More, Some(2.0), openflow::flow_mods),
        case("flow-mods, modify", "k/s", More, Some(2.0), openflow::modifies),
        case("flow-mods, delete", "k/s", More, Some(2.0), openflow::deletes),
        case("packet-ins", "k/s", More, Some(2.0), openflow::packet_ins),
        case("packet-in to packet-out, overload", "k/s", More, Some(2.0), relayed_frames),
        case("guest round trip by the controller, p50", "us", Less, None, relayed_p50),
        case("guest round trip by the controller, p99", "us", Less, None, relayed_p99),
        case("dump of 1M entries", "s", Less, None, openflow::dump),
    ]
}

/// Runs them.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    cases::run(cases(), common, report)
}
