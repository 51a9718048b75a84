//! What is said between a domain's controller, its nodes and its users: files, plans, states, reports.
//!
//! A node calls its controller and says what it has ([`Report`]); the answer is what it shall have ([`Wanted`]). Nothing depends on having heard an
//! earlier answer.

use crate::{Action, AuditReport, CircuitState, CircuitView, Fault, PartName, StrayView};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use utoipa::ToSchema;

/// Where a controller's sockets are if nothing else is said.
pub const DEFAULT_CONTROL_DIR: &str = "/run/suiro-control";

/// A file of a user's, and those that it names.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// What messages call it.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Texts of files that it names, by the path that it names them by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// What a file declares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", tag = "declares")]
pub enum Declares {
    /// The operator's domain.
    Domain,
    /// A slice.
    Slice {
        /// Which: `tenant/slice`.
        slice: String,
        /// Paths of files that its text names; the client sends their texts.
        files: Vec<String>,
    },
}

/// What becomes of one object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Planned {
    /// What.
    pub action: Action,
    /// The object: `link a`.
    pub thing: String,
    /// Its node, or those of its two ends.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// What of it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What it interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<String>,
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.action.sign(), self.thing)?;
        if !self.at.is_empty() {
            write!(f, " at {}", self.at)?;
        }
        if !self.keys.is_empty() {
            write!(f, ": {}", self.keys.join(", "))?;
        }
        self.interrupts.iter().try_for_each(|what| write!(f, "; interrupts {what}"))
    }
}

/// What a declaration would change, or has changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanView {
    /// The slice.
    pub slice: String,
    /// How often it has changed; with a plan, before.
    pub generation: u64,
    /// Names this plan: an apply of another one is refused.
    pub plan: String,
    /// Objects that change.
    pub changes: Vec<Planned>,
}

/// How far a slice is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SliceState {
    /// It is admitted, and its time has not come.
    Scheduled,
    /// Not every node has its part yet.
    Building,
    /// All have; links, guests or sessions are not up yet.
    Proving,
    /// All of it works.
    Ready,
    /// Something of it that worked does not.
    Degraded,
    /// It goes, and is waited for.
    Deleting,
}

impl SliceState {
    /// The word that users read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Building => "building",
            Self::Proving => "proving",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Deleting => "deleting",
        }
    }
}

/// A slice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SliceView {
    /// `tenant/slice`.
    pub slice: String,
    /// This life of its name.
    pub uid: String,
    /// How often it has changed.
    pub generation: u64,
    /// At which revision of the store it changed last.
    pub revision: u64,
    /// How far it is.
    pub state: SliceState,
    /// When it begins, as its file says; at once, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// When it ends, as its file says; when it is deleted, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The node of each switch, guest and external.
    pub nodes: BTreeMap<String, String>,
    /// Where each guest is.
    pub guests: BTreeMap<String, GuestPlace>,
    /// Which of the domain's externals each of its own uses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub externals: BTreeMap<String, String>,
    /// Its links, guests' ports whose switch is on another node, and ways to externals: `_out.NAME`.
    pub links: BTreeMap<String, LinkView>,
    /// What is waited for.
    pub waits_for: Vec<Fault>,
}

/// A link of a slice, as probes find it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkView {
    /// The nodes that it goes by, from its first end to its second.
    pub nodes: Vec<String>,
    /// How it is. Absent of a link within one node, which has no way to prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<CircuitState>,
    /// There and back, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
    /// The way from its first end, and that to it.
    pub ways: Vec<LinkWay>,
}

/// One way of a link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkWay {
    /// The node that it begins at.
    pub from: String,
    /// The node that it ends at.
    pub to: String,
    /// Probes that were judged: the last ones.
    pub probes: u32,
    /// How many of them are lost.
    pub lost: u32,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Where a guest is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GuestPlace {
    /// Its node.
    pub node: String,
    /// Its network namespace there.
    pub netns: String,
    /// The part that declares it there.
    pub part: PartName,
    /// How its node is reached by who is on the same host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
}

/// A host, as its node says it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostView {
    /// The kernel's own id of this boot: who has the same is on the same host.
    pub boot: String,
    /// The socket of the node's API.
    #[schema(value_type = String)]
    pub socket: PathBuf,
}

/// A node of the domain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DomainNodeView {
    /// Its name.
    pub name: String,
    /// Its site.
    pub site: String,
    /// Whether it has called within the last seconds.
    pub alive: bool,
    /// Parts that it has as they are wanted, and parts that are wanted.
    pub parts: (usize, usize),
}

/// What a node says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Thousandths of cores that it has.
    pub cpu_milli: u32,
    /// Bytes of memory that it has.
    pub memory: u64,
    /// Kinds of guest that it can have.
    pub kinds: Vec<String>,
    /// Where it is.
    pub host: HostView,
    /// Its parts that are the domain's, by name.
    pub parts: BTreeMap<PartName, PartReport>,
    /// Ends of circuits, with what their probes say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circuits: Vec<CircuitView>,
    /// Probes that come to it and have no end there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strays: Vec<StrayView>,
    /// What it found when the answer to the report before asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
}

/// What a node says of a part.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartReport {
    /// The version that is in force; none if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why the wanted version is not in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What of it does not work yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<Fault>,
}

/// What a node shall have. Parts that are not named are left alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// How often the store was taken over. A node obeys no controller of an earlier time.
    pub epoch: u64,
    /// The version of each part; none: it shall go.
    pub parts: BTreeMap<PartName, Option<String>>,
    /// Asks the node to compare what it really has with what its parts declare; the next report tells, by this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<u64>,
    /// Connections by which the controller wants to ask the node about guests: the node opens each once.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub streams: BTreeSet<u64>,
}
