//! The commands of `suiro bench`.

mod cases;
mod flow;
mod node;
mod openflow;
mod steer;
mod tunnel;
mod vhost;
mod wire;

use crate::keeper::Keeper;
use crate::machine::Machine;
use crate::report::{Report, Row};
use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Measure suiro, side by side with what people use today.
#[derive(Parser)]
#[command(name = "suiro bench")]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Classification alone: cycles per packet over rules, flows and masks (no root needed).
    Flow(Common),
    /// A node of 300 switches: start, memory, idle cost, outage of a kill -9 under traffic (root; about a minute a round).
    Node(Common),
    /// Flow-mods, packet-ins and packet-outs, and a dump of a million entries, beside Open vSwitch (root; about 8 minutes).
    Openflow(Common),
    /// What steering costs a frame: hits, misses, placement, frames to another core, beside Linux RPS (root; about 4 minutes).
    Steer(Common),
    /// Guests on two hosts joined by VXLAN, beside the kernel's own with a Linux bridge and Open vSwitch's: TCP, frames, latency
    /// (root; about 10 minutes).
    Tunnel(Common),
    /// Guests on vhost-user ports beside Open vSwitch with DPDK: sizes, rules, flows, attacks, large segments, latency,
    /// kill -9, idle guests (root; about 15 minutes).
    Vhost(vhost::Options),
    /// A guest that `vhost` kills.
    #[command(hide = true)]
    Player(vhost::player::Options),
    /// Frames, TCP, latency, flow-mods, packet-ins and memory beside Open vSwitch and the Linux bridge (root; about 8 minutes).
    Wire(Common),
}

/// Options of every benchmark.
#[derive(Args, Clone)]
struct Common {
    /// Rounds; the contenders alternate within each.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Also write the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// Runs the benchmark that the command line behind `suiro bench` names, and prints its table. Help and usage errors end the process, as
/// they do for every command.
///
/// # Errors
/// The step that failed, with its remedy; whatever had been started is gone by then.
pub fn run(arguments: Vec<OsString>) -> Result<()> {
    let cli = Cli::parse_from(std::iter::once(OsString::from("suiro bench")).chain(arguments));
    // A player is part of another one's run.
    let _keeper = match cli.bench {
        Bench::Player(_) => None,
        _ => Some(Keeper::start()?),
    };
    let mut rows = Vec::new();
    let (bench, common, end) = match &cli.bench {
        Bench::Flow(common) => ("flow", common, flow::run(common, &mut rows)),
        Bench::Node(common) => ("node", common, node::run(common, &mut rows)),
        Bench::Openflow(common) => ("openflow", common, openflow::run(common, &mut rows)),
        Bench::Steer(common) => ("steer", common, steer::run(common, &mut rows)),
        Bench::Tunnel(common) => ("tunnel", common, tunnel::run(common, &mut rows)),
        Bench::Vhost(options) => ("vhost", &options.common, vhost::run(options, &mut rows)),
        Bench::Player(options) => return vhost::player::run(options),
        Bench::Wire(common) => ("wire", common, wire::run(common, &mut rows)),
    };
    tell(bench, common, rows, end)
}

/// Prints and saves what was measured, also of a run that did not come to its end.
fn tell(bench: &'static str, common: &Common, rows: Vec<Row>, end: Result<()>) -> Result<()> {
    if rows.is_empty() {
        end?;
        bail!(
            "no case of this bench has {:?} in its name; without --only all are run",
            common.only
        );
    }
    let cut_short = end.as_ref().err().map(|error| format!("{error:#}"));
    let report = Report { bench, machine: Machine::here(), cut_short, results: rows };
    report.print();
    let saved = common.json.as_ref().map_or(Ok(()), |path| report.save(path));
    end.and(saved)
}
