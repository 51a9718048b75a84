//! Exact counts that several workers add to.

use crate::time::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Packets and bytes. It outlives the snapshots that point to it, so republishing loses no count.
#[derive(Debug, Default)]
pub struct Tally {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    /// Counts one packet.
    pub fn count(&self, bytes: u32) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(u64::from(bytes), Relaxed);
    }

    /// Counts several at once.
    pub(crate) fn add(&self, Counted { packets, bytes }: Counted) {
        self.packets.fetch_add(packets, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// What was counted so far.
    pub fn read(&self) -> Counted {
        Counted { packets: self.packets.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

/// A reading of a [`Tally`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// Packets.
    pub packets: u64,
    /// Bytes of whole frames.
    pub bytes: u64,
}

/// What a group or meter keeps when it is modified: its own counts, shared with all snapshots, and its age.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub tally: Arc<Tally>,
    pub created: Nanos,
}

impl History {
    /// Nothing counted yet.
    pub fn begin(now: Nanos) -> Self {
        Self { tally: Arc::default(), created: now }
    }
}
