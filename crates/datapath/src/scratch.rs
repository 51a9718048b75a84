//! A worker's memory for passes: allocated beforehand, used again and again.

use crate::backlog::Backlog;
use crate::crossing::Crossings;
use crate::heads::Heads;
use crate::pending::Pending;
use port::Drops;
use wire::Head;

/// Memory of one worker, whatever the number of its ports.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) pending: Pending,
    pub(crate) heads: Heads,
    pub(crate) crossings: Crossings,
    pub(crate) drops: Drops,
    /// Head of the first of the unread frames.
    pub(crate) first: Head,
    /// Ports where frames wait beyond the pass.
    pub(crate) backlog: Backlog,
}

impl Scratch {
    /// Forgets the pass under way, after a panic.
    pub(crate) fn reset(&mut self) {
        self.pending.reset();
        self.heads.top = 0;
        self.crossings.restart();
        self.drops = Drops::default();
        self.backlog.look_again();
    }
}
