//! What is true of steering now, as API and command line show it.
//!
//! Counters only go up while an interface is attached; whoever wants rates looks twice and divides by the difference of `at_ns`.

use super::{InterfaceSpec, PolicySpec, VmSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// All of it at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SteerView {
    /// When: nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// The policy.
    pub policy: PolicySpec,
    /// Interfaces, by name.
    pub interfaces: Vec<InterfaceView>,
    /// Cores, by number.
    pub cores: Vec<CoreView>,
    /// Virtual machines, by name.
    pub vms: Vec<VmView>,
    /// Rules in force.
    pub rules: usize,
}

/// A steered interface.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct InterfaceView {
    /// Its name.
    pub name: String,
    /// What was asked for.
    #[serde(flatten)]
    pub spec: InterfaceSpec,
    /// `native` (in the driver) or `workers`; absent while it is not attached.
    pub hook: Option<String>,
    /// Why it is not in the driver, or another thing to know.
    pub note: Option<String>,
    /// Whether an earlier node had attached it, and steering went on in between.
    pub adopted: bool,
    /// Why it is not attached, if it is not.
    pub fault: Option<FaultView>,
    /// Frames by what became of them.
    pub frames: BTreeMap<String, u64>,
    /// Frames handed to each core.
    pub frames_by_core: BTreeMap<u16, u64>,
    /// Rules of this interface, each by its own entries.
    pub entries: usize,
    /// Units (groups and rules) that have a core.
    pub placed: usize,
    /// Moves since it was attached.
    pub moves: u64,
}

impl InterfaceView {
    /// Whether programs in the kernel steer its frames, and not a switch's workers.
    pub fn is_in_kernel(&self) -> bool {
        self.hook.is_some() && !self.name.starts_with(super::SWITCH_PREFIX)
    }
}

/// What is wrong with a thing, at which step, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FaultView {
    /// What was being done.
    pub step: String,
    /// Why it failed.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

/// A core.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CoreView {
    /// Its number.
    pub core: u16,
    /// Its NUMA node.
    pub numa: u16,
    /// The other thread of the same core, if there is one.
    pub sibling: Option<u16>,
    /// `allowed`, `reserved` (for priority flows) or `excluded`.
    pub role: String,
    /// Virtual machines with a vCPU pinned to it, by name.
    pub pinned: Vec<String>,
    /// Load of the last moments in percent, by stage, and `total`.
    pub load_percent: BTreeMap<String, f64>,
    /// Nanoseconds spent since the node began to watch, by stage; `idle` and `other` among them.
    pub spent_ns: BTreeMap<String, u64>,
    /// Units placed on it.
    pub units: usize,
    /// Frames steered to it.
    pub frames: u64,
}

/// A unit: what is moved as one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct UnitView {
    /// Its interface.
    pub on: String,
    /// Its number there.
    pub unit: u32,
    /// The rule whose frames it is; a flow group when absent.
    pub rule: Option<String>,
    /// Where its frames go; absent while nothing was decided.
    pub core: Option<u16>,
    /// Where it is going to, if it is on the move.
    pub wanted: Option<u16>,
    /// Why.
    pub reason: Option<String>,
    /// Frames so far.
    pub frames: u64,
    /// Times that it moved.
    pub moves: u64,
    /// The machine that its frames are for.
    pub vm: Option<u16>,
    /// It has priority.
    pub priority: bool,
}

/// A virtual machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VmView {
    /// Its name.
    pub name: String,
    /// What is known of it.
    #[serde(flatten)]
    pub spec: VmSpec,
    /// Who says so: `declared`, or what it was found by.
    pub source: String,
    /// Its process, if it was found.
    pub pid: Option<u32>,
}

/// A rule at work on one interface.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlowView {
    /// The interface it was given for; all when absent.
    pub on: Option<String>,
    /// As it reads back.
    pub rule: String,
    /// The interface of these counters.
    pub interface: Option<String>,
    /// Frames that matched.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where they go now; absent while no frame came, or where the frame decides.
    pub core: Option<u16>,
    /// Why.
    pub reason: Option<String>,
}

/// Why a flow is where it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyView {
    /// The interface.
    pub on: String,
    /// The flow, as understood.
    pub flow: String,
    /// The rule that takes it; absent when none does.
    pub rule: Option<String>,
    /// What is moved as one: `rule`, or `group N of M`.
    pub unit: Option<String>,
    /// Where it goes now.
    pub core: Option<u16>,
    /// Where it is going to, if it is on the move.
    pub wanted: Option<u16>,
    /// Frames of the unit.
    pub frames: u64,
    /// The last decision about it.
    pub decision: Option<DecisionView>,
    /// Earlier ones that are still remembered, the latest first.
    pub earlier: Vec<DecisionView>,
}

/// One decision.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DecisionView {
    /// When: nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// How long ago, in milliseconds; absent when that is not remembered.
    pub age_ms: Option<u64>,
    /// The core before it.
    pub from: Option<u16>,
    /// The core chosen.
    pub core: u16,
    /// Why, in words.
    pub reason: String,
    /// The cores that were looked at; empty when that is not remembered.
    pub candidates: Vec<CandidateView>,
}

/// A core that was looked at.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CandidateView {
    /// The core.
    pub core: u16,
    /// Its score, the lowest wins; absent when it could not be chosen.
    pub score: Option<u32>,
    /// Why it could not be, or `chosen`.
    pub verdict: String,
}
