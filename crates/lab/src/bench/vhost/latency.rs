//! How long a frame takes through the switch at three loads, each a share of what that switch can carry.

use super::Plan;
use super::cases::cases;
use super::rig::Rig;
use crate::driver::latency::Histogram;
use crate::peer::vhost::Kind;
use crate::report::{Peer, Row, Spread};
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// As `--only` may name it.
pub const NAME: &str = "64 B latency";

/// Loads in percent of capacity; the first is that of a switch that would like to sleep.
const LOADS: [u32; 3] = [1, 50, 90];

const SHARES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// Of p99 at the lowest load: at most 1.3 times the peer's, which polls.
const GOAL: f64 = 0.77;

/// Class, load, share.
type Figures = BTreeMap<(&'static str, u32, &'static str), Vec<f64>>;

pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    let case = cases().into_iter().next().context("there are cases")?;
    let mut contenders = Vec::new();
    for &kind in &plan.kinds {
        let rig = Rig::start(kind, &case, plan.pages, plan.cycles)?;
        rig.switch.freeze()?;
        contenders.push((kind, rig, Figures::new()));
    }
    for round in 1..=plan.rounds {
        for (kind, rig, figures) in &mut contenders {
            rig.switch.thaw()?;
            turn(plan, round, *kind, rig, figures)?;
            rig.switch.freeze()?;
        }
    }
    let figures: Vec<(Kind, Figures)> =
        contenders.into_iter().map(|(kind, _, figures)| (kind, figures)).collect();
    Ok(rows(&figures))
}

fn turn(plan: &Plan, round: u32, kind: Kind, rig: &mut Rig, figures: &mut Figures) -> Result<()> {
    let Some(capacity) = rig.window()? else { return Ok(()) };
    for load in LOADS {
        let rate = capacity.mpps * 1e6 * f64::from(load) / 100.0;
        let Some((class, times)) = rig.timed(rate)? else { continue };
        // The capacity is that of another placement: this load is another one, too.
        if class != capacity.class {
            continue;
        }
        let us = |times: &Histogram, share| plan.cycles.us(times.percentile(share).unwrap_or(0));
        eprintln!(
            "round {round}  {NAME} at {load} % of {:.1} Mpps: {} p50 {:.2} us, p99 {:.2} us, {class}",
            capacity.mpps,
            kind.name(),
            us(&times, 0.5),
            us(&times, 0.99)
        );
        for (name, share) in SHARES {
            figures.entry((class, load, name)).or_default().push(us(&times, share));
        }
    }
    Ok(())
}

fn rows(contenders: &[(Kind, Figures)]) -> Vec<Row> {
    let Some(((_, ours), peers)) = contenders.split_first() else { return Vec::new() };
    let peer_of = |key: &(&'static str, u32, &'static str)| {
        let (kind, figures) = peers.first()?;
        Some(Peer { name: kind.name(), spread: Spread::of(figures.get(key)?.clone()) })
    };
    let row = |(key, times): (&(&'static str, u32, &'static str), &Vec<f64>)| {
        let (class, load, share) = *key;
        let (ours, peer) = (Spread::of(times.clone()), peer_of(key));
        Row {
            case: format!("{NAME} {share} at {load} % of capacity"),
            unit: "us",
            cores: class.into(),
            ours,
            ratio: peer.as_ref().map(|peer| peer.spread.median / ours.median),
            peer,
            goal: ((load, share) == (LOADS[0], "p99")).then_some(GOAL),
        }
    };
    ours.iter().map(row).collect()
}
