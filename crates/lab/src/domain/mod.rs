//! A domain on one machine: the commands of `suiro lab domain`.
//!
//! **Question answered**: how does somebody with one machine try slices over sites?
//!
//! * [`layout`]: which sites and nodes there are, with their namespaces, addresses and directories. A value, written down before anything is made.
//! * [`wide`]: the wide-area underlay: a namespace with a bridge, to which each node has a cable.
//! * [`outside`]: a network that a slice may have a door to.
//! * [`running`]: the processes: a `suiro node` in each node's namespace, and `suiro control` in one of its own.
//! * [`mod@portal`]: who may sign in at its portal, and where that is.
//! * [`declared`]: the operator's file. [`user`]: what a user types. [`mod@demo`]: a slice from file to ping.
//! * [`mod@prove`]: links that are broken on purpose, and what is told of them.
//! * [`mod@edit`]: a slice that is edited at random while guests talk.
//! * [`real`]: what ends, a controller and the underlay see of a slice.
//! * [`scale`]: how long large slices and many slices take; a benchmark.
//! * [`storm`]: what one tenant notices of another one's attacks.
//! * [`kill`]: controller and nodes killed in turn, while guests [`talk`].
//! * [`osken`]: the packages that a tenant's controller in a guest needs.
//! * [`steps`]: what is being done, with its seconds, and what is [`used`] for it.
//!
//! **Invariants**: whatever is made stands in the layout's file first, so `down` removes it also after a `kill -9` at any moment. Processes are found
//! by the namespace that they are in, not by their names. `up` makes only what is missing. Unlike all else in this crate, a domain outlives the
//! command that makes it. The lab talks to nodes as a user does, through the binary.

mod declared;
mod demo;
mod edit;
mod kill;
mod layout;
mod osken;
mod outside;
mod portal;
mod prove;
mod real;
mod running;
pub mod scale;
mod steps;
mod storm;
mod talk;
mod used;
mod user;
mod wide;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use layout::{Layout, Node, Size};
use running::State;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, ChildStdin, Stdio};
use steps::Steps;

/// `suiro lab domain`.
#[derive(Subcommand)]
pub enum Command {
    /// Make sites and nodes on this machine, joined by a wide-area network; done twice, only what is missing is made
    #[command(after_help = "\
Examples:
  suiro lab domain up                        three sites of one node each
  suiro lab domain up --sites 3 --nodes 5    fifteen nodes
  suiro lab domain status
  suiro lab domain down                      leaves nothing")]
    Up(Size),
    /// End all of it and remove what it made
    Down(Which),
    /// A ring over three sites under the tenant's own os-ken, from its file to pings between its guests, in a lab of its own
    Demo(Which),
    /// Break links on purpose, before and during their life: none may be called up, each must be named with way and cause; in a lab of its own
    Prove(ProveArgs),
    /// Edit a slice at random while guests talk: other links must notice nothing, and only what the plan names may change; in a lab of its own
    Edit(EditArgs),
    /// Kill controller and nodes in turn while guests talk: afterwards all must be as declared; in a lab of its own
    Kill(KillArgs),
    /// Look at a slice as its guests, its controller and the underlay do: is it a real network, and is nothing of it seen outside? In a lab of its own
    Real(ProveArgs),
    /// Let one tenant attack another on the same node: loops, addresses, packet-ins, flow-mods, applies; in a lab of its own
    Storm(StormArgs),
    /// Say what runs
    Status(Which),
}

/// One of several labs on a machine.
#[derive(Args, Clone, Debug)]
pub struct Which {
    /// Name of the lab; namespaces and directories carry it
    #[arg(long, default_value = "lab", value_parser = layout::name)]
    name: String,
}

/// `suiro lab domain prove` and `real`.
#[derive(Args, Clone, Debug)]
pub struct ProveArgs {
    /// A part of it, in seconds
    #[arg(long)]
    short: bool,
    /// Write the table as JSON, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Which lab
    #[command(flatten)]
    which: Which,
}

/// `suiro lab domain storm`.
#[derive(Args, Clone, Debug)]
pub struct StormArgs {
    /// Seconds of each attack
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Write the table as JSON, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Which lab
    #[command(flatten)]
    which: Which,
}

/// `suiro lab domain edit`.
#[derive(Args, Clone, Debug)]
pub struct EditArgs {
    /// Edits: a link or guest comes or goes, or a rate changes
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    edits: u32,
    /// Which edits: the same number, the same edits
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the table as JSON, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Which lab
    #[command(flatten)]
    which: Which,
}

/// `suiro lab domain kill`.
#[derive(Args, Clone, Debug)]
pub struct KillArgs {
    /// Kills: controller, each node, controller again
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Which lab
    #[command(flatten)]
    which: Which,
}

