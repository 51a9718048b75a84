//! What the host is like: its cores, and the virtual machines found on it.

use place::{Core, CoreId, Stage};

/// One look at the host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surroundings {
    /// Its cores, by rising number, without loads and roles.
    pub cores: Vec<Core>,
    /// Virtual machines that run on it.
    pub vms: Vec<SeenVm>,
}

/// A virtual machine that was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SeenVm {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// How it was found, in a word.
    pub source: &'static str,
    /// Cores that its vCPUs are pinned to; empty if they may run anywhere.
    pub cores: Vec<CoreId>,
    /// Its threads, by what they do.
    pub threads: Vec<(u32, Stage)>,
}
