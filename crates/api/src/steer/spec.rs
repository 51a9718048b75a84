//! What may be asked of steering, in the one form that API, command line and store share.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa::ToSchema;

/// Flow groups of an interface unless told otherwise. Chosen: 16 for each of 16 cores; a group's share of the load is 0.4 %.
const GROUPS: u16 = 256;
/// Fewest and most groups (design.md §5).
pub const GROUPS_RANGE: std::ops::RangeInclusive<u16> = 256..=1024;
/// Rules that an interface has room for unless told otherwise. Chosen: they take 5 MiB of the kernel's memory, the most 41.
const RULES: u32 = 16_384;
/// Fewest and most of them.
pub const RULES_RANGE: std::ops::RangeInclusive<u32> = 64..=131_072;
/// The paper's threshold.
const THRESHOLD_PERCENT: u8 = 50;

/// What becomes of frames that no rule matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    /// They are placed by the policy, group of flows by group of flows.
    #[default]
    Place,
    /// They stay on the core that they arrived on, as in the paper.
    Stay,
}

/// An interface to be steered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InterfaceSpec {
    /// Frames that no rule matches.
    pub unmatched: Unmatched,
    /// Groups that their flows are gathered in: a power of two, 256 to 1024.
    pub groups: u16,
    /// Rules that there is room for, 64 to 131072.
    pub rules_max: u32,
    /// Whether the outermost ToS byte is the paper's flow control field: 7 bits of a machine's id, then priority.
    pub fcf: bool,
}

impl Default for InterfaceSpec {
    fn default() -> Self {
        Self { unmatched: Unmatched::Place, groups: GROUPS, rules_max: RULES, fcf: false }
    }
}

/// Who chooses cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// The paper's: unpinned and below the threshold, else the core of arrival.
    #[default]
    Vse,
    /// What RSS and RPS do: by hash over the allowed cores.
    Hash,
}

impl PolicyKind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vse => "vse",
            Self::Hash => "hash",
        }
    }
}

/// How cores are chosen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySpec {
    /// Who chooses.
    pub policy: PolicyKind,
    /// Load in percent up to which a core takes new flows.
    pub threshold_percent: u8,
    /// The same for priority flows.
    pub priority_threshold_percent: u8,
    /// Cores that may be chosen; all when absent.
    pub cores: Option<Vec<u16>>,
    /// Cores kept for priority flows.
    pub reserved: Vec<u16>,
    /// Whether flows leave an overloaded core.
    pub moves: bool,
}

impl Default for PolicySpec {
    fn default() -> Self {
        Self {
            policy: PolicyKind::Vse,
            threshold_percent: THRESHOLD_PERCENT,
            priority_threshold_percent: 100,
            cores: None,
            reserved: Vec::new(),
            moves: true,
        }
    }
}

/// A change of [`PolicySpec`]: what is absent stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyPatch {
    /// Who chooses.
    pub policy: Option<PolicyKind>,
    /// Load in percent up to which a core takes new flows.
    pub threshold_percent: Option<u8>,
    /// The same for priority flows.
    pub priority_threshold_percent: Option<u8>,
    /// Cores that may be chosen; an empty list means all.
    pub cores: Option<Vec<u16>>,
    /// Cores kept for priority flows.
    pub reserved: Option<Vec<u16>>,
    /// Whether flows leave an overloaded core.
    pub moves: Option<bool>,
}

impl PolicyPatch {
    /// The policy after this change.
    pub fn apply(&self, to: &PolicySpec) -> PolicySpec {
        let cores = self.cores.as_deref().map(in_order);
        PolicySpec {
            policy: self.policy.unwrap_or(to.policy),
            threshold_percent: self.threshold_percent.unwrap_or(to.threshold_percent),
            priority_threshold_percent: self
                .priority_threshold_percent
                .unwrap_or(to.priority_threshold_percent),
            cores: cores
                .map_or_else(|| to.cores.clone(), |cores| (!cores.is_empty()).then_some(cores)),
            reserved: self.reserved.as_deref().map_or_else(|| to.reserved.clone(), in_order),
            moves: self.moves.unwrap_or(to.moves),
        }
    }
}

fn in_order(cores: &[u16]) -> Vec<u16> {
    let mut cores = cores.to_vec();
    cores.sort_unstable();
    cores.dedup();
    cores
}

/// A virtual machine, as the operator declares it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// The number that rules and the flow control field call it, 1 to 127; larger ones only with addresses.
    pub id: u16,
    /// Whose it is.
    #[serde(default)]
    pub tenant: u32,
    /// Cores that its vCPUs are pinned to.
    #[serde(default)]
    pub cores: Vec<u16>,
    /// Its addresses, by which its frames are known; without any the flow control field says whose they are.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub addresses: Vec<IpAddr>,
}

/// Rules of steering, to add or delete.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SteerRules {
    /// The rules; for a deletion matches without actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["ip,nw_src=10.0.0.1,vm_id=1,actions=place(core=auto,priority)"]))]
    pub rules: Vec<String>,
    /// Their interface; all that are steered, and will be, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Delete only rules with exactly this match and priority.
    #[serde(default)]
    pub strict: bool,
    /// Delete every rule.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// What became of the node when an interface was detached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Detached {
    /// It was started for steering, has no switches, and ends now.
    pub node_ends: bool,
}
