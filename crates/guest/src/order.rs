//! What a node tells a holder.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

/// What a holder is to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The guest's name: its host name.
    pub name: String,
    /// The file of its network namespace.
    pub netns: PathBuf,
    /// Files of its control groups that take processes.
    pub groups: Vec<PathBuf>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Names of its `/etc/hosts`.
    pub hosts: BTreeMap<String, Vec<IpAddr>>,
    /// Files under `/files`.
    pub files: BTreeMap<String, String>,
    /// Directories of the host that it must not see.
    pub hidden: Vec<PathBuf>,
    /// The first process of the guest to run in; none: a guest of its own.
    pub inside: Option<u32>,
    /// Its input and output are a terminal, which it controls.
    #[serde(default)]
    pub terminal: bool,
    /// It is not the guest's own command: it goes with its holder.
    #[serde(default)]
    pub beside: bool,
}
