//! `suiro bench flow`: the classifier alone, case by case, without a port or a system call in the measured part.

use super::Common;
use crate::machine::{Machine, placement_class};
use crate::report::{Report, Row, Spread};
use anyhow::{Result, ensure};
use flow::bench::{CASES, Measured, measure};

/// Rounds of 2^18 packets for each of the command's rounds.
const ROUNDS: usize = 4;

pub fn run(common: &Common) -> Result<Report> {
    crate::sys::pin(1);
    println!(
        "{:<36} {:>8} {:>8} {:>14} {:>22} {:>7} {:>6} {:>8} {:>10}",
        "case",
        "rules",
        "flows",
        "template",
        "cycles per packet",
        "probes",
        "bound",
        "B/entry",
        "c/flow-mod"
    );
    let rounds = common.rounds as usize * ROUNDS;
    let mut figures = Vec::new();
    for case in CASES.iter().filter(|case| case.name.contains(&common.only)) {
        let cores = placement_class();
        crate::sys::pin(1);
        let measured = measure(case, rounds, &crate::sys::cycles);
        print(&measured);
        ensure!(
            measured.probes <= f64::from(measured.probe_bound),
            "{}: {} probes per packet, above the stated bound of {}",
            measured.name,
            measured.probes,
            measured.probe_bound
        );
        figures.push((measured, cores));
    }
    crate::sys::unpin();
    print_range(&figures);
    let results = figures.into_iter().map(|(measured, cores)| row(&measured, cores)).collect();
    Ok(Report { bench: "flow", machine: Machine::here(), results })
}

fn print(measured: &Measured) {
    let (median, least, most) = measured.cycles;
    println!(
        "{:<36} {:>8} {:>8} {:>14} {:>22} {:>7.2} {:>6} {:>8.0} {:>10.0}",
        measured.name,
        measured.rules,
        measured.flows,
        measured.template,
        format!("{median:.1} [{least:.1}..{most:.1}]"),
        measured.probes,
        measured.probe_bound,
        measured.bytes_per_entry,
        measured.cycles_per_flow_mod
    );
}

/// From the best case to the worst: what an attacker can gain by choosing rules and traffic.
fn print_range(figures: &[(Measured, &str)]) {
    let by_cost =
        |a: &&(Measured, &str), b: &&(Measured, &str)| a.0.cycles.0.total_cmp(&b.0.cycles.0);
    let (Some(best), Some(worst)) =
        (figures.iter().min_by(by_cost), figures.iter().max_by(by_cost))
    else {
        return;
    };
    println!(
        "\nworst over best: {:.1}x ({} over {}); promised: 4x",
        worst.0.cycles.0 / best.0.cycles.0,
        worst.0.name,
        best.0.name
    );
}

fn row(measured: &Measured, cores: &str) -> Row {
    let (median, min, max) = measured.cycles;
    let ours = Spread { median, min, max };
    Row {
        case: measured.name.into(),
        unit: "cycles",
        cores: cores.into(),
        ours,
        peer: None,
        ratio: None,
        goal: None,
    }
}
