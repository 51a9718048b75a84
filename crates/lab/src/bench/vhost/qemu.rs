//! TCP between two machines in QEMU, and what it costs the host in processor time and context switches.
//!
//! The machines' processors are emulated, which makes them slow: they are the limit here, whatever the switch, and the figures say only
//! that large segments pass between drivers that no one here wrote, how often the host switches, and what the switch leaves of it. Both machines run on the generators'
//! core, the switch has the other; then they run wherever the scheduler puts them, as on a host without a core to spare. Beside the switches
//! stand the figures of RISE 4.0's paper (VM guests of KVM, DPDK switch): 6 Gbit/s by vhost-user, and 500 context switches a second before, 3000 under the load.

use super::Plan;
use crate::report::{Peer, Row, Spread};
use crate::scheduler::{Switches, of_host, of_process};
use anyhow::{Context, Result};
use std::time::{Duration, Instant};
use testbed::guest::{Guest, GuestSpec, Nic};
use testbed::peer::vhost::{Kind, Running};
use testbed::peer::{GENERATORS_CORE, SWITCH_CORE};

/// Where the machines run.
struct Case {
    name: &'static str,
    cores: &'static [usize],
    /// Whether RISE 4.0's figures stand beside it.
    has_rise: bool,
}

/// As `--only` may name them.
const CASES: [Case; 2] = [
    Case { name: "TCP between QEMU guests", cores: &[GENERATORS_CORE], has_rise: true },
    Case {
        name: "TCP between QEMU guests, any core",
        cores: &[GENERATORS_CORE, SWITCH_CORE],
        has_rise: false,
    },
];

const SECONDS: u64 = 5;

/// Rounds: machines start anew in each, and their figures differ little.
const MOST_ROUNDS: u32 = 3;

/// Times of context switches without a load.
const IDLE: Duration = Duration::from_secs(3);

/// What one turn showed: Gbit/s; the switch's processor time, loaded; context switches a second of the host, idle and loaded; of switch and machines, loaded.
const FIGURES: [(&str, &str); 6] = [
    ("", "Gbit/s"),
    (": share of a core that the switch takes", "%"),
    (": context switches of the host, idle", "/s"),
    (": context switches of the host", "/s"),
    (": context switches of the switch", "/s"),
    (": context switches of both QEMUs", "/s"),
];

/// RISE 4.0's figures in that order, where it has them.
const RISE: [Option<f64>; 6] = [Some(6.0), None, Some(500.0), Some(3000.0), None, None];

type Turns = Vec<[f64; 6]>;

/// Whether any of its cases is.
pub fn is_wanted(plan: &Plan) -> bool {
    CASES.iter().any(|case| plan.wants(case.name))
}

pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut results = Vec::new();
    for case in CASES.iter().filter(|case| plan.wants(case.name)) {
        results.extend(compare(plan, case).context(case.name)?);
    }
    Ok(results)
}

fn compare(plan: &Plan, case: &Case) -> Result<Vec<Row>> {
    let mut all: Vec<(Kind, Turns)> = Vec::new();
    for &kind in &plan.kinds {
        all.push((kind, Turns::new()));
        if kind == Kind::OvsDpdk {
            all.push((Kind::OvsDpdkTso, Turns::new()));
        }
    }
    for round in 1..=plan.rounds.min(MOST_ROUNDS) {
        for (kind, turns) in &mut all {
            let figures = turn(*kind, case.cores).with_context(|| kind.name())?;
            let told: Vec<_> = FIGURES
                .iter()
                .zip(figures)
                .map(|((name, unit), figure)| format!("{figure:.2} {unit}{name}"))
                .collect();
            eprintln!("round {round}  {}: {} {}", case.name, kind.name(), told.join(", "));
            turns.push(figures);
        }
    }
    Ok(rows(case, &all))
}

