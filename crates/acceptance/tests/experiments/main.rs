//! `suiro lab` by the built binary, in rounds so short that no figure means anything: counts and structure are what is looked at, never a timing.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod guest;

use acceptance::{Background, privileged, until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(acceptance::suiro());
    command.arg("lab").args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    lab(arguments).output().unwrap()
}

/// Namespaces that a run of this process has made and not removed.
fn namespaces_of(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("su-") && name.ends_with(&format!("-{pid}"))).collect()
}

#[test]
fn experiments_are_listed_and_one_that_is_not_there_is_refused_with_the_list() {
    let listed = String::from_utf8(run(&["list"]).stdout).unwrap();
    for name in ["vse-collision", "vse-two-flows", "vse-priority", "fragments"] {
        assert!(listed.contains(name), "{listed}");
    }
    let refused = run(&["run", "vse-collisions"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success());
    assert!(said.contains("\"vse-collisions\"") && said.contains("vse-collision,"), "{said}");
}

/// Who processed the frames of an experiment, by contender and size.
fn by_core<'r>(findings: &'r Value, steering: &str, size: u64) -> &'r Value {
    let lines = findings["by_core"].as_array().unwrap();
    lines.iter().find(|line| line["steering"] == steering && line["size"] == size).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn all_contenders_are_counted_and_written_down_and_fragments_follow_their_first() {
    if !privileged() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (json, csv, page) = (path("figures.json"), path("csv"), path("page.html"));
    let output = run(&[
        "run",
        "fragments",
        "--rounds",
        "1",
        "--seconds",
        "0.3",
        "--json",
        &json,
        "--csv",
        &csv,
        "--report",
        &page,
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let figures: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let findings = &figures["experiments"][0];
    assert_eq!((&figures["bench"], &findings["experiment"]), (&"lab".into(), &"fragments".into()));
    for size in [1400, 8192] {
        for steering in ["default", "rps", "vse"] {
            let line = by_core(findings, steering, size);
            let frames = numbers(&line["frames"]);
            let of_vms = [&line["frames_of_vm"]["1"], &line["frames_of_vm"]["2"]].map(numbers);
            let sums: Vec<u64> =
                (0..frames.len()).map(|core| of_vms[0][core] + of_vms[1][core]).collect();
            assert_eq!(frames, sums, "{steering}, {size}: all frames are some VM's");
            assert!(
                of_vms.iter().all(|of_vm| of_vm.iter().sum::<u64>() > 0),
                "{steering}, {size}: {of_vms:?}"
            );
        }
        let busy = |steering| {
            numbers(&by_core(findings, steering, size)["frames"])
                .iter()
                .filter(|&&frames| frames > 0)
                .count()
        };
        assert_eq!(busy("default"), 1, "without steering all is done where the interrupt was");
        if size == 8192 {
            assert_eq!(busy("rps"), 1, "a hash sees nothing in fragments but the two hosts");
        }
    }
    for vm in ["1", "2"] {
        let frames = numbers(&by_core(findings, "vse", 8192)["frames_of_vm"][vm]);
        assert_eq!(frames.iter().filter(|&&frames| frames > 0).count(), 1, "VM {vm}: {frames:?}");
    }
    let rows = findings["results"].as_array().unwrap();
    let row = |row: &&Value| {
        row["steering"] == "default" && row["quantity"] == "loss" && row["vm"].is_null()
    };
    assert_eq!(rows.iter().filter(row).count(), 2);
    assert!(rows.iter().all(|row| row["rounds"].as_array().unwrap().len() == 1));
    assert_eq!(rows.iter().find(row).unwrap()["paper"], 34.5);

    let lines = std::fs::read_to_string(Path::new(&csv).join("fragments.csv")).unwrap();
    assert_eq!(lines.lines().count(), rows.len() + 1);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.trim_end().ends_with("</html>"));
}

#[test]
fn a_run_that_is_killed_leaves_nothing_behind() {
    if !privileged() {
        return;
    }
    let run =
        Background::start(&mut lab(&["run", "fragments", "--rounds", "1", "--seconds", "60"]));
    let pid = run.pid();
    let is_at_work = || run.output().contains("round 1/1");
    until("the run is at work", is_at_work);
    assert!(!namespaces_of(pid).is_empty());
    run.end(Signal::KILL);
    until("its namespaces are gone", || namespaces_of(pid).is_empty());
}
