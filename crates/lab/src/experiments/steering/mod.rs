//! Who chooses the cores.
//!
//! The contenders take turns on one testbed: each is put in place for a window and removed behind it. Ours is used as a user would: the binary, a node in the
//! receiving host's namespace, `suiro steer …`.

mod node;

use super::cipher::Cipher;
use super::hosts::Hosts;
use super::traffic::receiver::Vm;
use anyhow::{Context, Result};
use clap::ValueEnum;
use node::Node;
use std::path::PathBuf;

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

/// What a contender is told.
#[derive(Clone, Copy, Default, Debug)]
pub struct Told<'v> {
    /// The VMs and their cores.
    pub vms: &'v [Vm],
    /// The VM whose flow has priority; the interrupted core is kept for it, and the flows of the others run on their own VM's core.
    pub priority: Option<u8>,
    /// The one core that all flows go to, instead of a choice.
    pub core: Option<usize>,
    /// One VM whose flow goes to one core, whatever the others do.
    pub fixed: Option<(u8, usize)>,
    /// Whether flows that were placed may be moved; the paper's stay.
    pub moves: bool,
    /// Rules that match nothing that is sent.
    pub idle_rules: u32,
}

/// Puts contenders in place.
pub struct Steerer<'t> {
    hosts: &'t Hosts,
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
    pub fn new(hosts: &'t Hosts, contenders: &[Steering], cipher: Cipher) -> Result<Self> {
        let wanted = contenders.contains(&Steering::Vse);
        let node = wanted.then(|| Node::start(hosts, cipher)).transpose()?;
        Ok(Self { hosts, node })
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
            Steering::Rps => {
                let all = self.hosts.layout.mask();
                self.hosts.set_rps(told.core.map_or(all, |core| 1 << core))?;
            }
            Steering::Vse => self.node()?.steer(told, &self.hosts.layout)?,
        }
        Ok(in_place)
    }

    /// Has a VM's flow go to another core from now on, steered by suiro already.
    ///
    /// # Errors
    /// What suiro says.
    pub fn send_to(&self, vm: u8, core: usize) -> Result<()> {
        self.node()?.add_rule(vm, Told { core: Some(core), ..Told::default() })
    }

    /// What a contender says of where a VM's flow goes, and why; only suiro says anything.
    ///
    /// # Errors
    /// What suiro says instead.
    pub fn why(&self, steering: Steering, vm: u8) -> Result<Option<String>> {
        match steering {
            Steering::Default | Steering::Rps => Ok(None),
            Steering::Vse => self.node()?.why(vm).map(Some),
        }
    }

    fn node(&self) -> Result<&Node> {
        self.node.as_ref().context("vse: no node was started")
    }

    fn remove(&self, steering: Steering, vms: &[u8]) -> Result<()> {
        match steering {
            Steering::Default => Ok(()),
            Steering::Rps => self.hosts.set_rps(0),
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

/// The program that runs: the lab is a part of it.
pub fn binary() -> Result<PathBuf> {
    std::env::current_exe().context("own program: path is unknown")
}
