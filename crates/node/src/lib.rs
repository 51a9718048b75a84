//! (essay to come)

pub mod spec;
pub mod journal;
