//! What is shown of a vhost-user port's guest.

use crate::SocketPath;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The guest of a vhost-user port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FrontEndView {
    /// The socket shared with its front-end.
    pub socket: SocketPath,
    /// Whether suiro listens on it.
    pub server: bool,
    /// `waiting` for a front-end, `connected`, or `ready`: the driver takes frames, and the switch sends it some.
    pub state: String,
    /// Why there is no front-end, if there is none.
    pub waits_for: Option<String>,
    /// Seconds since the front-end connected.
    pub connected_s: Option<u64>,
    /// Why the last connection was given up, if one ever was.
    pub last_error: Option<FrontEndErrorView>,
    /// `split` or `packed`, once driver and suiro have agreed.
    pub ring_kind: Option<String>,
    /// Features that driver and suiro agreed on.
    pub features: Vec<String>,
    /// Features that front-end and suiro agreed on.
    pub protocol_features: Vec<String>,
    /// The guest's memory, largest region first.
    pub memory: Vec<MemoryView>,
    /// Rings: two for each queue pair.
    pub rings: Vec<RingView>,
}

/// Why a connection was given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FrontEndErrorView {
    /// What happened.
    pub cause: String,
    /// What to do.
    pub remedy: String,
    /// How many connections were given up since the port was opened.
    pub count: u64,
}

/// A region of a guest's memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MemoryView {
    /// First guest physical address.
    pub guest_address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Whether the front-end took it away while it was in use.
    pub withdrawn: bool,
}

/// A ring.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RingView {
    /// Its queue pair.
    pub pair: usize,
    /// `tx`: suiro sends to the guest by it; `rx`: the guest sends.
    pub direction: String,
    /// The core that serves it; of `tx` rings any may.
    pub core: Option<usize>,
    /// Whether the driver enabled it.
    pub enabled: bool,
    /// `running`, `idle`, `disabled` (what the guest sends is discarded) or `stopped`.
    pub state: String,
    /// Descriptors; 0 before the front-end said it.
    pub size: u16,
    /// Buffers of the driver that suiro has not taken yet: frames of an `rx` ring, room in a `tx` ring.
    pub available: u16,
    /// Of `tx` rings, once long frames went by them, on processors where it matters: `near` if the guest's core was found to share a cache with suiro's, `far` if not; what is long goes to it through memory then.
    pub reach: Option<String>,
    /// What an idle ring waits for, or why it was stopped.
    pub why: Option<String>,
}
