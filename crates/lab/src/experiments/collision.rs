//! `vse-collision`: what does it cost when two flows meet on one core, or a flow meets a VM? (table 4)
//!
//! Two flows whose hashes agree share a core with RPS as they do without it; steered, each has one. A VM that works for what it receives is pinned to
//! the interrupted core; its flow is processed there, or elsewhere. "One flow alone" is the collision-free rate that a freed flow is held to.

use super::cipher::Cipher;
use super::findings::{Findings, Goal};
use super::steering::Steering;
use super::traffic::Flow;
use super::traffic::receiver::Vm;
use super::trial::{Lab, Trial, key, prepare};
use super::{Experiment, Settings};
use anyhow::Result;

/// Work of the VM for a byte, as a share of the stage's. Chosen: its core is busy for a quarter with it, and with the flow's stage as well it is overloaded.
const VM_WORK: f64 = 0.3;

const ALONE: &str = "one flow alone";
const FLOWS: &str = "flow collision";
const NO_FLOWS: &str = "no flow collision";
const VM: &str = "flow-VM collision";
const NO_VM: &str = "no flow-VM collision";

/// Source ports by what RPS makes of them.
struct Ports {
    /// VM 1's, on the interrupted core.
    here: u16,
    /// VM 2's, on the interrupted core as well.
    collides: u16,
    /// VM 1's and VM 2's, on another core; none in a tunnel whose packets show no ports.
    away: Option<[u16; 2]>,
}

impl Ports {
    fn by_hash(lab: &mut Lab<'_>, rx: usize) -> Result<Self> {
        Ok(Self {
            here: lab.port_where(1, |core| core == rx)?,
            collides: lab.port_where(2, |core| core == rx)?,
            away: Some([
                lab.port_where(1, |core| core != rx)?,
                lab.port_where(2, |core| core != rx)?,
            ]),
        })
    }

    fn hidden(lab: &mut Lab<'_>) -> Self {
        Self { here: lab.any_port(), collides: lab.any_port(), away: None }
    }
}

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let hosts = prepare(settings, 2)?;
    let mut lab = Lab::new(settings, &hosts)?;
    let ports = match settings.cipher {
        Cipher::InPlace => Ports::by_hash(&mut lab, hosts.layout.rx)?,
        Cipher::Esp => Ports::hidden(&mut lab),
    };
    for &size in &settings.sizes {
        let trials = trials(&lab, &ports, size);
        for round in 1..=settings.rounds {
            eprintln!("{}: {size} B, round {round}/{}", experiment.name, settings.rounds);
            for trial in &trials {
                let measured = lab.measure(trial)?;
                lab.note(trial, &measured);
            }
        }
    }
    let goals = settings.sizes.iter().flat_map(|&size| goals(&lab, size)).collect();
    lab.findings(experiment, goals)
}

fn trials(lab: &Lab<'_>, ports: &Ports, size: usize) -> Vec<Trial> {
    use Steering::{Default, Rps, Vse};
    let idle = |number| lab.vm(number, None, 0.0);
    let rx = lab.hosts.layout.rx;
    let one = |port| vec![lab.flow(1, port, size)];
    let two = |first, second| vec![lab.flow(1, first, size), lab.flow(2, second, size)];
    let both = vec![idle(1), idle(2)];
    let pinned = vec![lab.vm(1, Some(rx), VM_WORK)];
    let elsewhere = vec![lab.vm(1, lab.hosts.layout.others().first().copied(), VM_WORK)];
    let wanted = |steering| lab.wants(steering);
    // Fragments have no ports to hash, so that no port keeps them apart.
    let away = ports.away.filter(|_| size <= 1400);
    let hashed = |steering| away.is_some() && lab.wants(steering);
    let away = away.unwrap_or_default();
    let trial = |case, steering, flows: Vec<Flow>, vms: &[Vm]| Trial {
        case,
        steering,
        flows,
        vms: vms.to_vec(),
        priority: None,
    };
    let colliding = || two(ports.here, ports.collides);
    let table = [
        (wanted(Default), trial(ALONE, Default, one(ports.here), &both)),
        (wanted(Default), trial(FLOWS, Default, colliding(), &both)),
        (hashed(Rps), trial(FLOWS, Rps, colliding(), &both)),
        (hashed(Rps), trial(NO_FLOWS, Rps, two(ports.here, away[1]), &both)),
        (wanted(Vse), trial(NO_FLOWS, Vse, colliding(), &both)),
        (wanted(Default), trial(VM, Default, one(ports.here), &pinned)),
        (wanted(Default), trial(NO_VM, Default, one(ports.here), &elsewhere)),
        (hashed(Rps), trial(NO_VM, Rps, one(away[0]), &pinned)),
        (wanted(Vse), trial(NO_VM, Vse, one(ports.here), &pinned)),
    ];
    table.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, trial)| trial).collect()
}

fn goals(lab: &Lab<'_>, size: usize) -> Vec<Goal> {
    let median =
        |case, steering, vm| lab.sheet.median(&key(case, steering, "throughput", vm, size));
    let freed = |vm| {
        let (rate, alone) = (
            median(NO_FLOWS, Steering::Vse, Some(vm))?,
            median(ALONE, Steering::Default, Some(1))?,
        );
        let claim =
            format!("{size} B: VM {vm}'s flow freed from another flow, of its collision-free rate");
        Some(Goal::at_least(claim, rate / alone, 0.95))
    };
    let freed_from_vm = || {
        let (rate, alone) =
            (median(NO_VM, Steering::Vse, Some(1))?, median(NO_VM, Steering::Default, Some(1))?);
        let claim = format!("{size} B: flow freed from its VM's core, of its collision-free rate");
        Some(Goal::at_least(claim, rate / alone, 0.95))
    };
    let left_behind = || {
        let counts = lab.sheet.counts(NO_VM, Steering::Vse.name(), size)?;
        let claim = format!("{size} B: frames left on the VM's core while another is free");
        Some(Goal::at_most(claim, counts.frames[lab.hosts.layout.rx] as f64, 0.0).chosen())
    };
    [freed(1), freed(2), freed_from_vm(), left_behind()].into_iter().flatten().collect()
}
