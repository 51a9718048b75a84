//! What changes in a namespace, as it changes: its interfaces, and the tables that routes depend on.

mod links;
mod tables;

pub use links::{LinkEvent, LinkMonitor};
pub use tables::{News, TableMonitor};
