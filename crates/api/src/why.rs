//! What would become of a packet, asked and answered.

use crate::Cookie;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A packet to ask about: a flow, as Open vSwitch's `ofproto/trace` takes it, or its bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyQuestion {
    /// What its headers say, and the port that it comes in by. Beside bytes: the port, and by which tunnel it came.
    #[schema(example = "in_port=vm1,tcp,nw_src=10.0.0.5,nw_dst=10.0.1.8,tp_src=40000,tp_dst=80")]
    pub flow: String,
    /// Its bytes, hexadecimal, from the Ethernet header on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<String>,
    /// Its length in bytes, from the Ethernet header on; as long as its headers if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub len: Option<u32>,
}

/// What would become of the packet now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyAnswer {
    /// The packet, as a match.
    pub packet: String,
    /// Its bytes, from the Ethernet header on.
    pub bytes: u32,
    /// What was not said of it and was taken to be so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Its way, step by step.
    pub steps: Vec<WhyStep>,
    /// What comes of it in the end.
    pub verdict: WhyVerdict,
    /// Where it or copies of it leave the node.
    pub exits: Vec<WhyExit>,
    /// Why it or copies of it are lost.
    pub drops: Vec<WhyDrop>,
}

/// What comes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhyVerdict {
    /// It leaves.
    Leaves,
    /// It goes to the controllers only.
    Controller,
    /// It is dropped.
    Dropped,
    /// It goes round among switches: more steps than are followed.
    Storm,
}

/// A step of a packet's way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyStep {
    /// The switch.
    pub switch: String,
    /// Links between switches behind it.
    pub hops: u32,
    /// Where: `vm1 rx`, `table 0`, `meter 5`, `uplink tx`.
    pub at: String,
    /// What happens there.
    pub what: String,
    /// The rule that it finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<WhyRule>,
    /// Rules that it nearly finds instead, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearly: Vec<WhyNear>,
    /// How many rules it might have found instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<u64>,
}

/// A rule on a packet's way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyRule {
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: Cookie,
    /// What it matches; empty for everything.
    #[serde(rename = "match")]
    pub matching: String,
    /// What it does.
    pub actions: String,
    /// Packets that found it so far.
    pub packets: u64,
}

/// A rule that a packet nearly finds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyNear {
    /// The rule.
    pub rule: WhyRule,
    /// What keeps the packet from it.
    pub differs: Vec<WhyDifference>,
}

/// A field in which a packet differs from a rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyDifference {
    /// The field.
    #[schema(example = "tp_dst")]
    pub field: String,
    /// What the packet has.
    #[schema(example = "8080")]
    pub packet: String,
    /// What the rule wants.
    #[schema(example = "80")]
    pub rule: String,
}

/// A way out of the node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyExit {
    /// The switch that it leaves.
    pub switch: String,
    /// By this port.
    pub port: String,
    /// Queue that a rule chose; 0: none.
    pub queue: u32,
    /// How it looks then, as a match.
    pub packet: String,
    /// Its bytes.
    pub bytes: u32,
}

/// A loss.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyDrop {
    /// Where: `sw0 table 1`, `sw0 uplink tx`.
    pub at: String,
    /// The reason, as counters name it.
    #[schema(example = "no_match")]
    pub reason: String,
    /// What that means here.
    pub cause: String,
    /// What can be done.
    pub remedy: String,
}