/// Does what was typed.
///
/// # Errors
/// The step that failed, with its remedy. What was made so far stays, and `down` removes it.
pub fn run(command: Command) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "a lab makes network namespaces: run as root");
    match command {
        Command::Up(size) => up(&size).map(drop),
        Command::Prove(ProveArgs { short, json, which }) => {
            own(which, |layout| prove::run(layout, short, json.as_deref()))
        }
        Command::Real(ProveArgs { short, json, which }) => {
            own(which, |layout| real::run(layout, short, json.as_deref()))
        }
        Command::Storm(StormArgs { seconds, json, which }) => {
            own(which, |layout| storm::run(layout, seconds, json.as_deref()))
        }
        Command::Demo(which) => own(which, |layout| demo::run(layout, &mut Steps::at(layout))),
        Command::Edit(EditArgs { edits, seed, json, which }) => {
            own(which, |layout| edit::run(layout, edits, seed, json.as_deref()))
        }
        Command::Kill(KillArgs { rounds, which }) => own(which, |layout| kill::run(layout, rounds)),
        Command::Down(which) => down(&which.name),
        Command::Status(which) => status(&which.name),
    }
}

fn up(size: &Size) -> Result<Layout> {
    let wanted = Layout::new(size)?;
    let layout = match Layout::kept(&size.which.name)? {
        Some(kept) if kept != wanted => bail!(
            "lab {} is another one already: {kept}; remove it first: suiro lab domain down --name {}",
            kept.name,
            kept.name
        ),
        Some(kept) => kept,
        None => wanted.keep()?,
    };
    let mut steps = Steps::at(&layout);
    steps.done("wide-area network", || wide::make(&layout))?;
    steps.done("outside network", || outside::make(&layout))?;
    steps.done("controller", || running::start_controller(&layout))?;
    steps.done("domain", || {
        let file = declared::write(&layout)?;
        let text = file.to_str().context("the lab's directory is text")?;
        user::suiro(&layout, &["apply", "-f", text]).map(|_| text.into())
    })?;
    steps.done("nodes", || running::start(&layout))?;
    steps.done("members", || user::members(&layout))?;
    steps.done("users", || portal::users(&layout))?;
    println!("{layout} is up in {}", steps.total());
    println!("its controller: export SUIRO_CONTROL={}", layout.controller.socket().display());
    println!("its portal: {}", portal::address(&layout)?);
    Ok(layout)
}

/// Does that in a lab of three sites of its own, which is gone afterwards.
fn own(which: Which, work: impl FnOnce(&Layout) -> Result<()>) -> Result<()> {
    own_of(Size { sites: 3, nodes: 1, which }, work)
}

/// The same, of any size.
fn own_of(size: Size, work: impl FnOnce(&Layout) -> Result<()>) -> Result<()> {
    let name = size.which.name.clone();
    ensure!(
        Layout::kept(&name)?.is_none(),
        "lab {name} is there: this makes one of its own; give it another --name"
    );
    let _keeper = keeper(&name)?;
    let done = up(&size).and_then(|layout| work(&layout));
    done.and(down(&name))
}

/// Removes the lab when this process has ended, however that was: its end of a pipe closes, and a shell of another process group sees that.
fn keeper(name: &str) -> Result<ChildStdin> {
    let mut shell = process::Command::new("sh");
    shell.args(["-c", "trap '' PIPE; read -r _; exec \"$0\" lab domain down --name \"$1\""]);
    shell.arg(std::env::current_exe()?).arg(name);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let shell = shell.spawn().context("what clears up after a run cannot be started")?;
    shell.stdin.context("its pipe")
}

fn down(name: &str) -> Result<()> {
    let Some(layout) = Layout::kept(name)? else {
        println!("lab {name} is not there: nothing to remove");
        return Ok(());
    };
    let mut steps = Steps::default();
    steps.done("processes", || running::end(&layout))?;
    steps.done("wide-area network", || wide::remove(&layout))?;
    osken::hide(&layout)?;
    layout.forget()?;
    println!("{layout} is gone in {}", steps.total());
    Ok(())
}

fn status(name: &str) -> Result<()> {
    let Some(layout) = Layout::kept(name)? else {
        bail!("lab {name} is not there; make it: suiro lab domain up");
    };
    println!(
        "{:<6} {:<10} {:<14} {:<12} {:>8} SOCKET",
        "NODE", "SITE", "NAMESPACE", "ADDRESS", "PID"
    );
    for node in layout.hosts() {
        let Node { name, site, address4, .. } = node;
        let (pid, at) = match running::state(node) {
            State::Serves(pid) => (pid.to_string(), node.socket().display().to_string()),
            State::Silent(pid) => (pid.to_string(), "does not answer yet".into()),
            State::Absent => ("-".into(), "does not run; suiro lab domain up starts it".into()),
        };
        println!("{name:<6} {site:<10} {:<14} {address4:<12} {pid:>8} {at}", node.namespace);
    }
    Ok(())
}
