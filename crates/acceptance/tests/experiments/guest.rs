//! `suiro lab run --guest`: the same inside a machine of six cores, where each flow can have one.

use crate::{by_core, lab, numbers, run};
use acceptance::{Background, privileged, until_within};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// Longest start of a machine and of the run in it, on a loaded host. Chosen.
const START: Duration = Duration::from_secs(120);

/// The interrupted core, and those of the VMs, as the papers have them.
const RX: usize = 3;
const VMS: [usize; 2] = [0, 1];

#[test]
fn two_flows_are_processed_on_both_free_cores_and_none_on_a_vms() {
    if !privileged() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (json, csv) = (path("figures.json"), path("csv"));
    let asked = "run vse-two-flows --guest --sizes 8192 --steering default,vse --seconds 0.5";
    let output = run(&asked.split(' ').chain(["--json", &json, "--csv", &csv]).collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("guest: vse-two-flows: 8192 B, generation 4"),
        "progress is told: {said}"
    );

    let figures: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(figures["machine"]["cores"], 6);
    let findings = &figures["experiments"][0];
    let default = numbers(&by_core(findings, "default", 8192)["frames"]);
    let elsewhere: u64 = default[..RX].iter().sum();
    assert!(
        elsewhere == 0 && default[RX] > 0,
        "without steering all is done where the interrupt was: {default:?}"
    );

    let steered = numbers(&by_core(findings, "vse", 8192)["frames"]);
    assert_eq!(VMS.map(|core| steered[core]), [0, 0], "cores of VMs are left alone: {steered:?}");
    assert!(steered[2] > 0 && steered[RX] > 0, "both free cores work: {steered:?}");
    let rows = findings["results"].as_array().unwrap();
    let rounds = |quantity: &str| -> Vec<f64> {
        let is_it = |row: &&Value| row["steering"] == "vse" && row["quantity"] == quantity;
        serde_json::from_value(rows.iter().find(is_it).unwrap()["rounds"].clone()).unwrap()
    };
    assert_eq!(rounds("frames off their flow's core"), [0.0; 4], "a flow stays where it was put");
    // Whether the second flow sees the first one's load is a matter of time, which a machine shared with others does not keep.
    assert_eq!(rounds("frames on a shared core").len(), 4, "each of four generations is judged");
    assert!(
        rows.iter().all(|row| row["quantity"] != "throughput" && row["quantity"] != "loss"),
        "an emulated core's rates are not told"
    );
    assert!(std::fs::exists(format!("{csv}/vse-two-flows-by-core.csv")).unwrap());
}

#[test]
fn an_experiment_that_only_measures_time_is_refused_before_a_machine_starts() {
    let output = run(&["run", "vse-entries", "--guest"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("vse-entries: measures time"), "{said}");
    assert!(!said.contains("emulation"), "{said}");
}

#[test]
fn a_machine_goes_with_a_run_that_is_killed() {
    if !privileged() {
        return;
    }
    let run = Background::start(&mut lab(&["run", "fragments", "--guest", "--seconds", "600"]));
    until_within(START, "the machine is at work", || run.output().contains("round 1/1"));
    let machine = machine_of(run.pid()).unwrap();
    run.end(Signal::KILL);
    let is_gone = || !std::fs::exists(format!("/proc/{machine}")).unwrap();
    until_within(START, "its machine is gone", is_gone);
}

/// The QEMU process that a process has started.
fn machine_of(parent: u32) -> Option<u32> {
    let is_it = |process: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        status.contains(&format!("PPid:\t{parent}\n")) && status.starts_with("Name:\tqemu-system")
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.find(is_it)
}
