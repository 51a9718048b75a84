//! Rings against a slow, plain driver that does everything as the specification says it, one word at a time.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod attacks;
mod driver;
mod guest;
mod properties;
mod records;
mod recovery;
mod speed;
mod threads;
mod withdrawn;
