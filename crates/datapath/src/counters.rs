//! Counters: written by one worker each, summed by whoever asks.
//!
//! Every block belongs to one worker, so an increment is a load and a store (no locked instruction) and its cache line is
//! never another worker's. Readers may see a frame in one counter an instant before the other.

mod latency;

pub(crate) use latency::{Histogram, Sojourns, sum};

use crate::rung::Rung;
use flow::CacheCounts;
use port::{Drops, Sent};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::DropReason;

/// A counter with a single writer.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds; only the owning worker may call this.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    /// Takes away what was added before; only the owning worker may call this.
    #[inline]
    pub(crate) fn sub(&self, count: u64) {
        self.add(count.wrapping_neg());
    }

    /// Says what it is; only the owning worker may call this.
    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// The value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Frames lost, by reason.
pub(crate) struct DropCounts([Count; DropReason::ALL.len()]);

impl Default for DropCounts {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Count::default()))
    }
}

impl DropCounts {
    /// Moves what was lost here. It is the only way in for workers: each lost frame has ended in [`Drops::lose`].
    #[inline]
    pub(crate) fn take(&self, drops: &mut Drops) {
        if !drops.is_empty() {
            drops.drain(|reason, count| self.0[reason as usize].add(count));
        }
    }

    /// Adds what was lost past the workers.
    pub(crate) fn add(&self, reason: DropReason, count: u64) {
        self.0[reason as usize].add(count);
    }

    /// Adds the values to `sum`.
    pub(crate) fn add_to(&self, sum: &mut DropSums) {
        sum.0.iter_mut().zip(&self.0).for_each(|(sum, count)| *sum += count.get());
    }
}

/// Frames lost, by reason, over several workers.
pub(crate) struct DropSums([u64; DropReason::ALL.len()]);

impl Default for DropSums {
    fn default() -> Self {
        Self([0; DropReason::ALL.len()])
    }
}

impl DropSums {
    /// Reasons with frames, and how many.
    pub(crate) fn named(&self) -> Vec<(DropReason, u64)> {
        let all = DropReason::ALL.iter().copied().zip(self.0);
        all.filter(|&(_, count)| count > 0).collect()
    }
}

/// Frames and bytes in one direction.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) frames: Count,
    pub(crate) bytes: Count,
}

impl Traffic {
    #[inline]
    pub(crate) fn add(&self, sent: Sent) {
        self.frames.add(sent.frames);
        self.bytes.add(sent.bytes);
    }

    pub(crate) fn get(&self) -> Sent {
        Sent { frames: self.frames.get(), bytes: self.bytes.get() }
    }
}

/// One port at one worker. 128: two lines, which the hardware prefetcher fetches in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct PortBlock {
    pub(crate) rx: Traffic,
    pub(crate) tx: Traffic,
    pub(crate) rx_drops: DropCounts,
    pub(crate) tx_drops: DropCounts,
}

/// One switch at one worker.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct SwitchBlock {
    /// Verdicts, not losses at a port.
    pub(crate) drops: DropCounts,
    pub(crate) packet_ins: Count,
    pub(crate) packet_outs: Count,
    /// How long frames stayed that came in there.
    pub(crate) sojourns: Sojourns,
}

/// One worker.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct WorkerBlock {
    pub(crate) frames: Count,
    pub(crate) batches: Count,
    pub(crate) empty_polls: Count,
    pub(crate) sleeps: Count,
    pub(crate) restarts: Count,
    pub(crate) cycles_rx: Count,
    pub(crate) cycles_pipeline: Count,
    pub(crate) cycles_tx: Count,
    pub(crate) cycles_polling: Count,
    /// Frames of other workers.
    pub(crate) taken_over: Count,
    /// Frames that went on from an earlier pass.
    pub(crate) went_on: Count,
    pub(crate) cache: CacheBlock,
    /// Frames that each rung took, in the order of [`Rung::ALL`].
    pub(crate) rungs: [Traffic; Rung::ALL.len()],
    /// How long frames stayed, and how long those waited that had to wait in ports' queues.
    pub(crate) sojourns: Sojourns,
    pub(crate) queued: Histogram,
}

/// How one worker's flow cache answered.
#[derive(Default)]
pub(crate) struct CacheBlock {
    hits: Count,
    absent: Count,
    stale: Count,
    compared: Count,
    passed_by: Count,
}

impl CacheBlock {
    /// Adds what the cache counted since the last call.
    #[inline]
    pub(crate) fn add(&self, counts: CacheCounts) {
        if counts != CacheCounts::default() {
            self.hits.add(counts.hits);
            self.absent.add(counts.absent);
            self.stale.add(counts.stale);
            self.compared.add(counts.compared);
            self.passed_by.add(counts.passed_by);
        }
    }

    pub(crate) fn get(&self) -> CacheCounts {
        CacheCounts {
            hits: self.hits.get(),
            absent: self.absent.get(),
            stale: self.stale.get(),
            compared: self.compared.get(),
            passed_by: self.passed_by.get(),
        }
    }
}

/// One block for each worker.
pub(crate) fn blocks<T: Default>(workers: usize) -> Box<[T]> {
    std::iter::repeat_with(T::default).take(workers).collect()
}
