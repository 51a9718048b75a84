//! How an interface is steered.

use place::CoreId;
use place::steering::{GROUPS_MAX, PolicyKind, Unmatched};
use std::time::Duration;

/// How an interface is steered; all of it but the name's owner can be read back from the pins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// What happens to frames that no entry matches.
    pub unmatched: Unmatched,
    /// How undecided units are placed.
    pub policy: PolicyKind,
    /// The outermost type-of-service byte is the paper's flow control field: guest's id in 7 bits, then priority. Frames with an id that no
    /// entry matches have a unit for each value.
    pub is_fcf: bool,
    /// The UDP port of VXLAN.
    pub vxlan_port: u16,
    /// Frames that may wait for one core; ordinary flows use seven eighths of it. 64 to 16384.
    pub queue: u32,
    /// An urgent move begins to drop its unit's frames when the old core has not finished after so long.
    pub drain: Duration,
    /// An urgent move is given up when it has dropped for so long.
    pub give_up: Duration,
    /// Entries at most.
    pub entries: u32,
    /// Cores that flows may be sent to. Each has a kernel thread; more can be added later.
    pub cores: Vec<CoreId>,
}

/// Longest queue that the kernel makes for a core (`cpu_map_alloc`).
pub(crate) const QUEUE_MAX: u32 = 16384;
/// Shortest that leaves something after the kernel's batches.
pub(crate) const QUEUE_MIN: u32 = 64;

impl Default for Options {
    fn default() -> Self {
        Self {
            unmatched: Unmatched::Groups(1024),
            policy: PolicyKind::Vse,
            is_fcf: false,
            vxlan_port: 4789,
            queue: 2048,
            drain: Duration::from_millis(1),
            give_up: Duration::from_millis(20),
            entries: 16384,
            cores: Vec::new(),
        }
    }
}

/// `steer_config.groups`.
pub(crate) fn groups_of(unmatched: Unmatched) -> u32 {
    match unmatched {
        Unmatched::Stay => 0,
        Unmatched::Groups(groups) => u32::from(groups).clamp(1, GROUPS_MAX).next_power_of_two(),
    }
}

/// What that number says.
pub(crate) fn unmatched_of(groups: u32) -> Unmatched {
    if groups == 0 { Unmatched::Stay } else { Unmatched::Groups(groups as u16) }
}
