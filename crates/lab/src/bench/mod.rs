//! The commands of `suiro bench`.

mod capture;
mod cases;
mod flow;
mod headers;
mod isolation;
mod latency;
mod node;
mod offload;
mod openflow;
mod slices;
mod steer;
mod tunnel;
mod vhost;
mod wire;

use crate::report::Report;
use anyhow::{Result, ensure};
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use testbed::keeper::Keeper;

/// Measure suiro, side by side with what people use today.
#[derive(Parser)]
#[command(name = "suiro bench")]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// What a capture costs the traffic that it looks at, beside ovs-tcpdump and dpdk-dumpcap (root; about a minute and a half a
    /// round).
    Capture(Common),
    /// Classification alone: cycles per packet over rules, flows and masks (no root needed).
    Flow(Common),
    /// What one tenant is left while another attacks, beside Open vSwitch: loops, storms, masks, flow-mods, packet-ins, ports
    /// (root; about 6 minutes a round).
    Isolation(isolation::Options),
    /// Round trips at every pace, and what they cost the switch, beside a Linux bridge, the kernel's vxlan and Open vSwitch (root; about
    /// 6 minutes a round).
    Latency(Common),
    /// A node of 300 switches: start, memory, idle cost, outage of a kill -9 under traffic (root; about a minute a round).
    Node(Common),
    /// Flows past the worker beside the worker, the Linux bridge, Open vSwitch and a plain XDP redirect: TCP, frames, round trips
    /// (root; about 8 minutes).
    Offload(Common),
    /// Flow-mods, packet-ins and packet-outs, and a dump of a million entries, beside Open vSwitch (root; about 8 minutes).
    Openflow(Common),
    /// A slice of 100 switches, and ten slices at once, from the file to links that are proved: time, processor time, memory,
    /// beside Mininet (root; about a minute a round).
    Slices(Common),
    /// What steering costs a frame: hits, misses, placement, frames to another core, beside Linux RPS (root; about 4 minutes).
    Steer(Common),
    /// Guests on two hosts joined by VXLAN, beside the kernel's own with a Linux bridge and Open vSwitch's: TCP, frames, latency
    /// (root; about 10 minutes).
    Tunnel(Common),
    /// Guests on vhost-user ports beside Open vSwitch with DPDK: sizes, rules, flows, attacks, large segments, latency,
    /// kill -9, idle guests (root; about half an hour).
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
    /// Also write the figures as JSON, case by case as they are measured.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// What may be typed after `suiro bench`.
pub fn commands() -> clap::Command {
    Cli::command().name("bench")
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
    match &cli.bench {
        Bench::Capture(common) => common.report("capture", |report| capture::run(common, report)),
        Bench::Flow(common) => common.report("flow", |report| flow::run(common, report)),
        Bench::Isolation(options) if !options.has_report() => isolation::soak(options),
        Bench::Isolation(isolation::Options { common, .. }) => {
            common.report("isolation", |report| isolation::run(common, report))
        }
        Bench::Latency(common) => common.report("latency", |report| latency::run(common, report)),
        Bench::Node(common) => common.report("node", |report| node::run(common, report)),
        Bench::Offload(common) => common.report("offload", |report| offload::run(common, report)),
        Bench::Openflow(common) => {
            common.report("openflow", |report| openflow::run(common, report))
        }
        Bench::Slices(common) => common.report("slices", |report| slices::run(common, report)),
        Bench::Steer(common) => common.report("steer", |report| steer::run(common, report)),
        Bench::Tunnel(common) => common.report("tunnel", |report| tunnel::run(common, report)),
        Bench::Vhost(options) => {
            options.common.report("vhost", |report| vhost::run(options, report))
        }
        Bench::Player(options) => vhost::player::run(options),
        Bench::Wire(common) => common.report("wire", |report| wire::run(common, report)),
    }
}

impl Common {
    /// Runs a benchmark and tells what it measured.
    fn report(
        &self,
        bench: &'static str,
        run: impl FnOnce(&mut Report) -> Result<()>,
    ) -> Result<()> {
        let mut report = Report::new(bench, self.json.clone());
        let end = run(&mut report).and_then(|()| {
            let only = &self.only;
            ensure!(
                !report.rows().is_empty(),
                "no case of this bench has {only:?} in its name; without --only all are run"
            );
            Ok(())
        });
        report.end(end)
    }
}