/// Switch and machines from nothing.
fn turn(kind: Kind, cores: &[usize]) -> Result<[f64; 6]> {
    let directory = tempfile::tempdir()?;
    let sockets = [1, 2].map(|number| directory.path().join(format!("vm{number}.sock")));
    let switch = Running::start(kind, &sockets, 1518)?;
    switch.add_rules(&["actions=NORMAL".into()])?;
    let spec = |number: usize| {
        let nic = Nic::vhost_user(&sockets[number - 1], &format!("02:00:00:00:00:{number:02x}"));
        GuestSpec::new(&format!("vm{number}")).nic(nic).on_cores(cores)
    };
    let guests = Guest::boot_all([spec(1), spec(2)])?;
    for (number, guest) in (1..).zip(&guests) {
        guest.run(&format!("ip addr add 10.0.0.{number}/24 dev eth0 && ip link set eth0 up"))?;
    }
    let [client, server] = &guests;
    server.run("iperf3 -s -D; until netstat -ltn | grep -q :5201; do usleep 10000; done")?;
    client.run("until ping -c 1 -W 1 10.0.0.2; do :; done")?;
    let pids = [switch.pid()?, client.pid(), server.pid()];
    let (idle, _) = switches_during(&pids, || {
        std::thread::sleep(IDLE);
        Ok(())
    })?;
    let (start, before) = (Instant::now(), switch.cpu_time()?);
    let (loaded, report) = switches_during(&pids, || {
        let command = format!("iperf3 -c 10.0.0.2 -J -i 0 -t {SECONDS}");
        client.says(&command, Duration::from_secs(4 * SECONDS))
    })?;
    let used = switch.cpu_time()? - before;
    let of_a_core = 100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64();
    let report: serde_json::Value =
        serde_json::from_str(&report.output).with_context(|| report.output.clone())?;
    let bits = report["end"]["sum_received"]["bits_per_second"].as_f64();
    let gbit_s = bits.with_context(|| format!("iperf3 failed: {}", report["error"]))? / 1e9;
    let [of_switch, client, server] = loaded.processes;
    Ok([gbit_s, of_a_core, idle.host, loaded.host, of_switch, client + server])
}

/// Context switches a second of the host and of processes.
struct Rates {
    host: f64,
    processes: [f64; 3],
}

fn switches_during<T>(pids: &[u32; 3], work: impl FnOnce() -> Result<T>) -> Result<(Rates, T)> {
    let all = || -> Result<(u64, Vec<Switches>)> {
        Ok((of_host()?, pids.iter().map(|&pid| of_process(pid)).collect::<Result<_>>()?))
    };
    let (start, (host, processes)) = (Instant::now(), all()?);
    let result = work()?;
    let (host_after, after) = all()?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = |n: usize| after[n].since(&processes[n]) as f64 / seconds;
    let host = (host_after - host) as f64 / seconds;
    Ok((Rates { host, processes: [rate(0), rate(1), rate(2)] }, result))
}

fn rows(case: &Case, all: &[(Kind, Turns)]) -> Vec<Row> {
    let Some(((_, ours), peers)) = all.split_first() else { return Vec::new() };
    let spread = |turns: &Turns, n: usize| Spread::of(turns.iter().map(|turn| turn[n]).collect());
    let mut rows = Vec::new();
    for (n, (name, unit)) in FIGURES.into_iter().enumerate() {
        let (own, more_is_better) = (spread(ours, n), n == 0);
        let mut add = |peer: Peer, is_comparable: bool| {
            let ratio = if more_is_better {
                own.median / peer.spread.median
            } else {
                peer.spread.median / own.median
            };
            rows.push(Row {
                case: format!("{} (emulated){name}", case.name),
                unit,
                cores: "-".into(),
                ours: own,
                ratio: is_comparable.then_some(ratio),
                peer: Some(peer),
                goal: None,
            });
        };
        peers.iter().for_each(|(kind, turns)| {
            add(Peer { name: kind.name(), spread: spread(turns, n) }, true)
        });
        // Another machine, real processors: beside, not against.
        if let Some(figure) = RISE[n].filter(|_| case.has_rise) {
            add(
                Peer { name: "RISE 4.0's paper, KVM".into(), spread: Spread::of(vec![figure]) },
                false,
            );
        }
    }
    rows
}
