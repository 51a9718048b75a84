//! A worker's memory for passes: allocated beforehand, used again and again.

use crate::backlog::Backlog;
use crate::crossing::Crossings;
use crate::heads::Heads;
use crate::onward::Onward;
use crate::pending::Pending;
use crate::taps::Taps;
use port::Drops;
use std::sync::Arc;
use wire::Head;

/// Memory of one worker, whatever the number of its ports.
pub(crate) struct Scratch {
    pub(crate) pending: Pending,
    pub(crate) heads: Heads,
    pub(crate) crossings: Crossings,
    /// Frames lost at ports.
    pub(crate) drops: Drops,
    /// Frames dropped by the switch of the pipeline's call under way.
    pub(crate) verdicts: Drops,
    /// Head of the first of the unread frames.
    pub(crate) first: Head,
    /// Ports where frames wait beyond the pass.
    pub(crate) backlog: Backlog,
    /// Frames that go on in a later pass.
    pub(crate) onward: Onward,
}

impl Scratch {
    /// Allocates it; `taps` see what is lost.
    pub(crate) fn new(taps: &Arc<Taps>) -> Self {
        Self {
            pending: Pending::default(),
            heads: Heads::default(),
            crossings: Crossings::default(),
            drops: Drops::tapped(Some(taps.clone())),
            verdicts: Drops::tapped(Some(taps.clone())),
            first: Head::default(),
            backlog: Backlog::default(),
            onward: Onward::default(),
        }
    }

    /// Forgets the pass under way, after a panic.
    pub(crate) fn reset(&mut self) {
        self.pending.reset();
        self.heads.top = 0;
        self.crossings.restart(0);
        self.drops.forget();
        self.verdicts.forget();
        self.backlog.look_again();
    }
}
