//! Guests that a part declares: programs in a network namespace of their own, whose ports are TAPs of the part's switches.
//!
//! In a part's text a guest is a table of its own. The node makes its namespace before ports are opened in it.
//!
//! ```toml
//! [[guest]]
//! name = "h1"
//! netns = "su-9f31c2aa-h1"
//! command = ["python3", "-m", "http.server"]
//!
//! [[guest.interface]]
//! name = "eth0"
//! addresses = ["10.0.0.1/24"]
//! ```

use crate::{IfName, Netns};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use utoipa::ToSchema;

/// When a guest that has ended is started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Always.
    #[default]
    Always,
    /// When it failed.
    OnFailure,
    /// Never.
    Never,
}

impl Restart {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["always", "on-failure", "never"];
}

/// A guest of kind `process`, as a part declares it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestSpec {
    /// Its name, unique in the part.
    pub name: String,
    /// Its network namespace, a name. It is made with the guest and goes with it.
    pub netns: Netns,
    /// Program and arguments. None: the namespace alone is there, with its interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Text of files that it finds in `/files`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Names that it finds in `/etc/hosts`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    pub hosts: BTreeMap<String, Vec<IpAddr>>,
    /// When it is started again.
    #[serde(default)]
    pub restart: Restart,
    /// Thousandths of a core that it may use; no bound when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u32>,
    /// Bytes of memory that it may use; no bound when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processes and threads that it may have; no bound when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Its interfaces. Each is a TAP port of a switch of the part, which names it by `netns` and `interface`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interface: Vec<GuestInterface>,
}

/// A guest's interface: what the guest's side needs beside the port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestInterface {
    /// Its name in the guest's namespace.
    #[schema(value_type = String)]
    pub name: IfName,
    /// Addresses with the length of their prefixes, such as `10.0.0.1/24`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}
