//! What a switch's steering can be asked for.

use place::steering::{FlowKey, Target};
use place::{UnitId, VmId};

/// Which frames go where, as one unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteeringEntry {
    /// The unit: one that no other entry has, above those of the groups.
    pub unit: UnitId,
    /// What its frames have in the bits of `mask`; 0 in all others.
    pub key: FlowKey,
    /// What is looked at.
    pub mask: FlowKey,
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
        place::steering::MASKS
    )]
    Masks,
    /// No unit is left.
    #[error("there is room for {0} entries: gather flows in fewer, wider ones")]
    Full(usize),
}
