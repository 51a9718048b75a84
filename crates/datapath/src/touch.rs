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

/// The note.
pub(crate) type Touching = Cell<Touch>;
