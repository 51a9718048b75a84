//! How long frames of a flow stay in each stage, asked for a time.

use crate::Latency;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Longest time to ask for, in milliseconds: an answer comes at its end.
pub const TIMING_MAX_MS: u32 = 10_000;

/// Which frames to time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TimingQuestion {
    /// Frames that come in at the switch and match, as flows have it; empty: all.
    #[serde(rename = "match", default)]
    pub matching: String,
    /// For how long, in milliseconds, 10000 at most.
    pub for_ms: u32,
}

/// A stage of a frame's way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StageTimes {
    /// `receive`, `handover`, `tables`, `send`, `all` (those four together), or `queue`.
    pub stage: String,
    /// For how long frames stayed in it: their batch's time.
    pub stayed: Latency,
    /// How much of that was a frame's own: the batch's time, divided by its frames.
    pub own: Latency,
}

/// How long frames stayed in each stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TimingView {
    /// For how long it was looked, in milliseconds.
    pub for_ms: u32,
    /// Frames that matched.
    pub frames: u64,
    /// The stages that they went through, in the order of their way.
    pub stages: Vec<StageTimes>,
}
