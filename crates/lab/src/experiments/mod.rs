//! The papers' experiments on this host: the commands of `suiro lab`.
//!
//! **Question answered**: what did the papers' authors measure, and what comes of the same here, without any steering, with the kernel's, and with suiro's?
//!
//! * [`testbed`]: two hosts and their VMs in namespaces; [`stage`]: what stands for encryption, and counts who did it; [`layout`]: who runs on
//!   which core; [`scale`]: the papers' rates made smaller by one factor; [`cipher`]: the kernel's own encryption.
//! * [`traffic`]: numbered datagrams; [`window`]: one measurement; [`steering`]: the contenders, put in place in turn.
//! * [`trial`]: what all experiments share; `collision`, `two_flows`, `priority`, `entries`, `redirect`, `fragments`, `reaction`, `models`, `ipsec`: the experiments; `flood`: what the cheap ones need;
//!   [`emulated`]: all of it inside a machine with more cores; [`quiet`]: whether others had this one.
//! * [`paper`]: the papers' figures (`data/papers.json`); [`findings`]: ours beside them; `print`, `csv`, `page`: for a terminal, a program, a
//!   reader.
//!
//! **Invariants**: all that a run makes belongs to a value that removes it; a killed run is cleared up by its keeper. Contenders alternate within each round. No
//! figure is compared across runs. Loss counts every datagram that was due, also one that the sender had no time for.

mod cipher;
mod collision;
mod csv;
mod emulated;
mod entries;
mod findings;
mod flood;
mod fragments;
mod frame;
mod hosts;
mod ipsec;
mod layout;
mod models;
mod page;
mod paper;
mod print;
mod priority;
mod quiet;
mod reaction;
mod redirect;
mod scale;
mod stage;
mod steering;
mod traffic;
mod trial;
mod two_flows;
mod window;

use anyhow::{Context, Result, bail};
use cipher::Cipher;
use clap::{Args, CommandFactory, Parser, Subcommand};
use findings::Findings;
use scale::Scale;
use serde::Serialize;
use stage::NsPerByte;
use std::ffi::OsString;
use std::path::PathBuf;
use steering::Steering;
use testbed::keeper::Keeper;
use testbed::machine::Machine;
use traffic::generator::Pace;

/// The papers' experiments on this host, each with the paper's figures beside ours.
#[derive(Parser)]
#[command(name = "suiro lab")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say which experiments there are
    List,
    /// Run experiments, one after the other, and print their tables (root)
    #[command(after_help = "\
Examples:
  suiro lab run vse-collision --report collision.html
  suiro lab run all --json figures.json --csv figures
  suiro lab run vse-two-flows --guest
  suiro lab run vse-ipsec --guest --cores 2 --rounds 3
  suiro lab run vse-two-flows --sizes 1400 --steering default,rps --rounds 1")]
    Run(Settings),
    /// Sites and nodes on this machine, to try slices on (root)
    #[command(subcommand)]
    Domain(crate::domain::Command),
}

