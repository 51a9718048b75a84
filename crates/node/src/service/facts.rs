//! What is true of a node as long as it runs.

use crate::config::{ConfigFile, Host, NodeConfig};
use api::{Dpid, SwitchName};
use std::path::PathBuf;
use std::time::Instant;

/// A node's constants.
pub struct Facts {
    /// Its configuration.
    pub config: NodeConfig,
    /// The configuration file.
    pub config_file: ConfigFile,
    /// Where a damaged store went at the start.
    pub set_aside: Option<PathBuf>,
    /// When it began to serve.
    pub started: Instant,
    host: Host,
}

impl Facts {
    /// From now on.
    pub fn new(
        config: NodeConfig,
        config_file: ConfigFile,
        host: Host,
        set_aside: Option<PathBuf>,
    ) -> Self {
        Self { config, config_file, set_aside, started: Instant::now(), host }
    }

    /// The machine that the state directory was made on, if it is another one.
    pub fn copied_from(&self) -> Option<&str> {
        self.host.copied_from.as_deref()
    }

    /// The cores that the node may run on.
    pub fn cores(&self) -> &[usize] {
        &self.host.cores
    }

    /// The machine.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The datapath id of a switch that was given none.
    pub fn derived_dpid(&self, name: &SwitchName) -> Dpid {
        Dpid::derived(&self.host.node_id, name)
    }
}
