//! `fragments`: datagrams that travel whole beside datagrams that travel in fragments, at the same rate of bits.
//!
//! Only the first fragment of a packet has ports, and none but the first shows what is inside the tunnel. A hash over what all have, the addresses of two hosts, puts
//! all flows between them on one core. Steered, fragments follow their first.

use super::findings::{Findings, Goal, STRAYS};
use super::steering::Steering;
use super::trial::{Lab, Trial, key, prepare};
use super::{Experiment, Settings};
use anyhow::Result;

const CASE: &str = "two flows";

/// One frame each, and six frames each.
const WHOLE: usize = 1400;
const FRAGMENTED: usize = 8192;

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let hosts = prepare(settings, 2)?;
    let mut lab = Lab::new(settings, &hosts)?;
    let vms = [1, 2].map(|number| lab.vm(number, None, 0.0));
    for round in 1..=settings.rounds {
        eprintln!("{}: round {round}/{}", experiment.name, settings.rounds);
        let ports = [lab.any_port(), lab.any_port()];
        for size in [WHOLE, FRAGMENTED] {
            let flows = [lab.flow(1, ports[0], size), lab.flow(2, ports[1], size)];
            for &steering in &settings.steering {
                let (flows, vms) = (flows.to_vec(), vms.to_vec());
                let trial = Trial { case: CASE, steering, flows, vms, priority: None };
                let measured = lab.measure(&trial)?;
                lab.note(&trial, &measured);
                let losses = measured.outcomes.iter().map(|outcome| outcome.loss());
                let mean = losses.sum::<f64>() / measured.outcomes.len() as f64;
                lab.sheet.add(trial.key("loss", None), "%", mean, measured.class);
                let strays = measured.strays(lab.hosts.layout.host);
                lab.sheet.add(trial.key(STRAYS, None), "%", strays, measured.class);
            }
        }
    }
    let goals = goals(&lab);
    lab.findings(experiment, goals)
}

fn goals(lab: &Lab<'_>) -> Vec<Goal> {
    let median = |quantity, size| lab.sheet.median(&key(CASE, Steering::Vse, quantity, None, size));
    let loss = || {
        let (fragmented, whole) = (median("loss", FRAGMENTED)?, median("loss", WHOLE)?);
        Some(Goal::at_most(
            "loss of fragmented over unfragmented datagrams, points".into(),
            fragmented - whole,
            1.0,
        ))
    };
    let strays = || {
        let strays = median(STRAYS, FRAGMENTED)?;
        let claim = "fragments that did not follow their first, %";
        Some(Goal::at_most(claim.into(), strays, 0.0).counted())
    };
    [loss(), strays()].into_iter().flatten().collect()
}
