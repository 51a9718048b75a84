//! (essay to come)

pub mod config;
pub mod spec;
pub mod journal;
