//! `vse-redirect`: what does it cost to process a frame on another core than the interrupted one?
//!
//! Small frames as fast as the interrupted core can make them, no work in the stage: what remains is the kernel's own path through the tunnel to the VM. On one core,
//! making and processing follow each other; on two they overlap, less what handing over costs.

use super::findings::{Findings, Goal};
use super::flood::flood;
use super::paper::Key;
use super::steering::{Steering, Told};
use super::trial::{Lab, prepare};
use super::{Experiment, Settings};
use anyhow::Result;
use std::time::Duration;
use testbed::machine::placement_class;

const HERE: &str = "on the interrupted core";
const AWAY: &str = "on another core";

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let mut hosts = prepare(settings, 1)?;
    hosts.stage.set_rounds(0)?;
    let mut lab = Lab::new(settings, &hosts)?;
    let vms = [lab.vm(1, None, 0.0)];
    let (here, away) = (hosts.layout.rx, hosts.layout.others()[0]);
    let contenders = [
        (HERE, Steering::Default, None),
        (HERE, Steering::Vse, Some(here)),
        (AWAY, Steering::Rps, Some(away)),
        (AWAY, Steering::Vse, Some(away)),
    ];
    for round in 1..=settings.rounds {
        for &(case, steering, core) in &contenders {
            if !lab.wants(steering) {
                continue;
            }
            let class = placement_class();
            let in_place = lab.put(steering, Told { vms: &vms, core, ..Told::default() })?;
            let flooded = flood(&hosts, Duration::from_secs_f64(settings.seconds))?;
            drop(in_place);
            eprintln!(
                "round {round}/{}: {case}, {}: {flooded:.0?}, {class}",
                settings.rounds,
                steering.name()
            );
            lab.sheet.add(
                key(case, steering, "throughput"),
                "k frames/s",
                flooded.delivered,
                class,
            );
            lab.sheet.add(key(case, steering, "offered"), "k frames/s", flooded.offered, class);
        }
    }
    let goals = goals(&lab);
    lab.findings(experiment, goals)
}

fn key(case: &str, steering: Steering, quantity: &'static str) -> Key {
    Key { case: case.into(), steering: steering.name().into(), quantity, vm: None, size: None }
}

fn goals(lab: &Lab<'_>) -> Vec<Goal> {
    let median = |case, steering| lab.sheet.median(&key(case, steering, "throughput"));
    let against = |claim: &str, case, peer| {
        let (ours, theirs) = (median(case, Steering::Vse)?, median(case, peer)?);
        Some(Goal::at_least(claim.into(), ours / theirs, 0.97))
    };
    let here = against(
        "steered to the core that it is on, of unsteered throughput",
        HERE,
        Steering::Default,
    );
    let away = against("handed to another core, of RPS's throughput", AWAY, Steering::Rps);
    [here, away].into_iter().flatten().collect()
}
