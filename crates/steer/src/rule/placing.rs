//! The action `place`.

use place::steering::Target;
use std::fmt;

/// Where frames of a rule are processed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Placing {
    /// The core, or who chooses it.
    pub target: Target,
    /// A priority flow: it prefers unpinned, lightly loaded cores and is never moved to make room.
    pub priority: bool,
    /// Under overcommit, on its own virtual machine's core.
    pub own: bool,
}

impl fmt::Display for Placing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |said: bool, word| if said { word } else { "" };
        let (priority, own) = (word(self.priority, ",priority"), word(self.own, ",own"));
        write!(f, "place(core={}{priority}{own})", self.target)
    }
}
