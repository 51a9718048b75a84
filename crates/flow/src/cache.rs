//! One worker's exact-match cache, in front of all switches' tables.

use crate::process::BATCH;
use crate::process::trace::Traces;
use crate::template::Scratch;
use wire::Key;

/// One worker's cache and working memory.
pub struct Cache {
    /// Owner of counters: 1..=255.
    pub(crate) worker: u8,
    pub(crate) scratch: Scratch,
    /// Keys with metadata written to them.
    pub(crate) keys: Box<[Key; BATCH]>,
    /// Traces of the batch in work.
    pub(crate) traces: Box<Traces>,
    secret: [u64; 2],
    entries: usize,
}

impl Cache {
    /// A cache for worker number `worker` (0..=254, distinct per thread that works on the same switches: it owns
    /// counters), of about `entries` traces, keyed with a random `secret`.
    pub fn new(worker: u8, secret: [u64; 2], entries: usize) -> Self {
        Self {
            worker: worker.saturating_add(1),
            scratch: Scratch::default(),
            keys: Box::new([Key::default(); BATCH]),
            traces: Box::default(),
            secret,
            entries,
        }
    }
}
