//! `vse-priority`: three VMs on a host with too few cores, one of which has priority (table 7).
//!
//! With four cores or more each VM has a core and one is free, as in the paper; with two, all VMs share the core that is not interrupted. Steered, VM 1's
//! flow is processed on the free core, and those of the others on their own VM's: what they cost falls on whom they are for.

use super::findings::{Findings, Goal};
use super::steering::Steering;
use super::traffic::receiver::Vm;
use super::trial::{Lab, Trial, key, prepare};
use super::{Experiment, Settings};
use anyhow::Result;

const CASE: &str = "three VMs";
const ALONE: &str = "VM 1 alone";
const FIRST: u8 = 1;

/// Work of a VM for a byte, as a share of the stage's: on a core of its own, and where all share one. There the sum must leave the first one its part.
const VM_WORK: f64 = 0.3;
const VM_WORK_SHARED: f64 = 0.1;

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let hosts = prepare(settings, 3)?;
    let mut lab = Lab::new(settings, &hosts)?;
    let cores = hosts.layout.pinned(3);
    let share = if cores[0] == cores[1] { VM_WORK_SHARED } else { VM_WORK };
    let vms: Vec<Vm> =
        (1..).zip(&cores).map(|(number, &core)| lab.vm(number, Some(core), share)).collect();
    for &size in &settings.sizes {
        for round in 1..=settings.rounds {
            eprintln!("{}: {size} B, round {round}/{}", experiment.name, settings.rounds);
            let ports = [lab.any_port(), lab.any_port(), lab.any_port()];
            for trial in trials(&lab, &vms, ports, size) {
                let measured = lab.measure(&trial)?;
                lab.note(&trial, &measured);
            }
        }
    }
    let goals = settings.sizes.iter().flat_map(|&size| goals(&lab, size)).collect();
    let mut findings = lab.findings(experiment, goals)?;
    findings.notes.push(format!(
        "VMs 1 to 3 on cores {cores:?}; each works {share} of the stage's work for a byte"
    ));
    Ok(findings)
}

fn trials(lab: &Lab<'_>, vms: &[Vm], ports: [u16; 3], size: usize) -> Vec<Trial> {
    let flows: Vec<_> = (1..).zip(ports).map(|(vm, port)| lab.flow(vm, port, size)).collect();
    let trial = |case, steering, flows: &[_], priority| Trial {
        case,
        steering,
        flows: flows.to_vec(),
        vms: vms.to_vec(),
        priority,
    };
    let mut trials = Vec::new();
    for &steering in &lab.settings.steering {
        let priority = (steering == Steering::Vse).then_some(FIRST);
        if priority.is_some() {
            trials.push(trial(ALONE, steering, &flows[..1], priority));
        }
        trials.push(trial(CASE, steering, &flows, priority));
    }
    trials
}

fn goals(lab: &Lab<'_>, size: usize) -> Vec<Goal> {
    let rate =
        |case, steering, vm| lab.sheet.median(&key(case, steering, "throughput", Some(vm), size));
    let first = || {
        let (rate, alone) = (rate(CASE, Steering::Vse, FIRST)?, rate(ALONE, Steering::Vse, FIRST)?);
        Some(Goal::at_least(
            format!("{size} B: the VM with priority, of its rate alone"),
            rate / alone,
            0.98,
        ))
    };
    // The promise is the paper's, whose VMs have a core each: where they share one, what the first is given the others lack.
    let have_own = lab.hosts.layout.others().len() >= 3;
    let others = |vm| {
        if !have_own {
            return None;
        }
        let (ours, theirs) = (rate(CASE, Steering::Vse, vm)?, rate(CASE, Steering::Rps, vm)?);
        Some(Goal::at_least(
            format!("{size} B: VM {vm} without priority, of its rate with RPS"),
            ours / theirs,
            1.0,
        ))
    };
    [first(), others(2), others(3)].into_iter().flatten().collect()
}
