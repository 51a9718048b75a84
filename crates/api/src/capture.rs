//! Captures: which frames to show, and what runs.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use utoipa::ToSchema;

/// Header of the answer that begins a capture: its number, by which it can be ended in order.
pub const CAPTURE_HEADER: &str = "suiro-capture";
/// What a capture's answer is: blocks of a pcapng file.
pub const CAPTURE_TYPE: &str = "application/x-pcapng";
/// Most bytes of a frame that are kept, when nothing is said: the longest frame there is.
pub const SNAP_MAX: u32 = 65_536 + 320;
/// Bytes of each worker's ring, when nothing is said.
pub const CAPTURE_RING: u32 = 4 << 20;
/// Percent of a worker's time that a capture may cost, when nothing is said.
pub const CAPTURE_BUDGET: u8 = 5;

/// Which frames to show.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureSpec {
    /// Where: `SWITCH:PORT`, with `:rx` or `:tx` for one side only, or `:outside` for a tunnel's packets on the underlay; `SWITCH` for all of its ports;
    /// `tunnel:PORT:outside` or `:inside`, and `link:PORT` for both ends of a vlink of that name, in whichever switch; `controller:SWITCH` for packet-ins and packet-outs; `openflow:SWITCH` for the messages of its sessions, which no match or filter is of; `queue:SWITCH:PORT:N` for frames that come to an egress queue, leave it or are dropped by it, without `N` for all queues of the port; `steer:INTERFACE` for frames at steering's programs in the kernel, with `:before`, `:after` or `:dropped` for one side only; `drops` or `drops:SWITCH` for
    /// what is lost; `passed` or `passed:SWITCH` for one in 32 of the frames that come in.
    #[schema(example = json!(["sw0:vm1", "drops"]))]
    pub points: Vec<String>,
    /// Which of them: a match, as flows have it. `in_port` is the port that sees the frame.
    #[serde(default, rename = "match", skip_serializing_if = "String::is_empty")]
    #[schema(example = "tcp,tp_dst=80")]
    pub matching: String,
    /// Which of those: a filter in libpcap's syntax. It sees bytes, and no tag that it does not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<CaptureFilter>,
    /// Begin with what was lost, and the sample of what passed, in so many milliseconds before, as far as it is remembered. For ports, losses and `passed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past_ms: Option<u64>,
    /// What happens on the node, between the frames.
    #[serde(default)]
    pub events: bool,
    /// Most bytes of a frame to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snap: Option<u32>,
    /// Most bytes behind the transport header to keep; in a tunnel's packet outside, behind that of the frame inside. 0: headers alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<u32>,
    /// One packet in so many, chosen by its id: the same ones at every point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub every: Option<NonZeroU32>,
    /// The first so many of each flow, at each point and worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub first: Option<NonZeroU32>,
    /// Percent of each worker's time that it may cost, over a second; 5 when left out. What is beyond is counted and not in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u8>,
    /// Bytes of each worker's ring, rounded up to a power of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<u32>,
    /// 32 hexadecimal digits that packet ids are made with; captures with the same ones give a packet the same id. Left out: others each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_key: Option<String>,
}

/// A filter in libpcap's syntax.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureFilter {
    /// As people wrote it.
    #[schema(example = "tcp port 80")]
    pub text: String,
    /// As libpcap compiles it (`tcpdump -ddd`): of each instruction code, jt, jf, k. Up to 4096 classic ones.
    pub program: Vec<[u32; 4]>,
}

/// A capture under way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CaptureView {
    /// Its number.
    pub capture: u32,
    /// What it shows.
    pub spec: CaptureSpec,
    /// What was counted, point by point.
    pub points: Vec<CapturePointView>,
}

/// What a capture counted at a point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CapturePointView {
    /// The point.
    pub point: String,
    /// Frames that it saw.
    pub matched: u64,
    /// Of those, how many found no room in a ring.
    pub lost: u64,
    /// Of those, for how many there was no time in the budget.
    pub over_budget: u64,
    /// Frames that were not looked at, for twice the budget was spent.
    pub not_looked: u64,
    /// Workers' time that it took, in nanoseconds.
    pub spent_ns: u64,
}
