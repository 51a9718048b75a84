//! Units: what is placed and moved as one, and what became of it.

use crate::{CoreId, Facts, Reason, UnitId, VmId};

/// A unit as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitStatus {
    /// Which.
    pub unit: UnitId,
    /// Where its frames go; `None` while nothing was decided.
    pub core: Option<CoreId>,
    /// Where they will go when those under way are done.
    pub wanted: Option<CoreId>,
    /// Why it is there.
    pub reason: Option<Reason>,
    /// When that was decided: nanoseconds of the monotonic clock.
    pub decided_at_ns: u64,
    /// Frames so far.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Times that it moved.
    pub moves: u64,
    /// The machine that its frames are for.
    pub vm: Option<VmId>,
    /// It has priority.
    pub is_priority: bool,
    /// It must stay where it is: its rule says so.
    pub is_fixed: bool,
}

/// Nanoseconds that a core spent since it is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreTimes {
    /// By stage, in the order of `place::Stage::ALL`.
    pub stages: [u64; 4],
    /// In everything else that is not idling.
    pub other: u64,
    /// Idle.
    pub idle: u64,
}

impl CoreTimes {
    /// All of it.
    pub fn whole(&self) -> u64 {
        self.stages.iter().sum::<u64>() + self.other + self.idle
    }
}

/// A decision that the enforcer made by itself, or carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When: nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// About which unit.
    pub unit: UnitId,
    /// Where it was, if anywhere.
    pub from: Option<CoreId>,
    /// Where it is now.
    pub core: CoreId,
    /// Why.
    pub reason: Reason,
    /// What was known of it, if the enforcer chose.
    pub facts: Option<Facts>,
}

/// How urgent a move is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// When the frames under way are done, however long that takes.
    WhenDrained,
    /// Frames that come before the old core is done may be dropped, and are counted.
    DropToDrain,
}
