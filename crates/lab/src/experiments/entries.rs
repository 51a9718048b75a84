//! `vse-entries`: what does a frame cost with so many rules in the flow table?
//!
//! The kernel itself measures how long suiro's program runs (`BPF_ENABLE_STATS`), which adds the time of reading a clock twice; a program that does nothing, measured
//! likewise, says how much that is. Frames of a VM with a rule, and of one without, while the table grows.

use super::findings::{Findings, Goal};
use super::flood::flood;
use super::hosts::Hosts;
use super::paper::Key;
use super::steering::{Steering, Told};
use super::trial::{Lab, prepare};
use super::{Experiment, Settings};
use anyhow::{Context, Result};
use std::time::Duration;
use testbed::machine::placement_class;
use testbed::sys::{self, RECEIVER, XdpProgram, interface_index};

/// The paper's list was searched one after the other, and held about 50.
const ENTRIES: [u32; 4] = [10, 50, 1_000, 100_000];

const NOTHING: &str = "a program that does nothing";

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let mut hosts = prepare(settings, 2)?;
    hosts.stage.set_rounds(0)?;
    let mut lab = Lab::new(settings, &hosts)?;
    let _measured = sys::measure_programs()?;
    for round in 1..=settings.rounds {
        let class = placement_class();
        let nothing = nothing(&hosts, settings)?;
        lab.sheet.add(key(NOTHING), "ns a frame", nothing, class);
        if !lab.wants(Steering::Vse) {
            continue;
        }
        for entries in ENTRIES {
            // Frames go to VM 1; only one of the two VMs has a rule.
            for (case, vm) in [("rule found", 1), ("no rule found", 2)] {
                let vms = [lab.vm(vm, None, 0.0)];
                let core = Some(hosts.layout.rx);
                let told = Told { vms: &vms, core, idle_rules: entries, ..Told::default() };
                let in_place = lab.put(Steering::Vse, told)?;
                let (class, cost) = (placement_class(), cost(&hosts, settings)?);
                drop(in_place);
                eprintln!(
                    "round {round}/{}: {case}, {entries} rules: {cost:.0} ns a frame, {class}",
                    settings.rounds
                );
                lab.sheet.add(key(&name(case, entries)), "ns a frame", cost, class);
            }
        }
    }
    let goals = goals(&lab);
    lab.findings(experiment, goals)
}

fn name(case: &str, entries: u32) -> String {
    format!("{case}, {entries} rules")
}

fn key(case: &str) -> Key {
    let steering = if case == NOTHING { "" } else { Steering::Vse.name() };
    Key { case: case.into(), steering: steering.into(), quantity: "cost", vm: None, size: None }
}

/// What the measurement itself costs.
fn nothing(hosts: &Hosts, settings: &Settings) -> Result<f64> {
    let attach = || XdpProgram::load(RECEIVER)?.attach(interface_index("eth0")?);
    let _program = hosts.host.enter(attach)?;
    cost(hosts, settings)
}

/// Time of the program on the host's interface for each frame of a flood.
fn cost(hosts: &Hosts, settings: &Settings) -> Result<f64> {
    let program = program(hosts)?;
    let before = sys::runs_of(program)?;
    flood(hosts, Duration::from_secs_f64(settings.seconds))?;
    Ok(sys::runs_of(program)?.ns_each_since(before))
}

/// The number of the XDP program on the host's interface.
fn program(hosts: &Hosts) -> Result<u32> {
    let text = hosts.host.ip(&["-j", "-d", "link", "show", "dev", "eth0"])?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    let number = value[0]["xdp"]["prog"]["id"].as_u64();
    number.and_then(|number| u32::try_from(number).ok()).context("eth0: has no XDP program")
}

fn goals(lab: &Lab<'_>) -> Vec<Goal> {
    let cost = |case: &str| lab.sheet.median(&key(case));
    let (few, many) = (ENTRIES[0], ENTRIES[ENTRIES.len() - 1]);
    let added = || {
        let added = cost(&name("rule found", few))? - cost(NOTHING)?;
        Some(Goal::at_most(format!("{few} rules: ns that a frame with a rule costs"), added, 60.0))
    };
    let flat = || {
        let nothing = cost(NOTHING)?;
        let ratio = (cost(&name("rule found", many))? - nothing)
            / (cost(&name("rule found", few))? - nothing);
        Some(Goal::at_most(format!("cost with {many} rules over that with {few}"), ratio, 1.5))
    };
    [added(), flat()].into_iter().flatten().collect()
}
