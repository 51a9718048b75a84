//! Match fields: what they select, and what is refused.

mod flow_control;
mod pipeline;
mod refusals;
mod rows;
mod selection;

pub use rows::{ROWS, Row, needs};

use crate::harness::Suite;

/// The cases.
pub fn cases(suite: &mut Suite) {
    selection::cases(suite);
    pipeline::cases(suite);
    flow_control::cases(suite);
    refusals::cases(suite);
}
