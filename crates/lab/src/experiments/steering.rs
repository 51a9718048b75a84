//! Who chooses the cores.
//!
//! The contenders take turns on one testbed: each is put in place for a window and removed behind it. Ours is used as a user would: the binary, a node in the
//! receiving host's namespace, `suiro steer …`.

use super::layout::Layout;
use super::testbed::{Testbed, address};
use super::traffic::receiver::Vm;
use crate::netns::run;
use crate::peer::Process;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A contender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Steering {
    /// Nobody: all work is done where the interrupt was.
    Default,
    /// The kernel, by a hash over the packet's header (RPS, which does in software what RSS does in a network card).
    Rps,
    /// suiro, by the paper's policy.
    Vse,
}

impl Steering {
    /// As in tables and data files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Rps => "rps",
            Self::Vse => "vse",
        }
    }
}

/// What `vse` is told.
#[derive(Clone, Copy, Debug)]
pub struct Told<'v> {
    /// The VMs and their cores.
    pub vms: &'v [Vm],
    /// The VM whose flow has priority; the interrupted core is kept for it, and the flows of the others run on their own VM's core.
    pub priority: Option<u8>,
}

/// Puts contenders in place.
pub struct Steerer<'t> {
    testbed: &'t Testbed,
    node: Option<Node>,
}

/// Removes what was put in place.
pub struct InPlace<'s> {
    steerer: &'s Steerer<'s>,
    steering: Steering,
    vms: Vec<u8>,
}

impl<'t> Steerer<'t> {
    /// Starts a node if one of the contenders needs it.
    ///
    /// # Errors
    /// The node does not come up; its log says why.
    pub fn new(testbed: &'t Testbed, contenders: &[Steering]) -> Result<Self> {
        let wanted = contenders.contains(&Steering::Vse);
        let node = wanted.then(|| Node::start(testbed)).transpose()?;
        Ok(Self { testbed, node })
    }

    /// Puts one in place until the value is dropped.
    ///
    /// # Errors
    /// The step that failed.
    pub fn put(&self, steering: Steering, told: Told<'_>) -> Result<InPlace<'_>> {
        let vms = told.vms.iter().map(|vm| vm.number).collect();
        let in_place = InPlace { steerer: self, steering, vms };
        match steering {
            Steering::Default => {}
            Steering::Rps => self.testbed.set_rps(self.testbed.layout.mask())?,
            Steering::Vse => self.node()?.steer(told, &self.testbed.layout)?,
        }
        Ok(in_place)
    }

    fn node(&self) -> Result<&Node> {
        self.node.as_ref().context("vse: no node was started")
    }

    fn remove(&self, steering: Steering, vms: &[u8]) -> Result<()> {
        match steering {
            Steering::Default => Ok(()),
            Steering::Rps => self.testbed.set_rps(0),
            Steering::Vse => self.node()?.leave(vms),
        }
    }
}

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.steerer.remove(self.steering, &self.vms) {
            eprintln!("{}: removing it failed: {error:#}", self.steering.name());
        }
    }
}

/// Longest start of a node. Chosen: ten times what it takes.
const START: Duration = Duration::from_secs(20);

/// A node in the receiving host, with no switch.
struct Node {
    api: PathBuf,
    _process: Process,
    _directory: tempfile::TempDir,
}

impl Node {
    fn start(testbed: &Testbed) -> Result<Self> {
        let directory = tempfile::tempdir().context("a directory for the node")?;
        let (path, log) = (directory.path().to_owned(), directory.path().join("node.log"));
        let config = path.join("node.toml");
        let place = path.display();
        std::fs::write(
            &config,
            format!("[node]\nrun_dir = \"{place}\"\nstate_dir = \"{place}\"\n"),
        )?;
        let mut command = Command::new(binary()?);
        command.args(["node", "--config"]).arg(&config);
        // Not by `ip netns exec`: that would hide the file system in which programs and maps are pinned.
        let process = testbed.host.enter(|| Process::start(&mut command, &log))?;
        let node = Self { api: path.join("api.sock"), _process: process, _directory: directory };
        let deadline = Instant::now() + START;
        while node.run(&["status"]).is_err() {
            if Instant::now() >= deadline {
                bail!(
                    "the node does not answer: {}",
                    std::fs::read_to_string(&log).unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(node)
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        run(Command::new(binary()?).arg("--api").arg(&self.api).args(arguments))
    }

    fn steer(&self, told: Told<'_>, layout: &Layout) -> Result<()> {
        let cores = format!("0-{}", layout.host - 1);
        let reserved = told.priority.map_or("none".into(), |_| layout.rx.to_string());
        // As in the paper: what no rule names stays, and what is placed is not moved.
        self.run(&[
            "steer",
            "policy",
            "set",
            "vse",
            "--cores",
            &cores,
            "--reserved",
            &reserved,
            "--moves",
            "off",
        ])?;
        for vm in told.vms {
            let (name, number, address) =
                (name(vm.number), vm.number.to_string(), address(vm.number));
            let core = vm.core.map(|core| core.to_string());
            let words = ["steer", "vm", "add", &name, "--id", &number, "--address", &address];
            let cores = core.iter().flat_map(|core| ["--cores", core]);
            self.run(&words.into_iter().chain(cores).collect::<Vec<_>>())?;
            self.run(&["steer", "flow", "add", &rule(vm.number, told.priority)])?;
        }
        self.run(&["steer", "attach", "eth0", "--unmatched", "stay"]).map(drop)
    }

    fn leave(&self, vms: &[u8]) -> Result<()> {
        self.run(&["steer", "detach", "eth0"])?;
        self.run(&["steer", "flow", "del", "--all"])?;
        vms.iter().try_for_each(|&vm| self.run(&["steer", "vm", "del", &name(vm)]).map(drop))
    }
}

fn name(vm: u8) -> String {
    format!("vm{vm}")
}

/// The rule for a VM's flow: by the VM's address inside the tunnel.
fn rule(vm: u8, priority: Option<u8>) -> String {
    let place = match priority {
        Some(first) if first == vm => "place(core=auto,priority)",
        Some(_) => "place(core=auto,own)",
        None => "place(core=auto)",
    };
    format!("ip,vm_id={vm} actions={place}")
}

/// The program that runs: the lab is a part of it. Tests are their own program, and name it.
pub fn binary() -> Result<PathBuf> {
    match std::env::var_os("SUIRO_BINARY") {
        Some(path) => Ok(path.into()),
        None => std::env::current_exe().context("own program: path is unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_the_vm_and_who_goes_first() {
        assert_eq!(rule(2, None), "ip,vm_id=2 actions=place(core=auto)");
        assert!(rule(1, Some(1)).ends_with("place(core=auto,priority)"));
        assert!(rule(2, Some(1)).ends_with("place(core=auto,own)"));
    }
}
