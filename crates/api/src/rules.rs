//! Rules, groups and meters, in `ovs-ofctl`'s syntax.

use crate::Cookie;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// Rules to add, change or delete.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleChange {
    /// Rules, in the syntax of `ovs-ofctl`; for a deletion matches without actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["priority=10,ip,nw_dst=10.0.0.1,actions=output:2"]))]
    pub flows: Vec<String>,
    /// Groups, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Meters, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meters: Vec<String>,
    /// Change or delete only rules with exactly this match and priority.
    #[serde(default)]
    pub strict: bool,
    /// Of these kinds delete all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<RuleKind>,
}

/// A kind of rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// Flows.
    Flows,
    /// Groups, and the flows that use them.
    Groups,
    /// Meters, and the flows that use them.
    Meters,
}

/// A group and its counters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GroupView {
    /// Its number.
    pub group_id: u32,
    /// As `ovs-ofctl dump-groups` prints it.
    pub text: String,
    /// As `ovs-ofctl dump-group-stats` prints it.
    pub stats: String,
}

/// A meter and its counters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MeterView {
    /// Its number.
    pub meter_id: u32,
    /// As `ovs-ofctl dump-meters` prints it.
    pub text: String,
    /// As `ovs-ofctl meter-stats` prints it.
    pub stats: String,
}

/// A rule, whole as text and in parts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlowLine {
    /// As `ovs-ofctl dump-flows` prints it.
    pub text: String,
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// Its cookie; text, for JavaScript and others round numbers above 2⁵³.
    pub cookie: Cookie,
    /// Packets that it matched.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Seconds since it was added.
    pub duration_s: f64,
    /// Seconds without a packet after which it goes; 0: never.
    pub idle_timeout_s: u16,
    /// Seconds after which it goes; 0: never.
    pub hard_timeout_s: u16,
    /// What it matches.
    #[serde(rename = "match")]
    pub matching: String,
    /// What it does.
    pub actions: String,
}

/// The rules of a switch, as an addition has them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlowsView {
    /// Each rule, in no particular order.
    pub flows: Vec<FlowLine>,
}

/// How many parts of a change were applied.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    /// Flows, groups and meters.
    pub applied: usize,
    /// Ports that they name and that the switch does not have yet; left out where it has all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub absent_ports: BTreeSet<u32>,
}