/// What a user may ask for.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Experiments by name, or `all` (but vse-ipsec, which not every kernel can run without --guest)
    #[arg(required = true, value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Inside a machine that QEMU emulates (no root; by default one round of 2 seconds, and a capacity of 2)
    #[arg(long)]
    pub guest: bool,
    /// Cores of that machine. With more than this host has, one of ours is several of its: then only counts are shown
    #[arg(long, requires = "guest", default_value_t = 6, value_parser = clap::value_parser!(u8).range(2..=16))]
    pub cores: u8,
    /// Only say who processed what: no rate, no loss, no delay
    #[arg(long)]
    pub counts: bool,
    /// Rounds; the contenders alternate within each
    #[arg(long, default_value_t = 5, default_value_if("guest", "true", "1"), value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Counted time of one measurement
    #[arg(long, default_value_t = 1.0, default_value_if("guest", "true", "2"))]
    pub seconds: f64,
    /// Mbit/s of 1400-byte datagrams that one core is to carry; the paper's carried 954.9, and its rates are scaled by the same factor
    #[arg(
        long,
        default_value_t = 95.5,
        default_value_if("guest", "true", "2"),
        value_name = "MBPS"
    )]
    pub capacity: f64,
    /// Bytes of a datagram; above 1400 they travel in fragments
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1400, 8192])]
    pub sizes: Vec<usize>,
    /// Who chooses the cores, in turn
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Steering::Default, Steering::Rps, Steering::Vse])]
    pub steering: Vec<Steering>,
    /// Who encrypts; an experiment's own choice
    #[arg(skip)]
    pub cipher: Cipher,
    /// Also write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the figures as CSV, a few files for each experiment
    #[arg(long, value_name = "DIRECTORY")]
    csv: Option<PathBuf>,
    /// Also write a page with tables and plots (HTML)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Settings {
    /// The factor on the papers' rates.
    pub fn scale(&self) -> Scale {
        Scale { capacity: self.capacity }
    }

    /// Work of the stage for each byte of a frame. Where only counts matter, two flows are to fit on one core, so that nothing is lost that would be counted.
    pub fn work(&self) -> NsPerByte {
        const LIGHT: f64 = 0.4;
        let NsPerByte(work) = self.scale().work();
        NsPerByte(if self.counts { work * LIGHT } else { work })
    }

    /// How flows begin.
    pub fn pace(&self) -> Pace {
        if self.counts { Pace::SLOW } else { Pace::USUAL }
    }

    /// Whether rates mean nothing: of cores that are slow, but all as slow, they do.
    fn counts_only(&self) -> bool {
        let here = std::thread::available_parallelism().map_or(1, usize::from);
        self.counts || self.guest && usize::from(self.cores) > here
    }

    fn check(&self) -> Result<()> {
        anyhow::ensure!((0.05..=600.0).contains(&self.seconds), "--seconds: 0.05 to 600");
        anyhow::ensure!((1.0..=10_000.0).contains(&self.capacity), "--capacity: 1 to 10000 Mbit/s");
        let are_possible = self.sizes.iter().all(|size| (64..=8192).contains(size));
        anyhow::ensure!(are_possible, "--sizes: 64 to 8192 bytes");
        Ok(())
    }

    fn wanted(&self) -> Result<Vec<&'static Experiment>> {
        if self.experiments.iter().any(|name| name == "all") {
            // Inside, the machine says `--counts` of a kernel that is known.
            let has_esp = self.guest || self.counts;
            let is_meant = |experiment: &&Experiment| {
                (experiment.counts || !(self.guest || self.counts))
                    && (experiment.name != IPSEC || has_esp)
            };
            return Ok(EXPERIMENTS.iter().filter(is_meant).collect());
        }
        let find = |name: &String| {
            let found = EXPERIMENTS.iter().find(|experiment| experiment.name == name);
            found
                .with_context(|| format!("no experiment {name:?}; there are: {}", NAMES.join(", ")))
        };
        self.experiments.iter().map(find).collect()
    }
}

/// One of the papers' experiments.
pub struct Experiment {
    /// As typed.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// Whether it counts who processed what, which an emulated machine can show.
    pub counts: bool,
    run: fn(&Experiment, &Settings) -> Result<Findings>,
}

