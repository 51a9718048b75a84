//! Any actions on any frame: see `crates/offload/tests/oracle/bytes.rs`.
#![no_main]

#[path = "../../crates/offload/tests/oracle/bytes.rs"]
mod bytes;
#[path = "../../crates/offload/tests/oracle/play.rs"]
mod play;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    bytes::check(input);
});
