//! What is asked of a policy, and what it answers.

use std::fmt;

use crate::{CoreId, Load, UnitId, VmId};

/// What a policy may know of the unit that it places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Of the headers that tell flows apart.
    pub hash: u32,
    /// The guest that the packets are for, where the entry or the flow control field says so.
    pub vm: Option<VmId>,
    /// The entry or the flow control field says so.
    pub is_priority: bool,
    /// The entry wants its guest's own core, whatever else is free (`place(core=auto,own)`).
    pub wants_own_core: bool,
    /// The core that the NIC interrupted, where the packet is now.
    pub rx_core: CoreId,
}

/// Where a unit goes, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The core.
    pub core: CoreId,
    /// Why this one.
    pub reason: Reason,
}

/// Why a unit is on its core. The numbers are those that the kernel program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The entry names the core.
    Fixed = 1,
    /// By its hash, blind to load.
    Hash = 2,
    /// The least loaded core with nothing pinned to it and at or below the threshold.
    LeastLoaded = 3,
    /// The same for a priority flow, with its own threshold and the reserved cores.
    Priority = 4,
    /// No core is free, so the guest that receives the packets pays for them.
    OwnCore = 5,
    /// The entry wants it on its guest's own core.
    OwnCoreWanted = 6,
    /// It stays on the core that was interrupted: every core that it might use is above the threshold.
    AboveThreshold = 7,
    /// It stays on the core that was interrupted: there is no core that it might use at all.
    NoCore = 8,
    /// It stays on the core that was interrupted: no entry matches.
    NoMatch = 9,
    /// It stays on the core that was interrupted: this traffic is not steered.
    NotSteered = 10,
    /// Moved: its core was above the overload mark.
    Overload = 11,
    /// Moved: its core had more to do than the others.
    Balance = 12,
    /// Moved: a guest is pinned to its core, and another core is free.
    Collision = 13,
    /// Moved to its guest's own core, so that a priority flow has this one.
    YieldedToPriority = 14,
    /// Moved: its core takes no such units any more.
    NotAllowed = 15,
}

impl Reason {
    /// All, by rising number.
    pub const ALL: [Self; 15] = [
        Self::Fixed,
        Self::Hash,
        Self::LeastLoaded,
        Self::Priority,
        Self::OwnCore,
        Self::OwnCoreWanted,
        Self::AboveThreshold,
        Self::NoCore,
        Self::NoMatch,
        Self::NotSteered,
        Self::Overload,
        Self::Balance,
        Self::Collision,
        Self::YieldedToPriority,
        Self::NotAllowed,
    ];

    /// The number in the kernel program's maps; 0 is "none yet" there.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason of that number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Whether the choice is written into the entry. The paper writes a core that was *chosen*; a unit that only
    /// stays where it is remains undecided, and is asked about again when the core table has been refreshed.
    pub const fn is_settled(self) -> bool {
        !matches!(self, Self::AboveThreshold | Self::NoCore | Self::NoMatch | Self::NotSteered)
    }

    /// One word, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Hash => "hash",
            Self::LeastLoaded => "least-loaded",
            Self::Priority => "priority",
            Self::OwnCore => "own-core",
            Self::OwnCoreWanted => "own-core-wanted",
            Self::AboveThreshold => "above-threshold",
            Self::NoCore => "no-core",
            Self::NoMatch => "no-match",
            Self::NotSteered => "not-steered",
            Self::Overload => "overload",
            Self::Balance => "balance",
            Self::Collision => "collision",
            Self::YieldedToPriority => "yielded-to-priority",
            Self::NotAllowed => "not-allowed",
        }
    }
}

/// One clause for people.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fixed => "the rule names the core",
            Self::Hash => "by hash",
            Self::LeastLoaded => "least loaded core without a guest, within the threshold",
            Self::Priority => "priority: least loaded core without a guest, a reserved one first",
            Self::OwnCore => "no core is free: on its guest's own core",
            Self::OwnCoreWanted => "the rule wants its guest's own core",
            Self::AboveThreshold => "stayed: every core is above the threshold",
            Self::NoCore => "stayed: no core may take it",
            Self::NoMatch => "stayed: no rule matches",
            Self::NotSteered => "stayed: not steered",
            Self::Overload => "moved: its core was overloaded",
            Self::Balance => "moved: its core had more to do than others",
            Self::Collision => "moved: away from a guest's core",
            Self::YieldedToPriority => "moved: made room for a priority flow",
            Self::NotAllowed => "moved: its core takes no such flow",
        })
    }
}

/// One core in the answer to "why there?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The core.
    pub core: CoreId,
    /// What the policy thought of it.
    pub verdict: Verdict,
}

/// What a policy thinks of one core for one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Could be chosen; the lowest score is, of equals the lowest id.
    Free(u32),
    /// A guest is pinned to it, the one that the packets are for: chosen when nothing is free, lowest score first.
    Own(u32),
    /// Not chosen.
    No(WhyNot),
}

/// Why a core is not chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// No flows may come here.
    Excluded,
    /// Kept for priority flows.
    Reserved,
    /// A guest is pinned to it, and not the one that the packets are for.
    Pinned,
    /// Its load is above the threshold.
    AboveThreshold {
        /// Measured.
        load: Load,
        /// For a unit of this priority.
        threshold: Load,
    },
    /// The hash names another.
    HashedElsewhere,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Excluded => f.pad("excluded"),
            Self::Reserved => f.pad("reserved for priority flows"),
            Self::Pinned => f.pad("a guest is pinned to it"),
            Self::AboveThreshold { load, threshold } => write!(f, "{load} is above {threshold}"),
            Self::HashedElsewhere => f.pad("the hash names another"),
        }
    }
}

/// What a unit used lately, for [`Policy::repair`](crate::Policy::repair).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitLoad {
    /// The unit.
    pub unit: UnitId,
    /// Where it is, or is about to be after a move that was asked for.
    pub core: CoreId,
    /// The core whose load in the table has this unit's in it: another than `core` until the move is done, and `core` from then on
    /// ([`Smoothed::lose`](crate::Smoothed::lose) there, [`Smoothed::gain`](crate::Smoothed::gain) here).
    pub measured_on: CoreId,
    /// Of one core's time.
    pub load: Load,
    /// The guest that its packets are for, if known.
    pub vm: Option<VmId>,
    /// As in [`Facts`].
    pub is_priority: bool,
    /// Whether it may be moved.
    pub hold: Hold,
}

/// Whether a unit may be moved now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Yes.
    #[default]
    Free,
    /// It moved a short time ago: a unit does not wander.
    Resting,
    /// Never: its entry names a core, or its guest's own.
    Fixed,
}

/// One step that [`Policy::repair`](crate::Policy::repair) asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// What moves.
    pub unit: UnitId,
    /// Where it is.
    pub from: CoreId,
    /// Where it goes.
    pub to: CoreId,
    /// Why.
    pub reason: Reason,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_found_by_its_number() {
        assert!(Reason::ALL.iter().all(|&reason| Reason::from_code(reason.code()) == Some(reason)));
        assert_eq!(Reason::from_code(0), None);
        assert_eq!(Reason::from_code(16), None);
    }
}
