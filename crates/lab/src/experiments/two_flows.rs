//! `vse-two-flows`: two flows to two VMs, again and again with other source ports (figure 6, tables 5 and 6).
//!
//! A *generation* is one pair of flows. All contenders get the same generations, in turn. By hash, a generation's flows meet or not, meet a VM or not, by
//! chance; in fragments they always meet.

use super::findings::{Findings, Goal, OverTime, SHARED, STRAYS};
use super::stage::max_over_mean;
use super::steering::Steering;
use super::traffic::receiver::Vm;
use super::traffic::{Outcome, SLOT};
use super::trial::{Lab, Trial, key, prepare};
use super::window::Measured;
use super::{Experiment, Settings};
use anyhow::Result;

/// The paper has twenty generations; a round is four of them.
const GENERATIONS: u32 = 4;

const CASE: &str = "two flows";

/// Work of a VM for a byte, where it has a core of its own, as a share of the stage's.
const VM_WORK: f64 = 0.3;

/// From so many bytes on two flows of the paper are more than its core carries, and must not meet; lighter ones may.
const HEAVY: usize = 1400;

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let hosts = prepare(settings, 2)?;
    let mut lab = Lab::new(settings, &hosts)?;
    let vms = vms(&lab);
    for &size in &settings.sizes {
        for generation in 1..=settings.rounds * GENERATIONS {
            eprintln!("{}: {size} B, generation {generation}", experiment.name);
            let ports = [lab.any_port(), lab.any_port()];
            let flows = vec![lab.flow(1, ports[0], size), lab.flow(2, ports[1], size)];
            for &steering in &settings.steering {
                let (flows, vms) = (flows.clone(), vms.clone());
                let trial = Trial { case: CASE, steering, flows, vms, priority: None };
                let measured = lab.measure(&trial)?;
                lab.note(&trial, &measured);
                note_cores(&mut lab, &trial, &measured);
                extend(&mut lab.over_time, &trial, &measured);
            }
        }
    }
    let goals = goals(&lab, &vms);
    let mut findings = lab.findings(experiment, goals)?;
    findings.notes.push(describe(&vms));
    Ok(findings)
}

/// Pinned and at work where there are cores for that; else anywhere, for two cores have none to spare.
fn vms(lab: &Lab<'_>) -> Vec<Vm> {
    if !lab.hosts.layout.is_roomy(2) {
        return vec![lab.vm(1, None, 0.0), lab.vm(2, None, 0.0)];
    }
    let cores = lab.hosts.layout.pinned(2);
    (1..).zip(cores).map(|(number, core)| lab.vm(number, Some(core), VM_WORK)).collect()
}

fn describe(vms: &[Vm]) -> String {
    let place = |vm: &Vm| match vm.core {
        Some(core) => format!("VM {} on core {core}", vm.number),
        None => format!("VM {} on any core, without work of its own", vm.number),
    };
    vms.iter().map(place).collect::<Vec<_>>().join("; ")
}

/// Whether each flow had a core, and for itself: the sums of all generations cannot tell, for each generation is placed anew.
fn note_cores(lab: &mut Lab<'_>, trial: &Trial, measured: &Measured) {
    let cores = lab.hosts.layout.host;
    for (quantity, percent) in [(STRAYS, measured.strays(cores)), (SHARED, measured.shared(cores))]
    {
        lab.sheet.add(trial.key(quantity, None), "%", percent, measured.class);
    }
}

