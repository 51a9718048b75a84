//! How an interface or a switch is steered.

/// Most flow groups: their units come before all others.
pub const GROUPS_MAX: u32 = 1024;
/// Most different masks of the entries of one interface or switch: what a frame costs at most.
pub const MASKS: usize = 32;

/// How it is steered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Frames that no entry selects.
    pub unmatched: Unmatched,
    /// The outermost type of service is the paper's flow control field: a guest's id in 7 bits, then priority.
    pub is_fcf: bool,
    /// Entries that there is room for, where the enforcer lets that be chosen.
    pub entries: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { unmatched: Unmatched::Groups(256), is_fcf: false, entries: 16_384 }
    }
}

/// What becomes of frames that no entry selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmatched {
    /// They stay on the core that they came in on: the paper.
    Stay,
    /// Their flows are put into so many groups by hash, each a unit: a power of two, at most [`GROUPS_MAX`].
    Groups(u16),
}

/// Who chooses the core of an undecided unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PolicyKind {
    /// [`Vse`](crate::Vse).
    #[default]
    Vse,
    /// [`Hash`](struct@crate::Hash).
    Hash,
}
