//! Rings against a slow, plain driver that does everything as the specification says it, one word at a time.

mod attacks;
mod driver;
mod guest;
mod properties;
mod records;
mod recovery;
mod speed;
mod threads;
mod withdrawn;