/// Appends a generation to the rate over time.
fn extend(over_time: &mut Vec<OverTime>, trial: &Trial, measured: &Measured) {
    let (steering, size) = (trial.steering.name(), trial.flows[0].size);
    let is_it = |line: &OverTime| line.steering == steering && line.size == size;
    let at = over_time.iter().position(is_it).unwrap_or_else(|| {
        over_time.push(OverTime {
            steering: steering.into(),
            size,
            points: Vec::new(),
            unit: "Mbit/s",
        });
        over_time.len() - 1
    });
    let step = SLOT as f64 / 1e9;
    let begin = over_time[at].points.last().map_or(0.0, |&(time, _)| time + step);
    let slots =
        measured.outcomes.iter().map(|outcome| outcome.tally.slots.len()).max().unwrap_or(0);
    let rate = |slot: usize| measured.outcomes.iter().map(|outcome| rate_in(outcome, slot)).sum();
    let points = (0..slots).map(|slot| (begin + slot as f64 * step, rate(slot)));
    over_time[at].points.extend(points);
}

/// Mbit/s of a flow in one slot; the last one may be shorter.
fn rate_in(outcome: &Outcome, slot: usize) -> f64 {
    let step = SLOT as f64 / 1e9;
    let length = step.min(outcome.seconds - slot as f64 * step);
    let datagrams = outcome.tally.slots.get(slot).copied().unwrap_or(0);
    datagrams as f64 * outcome.flow.size as f64 * 8.0 / 1e6 / length
}

fn goals(lab: &Lab<'_>, vms: &[Vm]) -> Vec<Goal> {
    let cores = lab.hosts.layout.host;
    let is_free = |core: &usize| vms.iter().all(|vm| vm.core != Some(*core));
    let free: Vec<usize> = (0..cores).filter(is_free).collect();
    let size = |size: usize| {
        let counts = lab.sheet.counts(CASE, "vse", size)?;
        let on_free: Vec<u64> = free.iter().map(|&core| counts.frames[core]).collect();
        let left = counts.frames.iter().sum::<u64>() - on_free.iter().sum::<u64>();
        let shared = || {
            let worst = lab.sheet.largest(&key(CASE, Steering::Vse, SHARED, None, size))?;
            let claim = "frames on a core shared with the other flow, %, worst generation";
            (size >= HEAVY).then_some((claim, worst, 0.0))
        };
        let claims = [
            ("frames on cores of VMs while others are free", left as f64, 0.0),
            ("largest over mean load of the free cores", max_over_mean(&on_free), 1.05),
        ];
        let goal = move |(claim, value, bound)| {
            Goal::at_most(format!("{size} B: {claim}"), value, bound).chosen()
        };
        Some(shared().into_iter().chain(claims).map(goal))
    };
    lab.settings.sizes.iter().filter_map(|&bytes| size(bytes)).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::stage::Counts;
    use super::super::traffic::{Flow, Tally};
    use super::*;

    fn measured(slots: &[u64]) -> Measured {
        let flow = Flow { vm: 1, port: 1, size: 1250, rate: 1.0, tos: 0 };
        let mut tally = Tally::new(0, 0, slots.len() as u64 * SLOT);
        tally.slots = slots.to_vec();
        let seconds = slots.len() as f64 / 10.0;
        let outcome = Outcome { flow, due: 0, unsent: 0, tally, seconds };
        Measured { outcomes: vec![outcome], counts: Counts::default(), class: "CCX" }
    }

    #[test]
    fn generations_follow_each_other_in_time() {
        let flows = vec![Flow { vm: 1, port: 1, size: 1250, rate: 1.0, tos: 0 }];
        let trial =
            Trial { case: CASE, steering: Steering::Vse, flows, vms: vec![], priority: None };
        let mut over_time = Vec::new();
        extend(&mut over_time, &trial, &measured(&[10, 20]));
        extend(&mut over_time, &trial, &measured(&[30]));
        let points = &over_time[0].points;
        let near = |point: &(f64, f64), time: f64, rate: f64| {
            (point.0 - time).abs() < 1e-9 && (point.1 - rate).abs() < 1e-9
        };
        assert_eq!(points.len(), 3);
        assert!(
            near(&points[0], 0.0, 1.0) && near(&points[1], 0.1, 2.0) && near(&points[2], 0.2, 3.0),
            "{points:?}"
        );
    }
}
