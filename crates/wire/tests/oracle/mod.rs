//! Slow, obvious answers to what the crate answers fast; shared by its tests and its fuzz targets.
//!
//! Nothing here uses the crate's parser or sums: one reader, one byte at a time, written from the RFCs.

#![cfg_attr(
    test,
    allow(dead_code, clippy::allow_attributes, reason = "each test uses a part of the oracle")
)]

pub mod edits;
pub mod naive;
pub mod sums;
