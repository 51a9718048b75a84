//! What a switch's steering can be asked for.

use place::{CoreId, UnitId, VmId};
use xdp::steer::Key;

/// What becomes of frames that no entry selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmatched {
    /// They are placed group by group of flows; a power of two, at most 1024.
    Groups(u16),
    /// They stay on the worker that received them.
    Stay,
}

/// How a switch is steered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteeringOptions {
    /// Frames that no entry selects.
    pub unmatched: Unmatched,
    /// The outermost type of service is the flow control field: a guest's number and a priority bit.
    pub is_fcf: bool,
}

impl Default for SteeringOptions {
    fn default() -> Self {
        Self { unmatched: Unmatched::Groups(256), is_fcf: false }
    }
}

/// An entry's worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// That of this core.
    Core(CoreId),
    /// Chosen by the policy when the first frame comes.
    Auto,
    /// Chosen by hash when the first frame comes.
    Hash,
}

/// Which frames go where, as one unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteeringEntry {
    /// The unit: one that no other entry has, above those of the groups.
    pub unit: UnitId,
    /// What its frames have in the bits of `mask`; 0 in all others.
    pub key: Key,
    /// What is looked at.
    pub mask: Key,
    /// The highest that selects wins.
    pub priority: u16,
    /// Where to.
    pub target: Target,
    /// Its flows have priority.
    pub is_priority: bool,
    /// Its flows want their guest's own core.
    pub wants_own_core: bool,
    /// The guest that its frames are for.
    pub vm: Option<VmId>,
}

/// Who chooses the worker of an undecided unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Chooser {
    /// `place::Vse`.
    #[default]
    Vse,
    /// `place::Hash`.
    Hash,
}

/// What a move may cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Haste {
    /// The unit moves with a frame that finds nothing of it under way; until one does, its frames go where they went.
    WhenDrained,
    /// From now on its frames wait until the old worker is done with those before them; more than may wait are dropped, and after 10 ms the
    /// move is given up.
    Hold,
}

/// Why a switch is not steered, or its entries not in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SteeringError {
    /// The datapath has no such switch.
    #[error("{0} is not in service")]
    NoSwitch(crate::SwitchId),
    /// It is steered by someone else.
    #[error("{0} is steered already")]
    Steered(crate::SwitchId),
    /// Nothing to choose from.
    #[error("one worker runs: give the node a second core to steer between")]
    OneWorker,
    /// The number of groups cannot be masked out of a hash.
    #[error("{0} flow groups: give a power of two, at most 1024")]
    Groups(u16),
    /// A frame would cost too much.
    #[error(
        "the entries have more than {} different masks: match on the same fields in more of them",
        xdp::steer::MASKS
    )]
    Masks,
    /// No unit is left.
    #[error("there is room for {0} entries: gather flows in fewer, wider ones")]
    Full(usize),
}
