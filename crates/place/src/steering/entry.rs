//! Entries: which frames go where, as one unit.

use super::Selector;
use crate::{CoreId, UnitId, VmId};
use std::fmt;

/// The core of an entry, or who chooses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// The policy, when the first frame comes, and again when it moves.
    Auto,
    /// The operator.
    Core(CoreId),
    /// The frame's hash: what RSS would do over the allowed cores.
    Hash,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Core(core) => write!(f, "{}", core.0),
            Self::Hash => f.write_str("hash"),
        }
    }
}

/// One entry: frames, and where they go. Entries of the same priority and selector are the same entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Which entry.
    pub key: EntryKey,
    /// Where to.
    pub target: Target,
    /// Its flows have priority.
    pub is_priority: bool,
    /// Its flows want their machine's own core.
    pub wants_own_core: bool,
    /// The machine that its frames are for.
    pub vm: Option<VmId>,
}

/// Which entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryKey {
    /// The highest that selects wins.
    pub priority: u16,
    /// Which frames.
    pub selector: Selector,
}

/// A change of one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Add it, or let the one of its key do this from now on.
    Put(Entry),
    /// Remove it. One that is not there is no error.
    Remove(EntryKey),
}

/// An entry as it is in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryStatus {
    /// What it is.
    pub entry: Entry,
    /// The unit that its frames are moved as.
    pub unit: UnitId,
    /// Frames that it took.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}
