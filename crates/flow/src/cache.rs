//! One worker's exact-match cache, in front of all switches' tables.

/// One worker's cache and scratch space.
pub struct Cache {
    worker: u8,
    secret: [u64; 2],
    entries: usize,
}

impl Cache {
    /// A cache for worker number `worker` (0..=253, distinct per thread that works on the same switches: it owns counters),
    /// of about `entries` traversals, keyed with a random `secret`.
    pub fn new(worker: u8, secret: [u64; 2], entries: usize) -> Self {
        Self { worker, secret, entries }
    }
}
