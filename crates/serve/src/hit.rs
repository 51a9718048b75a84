//! Bounds that callers hit, and who is told.

use std::sync::Arc;

/// A bound that callers of a socket have hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hit {
    /// All connections were taken: one made room for another.
    Connection,
    /// All connections were at work: one more was sent away.
    Refused,
    /// A body came too slowly, or beside too much of others'.
    Body,
}

/// Is told of each hit. It must not wait.
pub type Told = Arc<dyn Fn(Hit) + Send + Sync>;
