//! # metrics: what a node shows, as Prometheus reads it
//!
//! **Question answered**: how do the values of the local API become time series that are few, named by convention, and never jump?
//!
//! Pure: [`page`] takes what the node shows of itself at one moment ([`Snapshot`], all of it the crate `api`'s) and writes the text format
//! 0.0.4. Names and units are Prometheus' conventions: base units, `_total` for what only grows.
//!
//! ## Invariants
//!
//! * A family is written once, with its help and type, and its series one after the other.
//! * What only grows grows: a series that had a line has one as long as what it counts is there ([`Seen`]).
//! * The number of series is bounded. Where there could be any number, the first come have series of their own, the rest are summed as `other`.
//!   300 switches of 4 ports and 8 workers have less than 10,000, which a test counts.
//! * The text costs what it is long; nothing is kept but which series there are.
//!
//! Source: Prometheus, "Exposition formats" (text-based format) and "Metric and label naming".

mod families;
mod seen;
mod text;

pub use families::{Detail, Snapshot, page};
pub use seen::Seen;