static EXPERIMENTS: [Experiment; NAMES.len()] = [
    Experiment {
        name: NAMES[0],
        about: "two flows on one core or two, a flow on its VM's core or another (VS-extend, table 4)",
        counts: true,
        run: collision::run,
    },
    Experiment {
        name: NAMES[1],
        about: "two flows with ever new ports: throughput over time, loss, who processed what (VS-extend, figure 6, tables 5 and 6)",
        counts: true,
        run: two_flows::run,
    },
    Experiment {
        name: NAMES[2],
        about: "three VMs on too few cores, one with priority (VS-extend, table 7)",
        counts: true,
        run: priority::run,
    },
    Experiment {
        name: NAMES[3],
        about: "cost of a frame with 10 to 100 000 rules (VSE slides)",
        counts: false,
        run: entries::run,
    },
    Experiment {
        name: NAMES[4],
        about: "throughput of the interrupted core alone, and of two in a row (VSE slides)",
        counts: false,
        run: redirect::run,
    },
    Experiment {
        name: NAMES[5],
        about: "datagrams in fragments beside whole ones (VS-extend, table 6)",
        counts: true,
        run: fragments::run,
    },
    Experiment {
        name: NAMES[6],
        about: "from a core's overload to a flow's first frame on another (not in the papers; Open vSwitch takes a minute or more)",
        counts: false,
        run: reaction::run,
    },
    Experiment {
        name: NAMES[7],
        about: "driver, packet processing, vhost and guest of one flow on cores of their own or shared: models A to D (VSE slides)",
        counts: true,
        run: models::run,
    },
    Experiment {
        name: NAMES[8],
        about: "collisions, two flows, and three VMs of which one has priority, through a tunnel that the kernel encrypts (VS-extend, tables 4 to 7; needs a kernel with ESP, or --guest)",
        counts: true,
        run: ipsec::run,
    },
];

/// Their names.
pub const NAMES: [&str; 9] = [
    "vse-collision",
    "vse-two-flows",
    "vse-priority",
    "vse-entries",
    "vse-redirect",
    "fragments",
    "vse-reaction",
    "models",
    IPSEC,
];

/// The one that needs the kernel's ESP.
const IPSEC: &str = "vse-ipsec";

/// A whole run.
#[derive(Debug, Serialize)]
struct Run {
    bench: &'static str,
    machine: Machine,
    rounds: u32,
    seconds: f64,
    capacity_mbps: f64,
    experiments: Vec<Findings>,
}

/// What may be typed after `suiro lab`.
pub fn commands() -> clap::Command {
    Cli::command().name("lab")
}

/// Does what the command line behind `suiro lab` says. Help and usage errors end the process, as they do for every command.
///
/// # Errors
/// The step that failed, with its remedy; whatever had been started is gone by then.
pub fn run(arguments: Vec<OsString>) -> Result<()> {
    let cli = Cli::parse_from(std::iter::once(OsString::from("suiro lab")).chain(arguments));
    match cli.command {
        Command::List => {
            let width = NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
            EXPERIMENTS.iter().for_each(|experiment| {
                println!("{:<width$}  {}", experiment.name, experiment.about)
            });
            Ok(())
        }
        Command::Run(settings) => run_all(&settings),
        Command::Domain(command) => crate::domain::run(command),
    }
}

fn run_all(settings: &Settings) -> Result<()> {
    settings.check()?;
    let wanted = settings.wanted()?;
    if settings.guest {
        let _keeper = Keeper::start()?;
        return emulated::run(settings, &wanted);
    }
    if !rustix::process::geteuid().is_root() {
        bail!("the experiments make network namespaces and load BPF programs: run as root");
    }
    let _keeper = Keeper::start()?;
    let mut run = Run {
        bench: "lab",
        machine: Machine::here(),
        rounds: settings.rounds,
        seconds: settings.seconds,
        capacity_mbps: settings.capacity,
        experiments: Vec::new(),
    };
    println!("{}", run.machine);
    for experiment in wanted {
        let findings = (experiment.run)(experiment, settings).context(experiment.name)?;
        let findings = if settings.counts { findings.counts_only() } else { findings };
        print::print(&findings);
        run.experiments.push(findings);
        // What there is so far is kept if a later experiment fails.
        write(settings, &run)?;
    }
    Ok(())
}

fn write(settings: &Settings, run: &Run) -> Result<()> {
    if let Some(path) = &settings.json {
        let text = serde_json::to_string_pretty(run)? + "\n";
        std::fs::write(path, text)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    if let Some(directory) = &settings.csv {
        run.experiments.iter().try_for_each(|findings| csv::write(directory, findings))?;
    }
    if let Some(path) = &settings.report {
        let text = page::page(&run.machine, &run.experiments)?;
        std::fs::write(path, text)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(())
}
