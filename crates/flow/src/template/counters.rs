//! Counts of one table: each worker's apart, so that counting takes no locked instruction and no line of another worker's.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of one table, shared by all its views.
pub(crate) struct TableCounters {
    /// By the worker's number ([`crate::Workspace::new`]), each made when it counts for the first time.
    blocks: [OnceLock<Box<Block>>; 256],
}

/// What one worker counted; no other writes here.
#[derive(Default)]
#[repr(align(64))]
struct Block {
    lookups: AtomicU64,
    matches: AtomicU64,
    probes: AtomicU64,
}

impl Default for TableCounters {
    fn default() -> Self {
        Self { blocks: [const { OnceLock::new() }; 256] }
    }
}

impl TableCounters {
    /// Counts a batch of this worker's.
    #[inline]
    pub fn add(&self, worker: u8, lookups: u64, matches: u64, probes: u64) {
        let block = self.blocks[usize::from(worker)].get_or_init(Box::default);
        for (counter, more) in
            [(&block.lookups, lookups), (&block.matches, matches), (&block.probes, probes)]
        {
            counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
        }
    }

    /// Lookups, matches, probes of all workers.
    pub fn read(&self) -> (u64, u64, u64) {
        self.blocks.iter().filter_map(OnceLock::get).fold((0, 0, 0), |sum, block| {
            let Block { lookups, matches, probes } = &**block;
            (
                sum.0 + lookups.load(Relaxed),
                sum.1 + matches.load(Relaxed),
                sum.2 + probes.load(Relaxed),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_count_at_once_is_all_there() {
        let counters = TableCounters::default();
        assert_eq!(counters.read(), (0, 0, 0));
        std::thread::scope(|scope| {
            for worker in [0, 1, 255] {
                let counters = &counters;
                scope.spawn(move || (0..1000).for_each(|_| counters.add(worker, 3, 2, 1)));
            }
        });
        assert_eq!(counters.read(), (9000, 6000, 3000));
    }
}
