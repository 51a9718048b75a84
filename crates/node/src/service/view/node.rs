//! The node as it is shown.

use crate::fault::{Fault, chain};
use crate::service::Node;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// suiro's version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since it began to serve.
    pub uptime_s: u64,
    /// The configuration file.
    pub config_file: Option<String>,
    /// Sockets.
    pub run_dir: String,
    /// Cores of the workers.
    pub cores: Vec<usize>,
    /// Switches in service.
    pub switches: usize,
    /// Ports, open or not.
    pub ports: usize,
    /// The store.
    pub store: StoreView,
    /// Whether `suiro steer attach` started it, so that it ends with the last interface.
    pub background: bool,
}

/// What survives a restart.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoreView {
    /// The file.
    pub file: String,
    /// Why changes are not being saved, if they are not; they wait in memory then.
    pub fault: Option<Fault>,
    /// Where a damaged file went at the start.
    pub set_aside: Option<String>,
    /// Things that the start found damaged or could not take back: they are not in force, and the log names each.
    pub left_out: usize,
}

impl Node {
    /// The node as it is now.
    pub fn view(&self) -> NodeView {
        let members = self.directory.all();
        let problem = self.store.problem();
        let store_fault = |problem: &crate::store::StoreError| {
            Fault::new("state file", "save changes", chain(problem), problem.remedy())
        };
        NodeView {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_s: self.facts.started.elapsed().as_secs(),
            config_file: self.facts.config_file.as_ref().map(|path| path.display().to_string()),
            run_dir: self.run_dir.path().display().to_string(),
            cores: self.facts.config.cores.clone(),
            switches: members.len(),
            ports: members.iter().map(|member| member.state().ports.len()).sum(),
            background: self.background,
            store: StoreView {
                file: self.store.path().display().to_string(),
                fault: problem.as_deref().map(store_fault),
                set_aside: self.facts.set_aside.as_ref().map(|path| path.display().to_string()),
                left_out: self.store.left_out(),
            },
        }
    }
}
