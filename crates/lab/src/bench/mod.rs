//! The commands of `suiro bench`.

mod flow;
mod node;
mod wire;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

/// `suiro bench …`
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Classification alone: cycles per packet over rules, flows and masks (no root needed).
    Flow(Common),
    /// A node of 300 switches: start, memory, idle cost, outage of a kill -9 under traffic (root; about a minute a round).
    Node(Common),
    /// Frames, TCP, latency, flow-mods, packet-ins and memory beside Open vSwitch and the Linux bridge (root; about 8 minutes).
    Wire(Common),
}

/// Options of every benchmark.
#[derive(ClapArgs, Clone)]
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

/// Runs one benchmark and prints its table.
///
/// # Errors
/// The step that failed, with its remedy; whatever had been started is gone by then.
pub fn run(args: Args) -> Result<()> {
    let (report, common) = match args.bench {
        Bench::Flow(common) => (flow::run(&common)?, common),
        Bench::Node(common) => (node::run(&common)?, common),
        Bench::Wire(common) => (wire::run(&common)?, common),
    };
    report.print();
    common.json.map_or(Ok(()), |path| report.save(&path))
}
