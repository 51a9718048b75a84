//! Flows by the real programs of rung tc and by the tables, at random: what one frame does is asked with `BPF_PROG_TEST_RUN`.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod limits;
mod order;
mod shapes;
mod sums;
mod times;
mod world;
