//! What a worker owns: its cache, and memory for the batch in work.

use super::uniform::UniformScratch;
use crate::cache::{Backoffs, Cache, CacheCounts, FramePatterns, PortMemo, Traces};
use crate::limits::LANES;
use crate::template::Scratch;
use wire::Key;

/// One worker's cache and working memory.
pub struct Workspace {
    /// Owner of counters: 1..=255.
    pub(crate) worker: u8,
    pub(crate) scratch: Scratch,
    pub(super) port_memo: PortMemo,
    pub(super) patterns: FramePatterns,
    pub(super) pattern_backoffs: Backoffs,
    /// Keys with metadata written to them.
    pub(crate) keys: Box<[Key; LANES]>,
    /// Traces of the batch in work.
    pub(crate) traces: Box<Traces>,
    pub(super) uniform: Box<UniformScratch>,
    pub(super) cache: Cache,
}

impl Workspace {
    /// The workspace of worker number `worker` (0..=254, distinct per thread that works on the same switches: it owns
    /// counters), with a cache of about `entries` traces, keyed with a random `secret`. With 0 entries nothing is cached.
    pub fn new(worker: u8, secret: [u64; 2], entries: usize) -> Self {
        Self {
            worker: worker.saturating_add(1),
            scratch: Scratch::default(),
            port_memo: PortMemo::default(),
            patterns: FramePatterns::default(),
            pattern_backoffs: Backoffs::default(),
            keys: Box::new([Key::default(); LANES]),
            traces: Box::default(),
            uniform: Box::default(),
            cache: Cache::new(secret, entries),
        }
    }

    /// Takes the cache's counts since the last call.
    #[inline]
    pub fn take_counts(&mut self) -> CacheCounts {
        self.cache.take_counts()
    }
}
