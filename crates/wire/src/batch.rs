//! How many frames are worked on together.

/// Most frames of a batch: as many as the kernel makes pages for at once when they leave as a burst (docs/decisions/0007). A word has a
/// bit for each.
pub const BATCH: usize = 64;
