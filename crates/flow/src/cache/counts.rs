//! How a worker's cache answered.

/// Packets by the cache's answer, and what the answers cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounts {
    /// Packets whose trace was found.
    pub hits: u64,
    /// Packets of whose key nothing was kept.
    pub absent: u64,
    /// Packets whose trace may be another one since the tables changed.
    pub stale: u64,
    /// Changes of tables that were compared with keys, to keep traces that they do not concern.
    pub compared: u64,
    /// Packets that were searched for at once, since the cache did not pay.
    pub passed_by: u64,
}

impl CacheCounts {
    /// Packets looked up.
    pub fn lookups(&self) -> u64 {
        self.hits + self.absent + self.stale
    }
}
