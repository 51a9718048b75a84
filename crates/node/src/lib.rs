//! (essay to come)

pub mod spec;
