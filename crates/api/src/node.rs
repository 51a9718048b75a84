//! What is shown of a node.

use crate::{BoundHit, Fault};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Directory of a node's sockets unless it is told another one.
pub const DEFAULT_RUN_DIR: &str = "/run/suiro";
/// The file in a run directory that its node holds locked.
pub const LOCK: &str = "lock";
/// The socket in a run directory for those who may only read.
pub const READ_SOCKET: &str = "read.sock";
/// The socket in a run directory for those who may capture, too.
pub const CAPTURE_SOCKET: &str = "capture.sock";

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
    /// What is wrong with the configuration file as it was last read; what was in force before stays in force.
    #[serde(default)]
    pub config_faults: Vec<Fault>,
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
    /// Bytes of memory that it has, and that it may use.
    #[serde(default)]
    pub memory: MemoryUse,
    /// Bounds that somebody has hit within a day, the last first.
    #[serde(default)]
    pub bounds: Vec<BoundHit>,
    /// Whether `suiro steer attach` started it, so that it ends with the last interface.
    pub background: bool,
}

/// Memory of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MemoryUse {
    /// Bytes that it has now.
    pub used: u64,
    /// Bytes that it may use: what `[node] memory` says, its control group or the machine, the least of them.
    pub may: u64,
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
    /// The machine that the state directory was made on, if it is another one: its node would have the same datapath ids and addresses.
    #[serde(default)]
    pub copied_from: Option<String>,
}
