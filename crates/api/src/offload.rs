//! Offload: which flows leave the workers, by which policies, and what keeps the others.

use crate::SwitchName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const fn priority() -> u16 {
    OffloadPolicy::PRIORITY
}

/// Whether flows may leave the workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OffloadSwitch {
    /// On, or off.
    pub on: bool,
}

/// A policy: which flows shall leave the worker, and when.
///
/// The first whose match fits a flow decides, those of higher priority before others. Without `when` and `never` the measured cost decides,
/// as it does for what no policy fits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OffloadPolicy {
    /// Its name.
    #[schema(example = "bulk")]
    pub name: String,
    /// Higher is asked first.
    #[serde(default = "priority")]
    pub priority: u16,
    /// Which flows it is for, in the syntax of `ovs-ofctl`; all when empty.
    #[serde(default, rename = "match")]
    #[schema(example = "tcp,tp_dst=443")]
    pub matching: String,
    /// `first`, or a condition: `rate>=50M and packets>=100`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// When it comes back: `rate<5M`; half of the rates of `when` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// How long it stays at least; one second if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residence_ms: Option<u64>,
    /// Such flows never leave.
    #[serde(default)]
    pub never: bool,
    /// Rungs in order of preference, of `tc`, `xdp`, `nic`; any if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<String>,
}

impl OffloadPolicy {
    /// Priority of a policy that names none.
    pub const PRIORITY: u16 = 100;
}

/// A policy in force.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OffloadPolicyView {
    /// What it says.
    pub policy: OffloadPolicy,
    /// The switch whose flows alone it is for; all switches' if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchName>,
    /// Who wants it: `api`, `file`, or a part's name.
    pub owner: String,
}

/// Offload at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OffloadView {
    /// Whether it is on.
    pub on: bool,
    /// The rungs past the worker.
    pub rungs: Vec<OffloadRung>,
    /// Moves up since the node began.
    pub moves: u64,
    /// Of those, how many came back within a second; steady traffic has none.
    pub flaps: u64,
    /// What workers take for a frame, beside its bytes, as measured.
    pub worker_ns_per_frame: f64,
    /// What they take for a byte.
    pub worker_ns_per_byte: f64,
    /// The policies, those asked first before the others.
    pub policies: Vec<OffloadPolicyView>,
}

/// A rung past the worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OffloadRung {
    /// Its name.
    pub name: String,
    /// Flows whose frames take it.
    pub flows: u64,
    /// Flows on their way there or back.
    pub moving: u64,
    /// Its slots.
    pub slots: u32,
    /// Of those taken.
    pub taken: u32,
    /// Frames that it took since the node began, limited ones included. A large (GSO) frame counts once.
    #[serde(default)]
    pub frames: u64,
    /// Bytes, Ethernet header included, no FCS.
    #[serde(default)]
    pub bytes: u64,
    /// Of the frames, those that a limit refused.
    #[serde(default)]
    pub limited: u64,
}

/// A flow, and where it is processed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OffloadedFlow {
    /// Its switch.
    pub switch: String,
    /// The port that it comes in by.
    pub in_port: String,
    /// The flow, as a match.
    #[schema(example = "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=40000,tp_dst=5201")]
    pub flow: String,
    /// `worker`, `tc`, `xdp` or `nic`.
    pub rung: String,
    /// Seconds since it came there.
    pub since_s: f64,
    /// Why it is there.
    pub why: String,
    /// The policy that moved it last; empty if none did.
    pub policy: String,
    /// Packets so far: on rungs exactly, on the worker by samples.
    pub packets: u64,
    /// Their bytes, likewise.
    pub bytes: u64,
    /// Of those, packets that rungs past the worker took; exact.
    pub offloaded_packets: u64,
    /// Their bytes.
    pub offloaded_bytes: u64,
    /// Limits that it passes on its rung.
    pub limits: u32,
    /// Packets that those refused.
    pub limited_packets: u64,
    /// Bits a second.
    pub bits_per_s: u64,
    /// Packets a second.
    pub packets_per_s: u64,
    /// The port that it leaves by, while a rung has it.
    pub out_port: Option<String>,
    /// Moves up.
    pub moves: u64,
    /// Seconds until it is tried next, for one on the worker.
    pub next_try_s: Option<f64>,
}

/// Why a flow is processed where it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OffloadWhy {
    /// What is known of it.
    pub flow: OffloadedFlow,
    /// The policy that decides.
    pub policy: String,
    /// What tables and rungs would say to it now: the rung that would take it.
    pub rung: Option<String>,
    /// Why none would.
    pub declined: Option<String>,
    /// What can be done about the reason for which it is on the worker.
    pub remedy: Option<String>,
    /// Nanoseconds a second that it costs on the worker.
    pub worker_ns_per_s: u64,
    /// What it would cost on that rung.
    pub rung_ns_per_s: Option<u64>,
    /// What a worker takes for a frame, beside its bytes, as learned from its work.
    pub worker_ns_per_frame: f64,
    /// And for a byte.
    pub worker_ns_per_byte: f64,
    /// What that rung would take for a frame of this flow, beside its bytes.
    pub rung_ns_per_frame: Option<f64>,
    /// And for a byte: a checksum is summed.
    pub rung_ns_per_byte: Option<f64>,
    /// Whether that was measured on this host, by the rung's own programs; else it is assumed.
    pub rung_is_measured: Option<bool>,
}
