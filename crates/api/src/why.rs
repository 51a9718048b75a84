//! What would become of a packet, asked and answered.

use crate::{Cookie, Fault, Rate};
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
    /// Bytes of payload of each piece that a large segment is cut into; left out for a packet that is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso: Option<u16>,
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
    /// Who processes it.
    pub place: WhyPlace,
    /// Its way, step by step.
    pub steps: Vec<WhyStep>,
    /// What comes of it in the end.
    pub verdict: WhyVerdict,
    /// Where it or copies of it leave the node.
    pub exits: Vec<WhyExit>,
    /// Why it or copies of it are lost.
    pub drops: Vec<WhyDrop>,
    /// How real packets of its flow are found.
    pub watch: WhyWatch,
}

/// How the real packets of a flow are found by a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WhyWatch {
    /// Where they come in: `sw0:vm1 rx`.
    pub entry: String,
    /// Switches on their way, tunnels' outside left out.
    pub switches: Vec<String>,
    /// What they have in common all the way, as a match.
    #[serde(rename = "match")]
    pub matching: String,
    /// Where they are foretold to be seen: `sw0:vm2 tx`, `sw0 drop=by_rule`.
    pub seen: Vec<String>,
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
    /// What it waits in there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WhyWait>,
}

/// Queues of a port at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyWait {
    /// Bit/s that leave by the port in all.
    pub rate: Option<Rate>,
    /// Bit/s that the queue gets whatever others want.
    pub min_rate: Option<Rate>,
    /// Bit/s that the queue never exceeds.
    pub max_rate: Option<Rate>,
    /// Frames that wait in the queue now.
    pub waiting: u64,
}

/// Who processes a packet, and what that costs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WhyPlace {
    /// Cores of the workers that look after the port that it comes in by.
    pub cores: Vec<usize>,
    /// What steering says: the flow's core, and why; left out where its switch is not steered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<String>,
    /// `worker`, or the rung past it on which its flow is.
    pub rung: String,
    /// Why there.
    pub rung_why: String,
    /// What can be done about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// What a frame costs these workers, as measured; left out where they had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<WhyCost>,
}

/// What a frame costs workers: the mean of all frames since the node began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyCost {
    /// Frames that it was measured of.
    pub frames: u64,
    /// Cycles of the timestamp counter to receive a frame.
    pub cycles_rx: u64,
    /// Cycles in the tables.
    pub cycles_pipeline: u64,
    /// Cycles to send it.
    pub cycles_tx: u64,
    /// All of that in nanoseconds.
    pub ns: u64,
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

/// What would become of a packet now in a slice: on each node that it comes to, and by which links it goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SliceWhy {
    /// What comes of it in the end.
    pub verdict: WhyVerdict,
    /// Its way: a leg for each time that it comes to a node.
    pub legs: Vec<SliceLeg>,
}

/// A packet's way over one node. Switches have the slice's names; what lies between them is told as the link that it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SliceLeg {
    /// The node.
    pub node: String,
    /// Where it comes in: `s1:2`.
    pub entry: String,
    /// What it comes by: `link a`; none for the first leg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What would become of it there; none if the node cannot be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyAnswer>,
    /// Why the node cannot be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Where it goes on to from there, one for each exit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub onward: Vec<SliceOnward>,
}

/// Where a packet goes on to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SliceOnward {
    /// The port that it leaves by: `s1:2`.
    pub from: String,
    /// What it goes by: `link a`, `port eth0 of guest h1`, `external lab`.
    pub by: String,
    /// What is at its other end: `s2:1`, `h1:eth0`.
    pub to: String,
    /// On which node.
    pub node: String,
}
