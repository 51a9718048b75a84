//! What a worker is at work on, noted where code that is not the worker's own runs, so that a panic finds its culprit.

use crate::id::PortIx;
use std::cell::Cell;

/// Place of a receive queue in its worker's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueueIx(pub(crate) u32);

/// Whose code runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Touch {
    /// The worker's own.
    #[default]
    Nothing,
    /// A source's: rx or release.
    Rx(QueueIx),
    /// The pipeline's, with frames of this queue.
    Pipeline(QueueIx),
    /// The pipeline's, with frames of another worker, or that waited for a move.
    Handed,
    /// The pipeline's, with a packet-out.
    PacketOut,
    /// A destination's.
    Tx(PortIx),
}

/// The note, and the port that was sent to last.
#[derive(Default)]
pub(crate) struct Touching {
    at: Cell<Touch>,
    sent: Cell<Option<PortIx>>,
}

impl Touching {
    /// What runs now.
    #[inline]
    pub(crate) fn get(&self) -> Touch {
        self.at.get()
    }

    /// That runs from now on.
    #[inline]
    pub(crate) fn set(&self, touch: Touch) {
        if let Touch::Tx(to) = touch {
            self.sent.set(Some(to));
        }
        self.at.set(touch);
    }

    /// That runs from now on; what ran until now.
    #[inline]
    pub(crate) fn replace(&self, touch: Touch) -> Touch {
        let before = self.at.get();
        self.set(touch);
        before
    }

    /// What ran when it was interrupted; nothing runs now.
    pub(crate) fn take(&self) -> Touch {
        self.at.take()
    }

    /// The port that frames were sent to last since this was asked.
    #[inline]
    pub(crate) fn take_sent(&self) -> Option<PortIx> {
        self.sent.take()
    }
}
