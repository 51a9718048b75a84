//! From any actions to the words that a rung runs: what the fuzzer kept, and its neighbours, do what the worker does.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "oracle/bytes.rs"]
mod bytes;
#[path = "oracle/play.rs"]
mod play;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// What fuzz target `offload_program` begins with, and every input that once failed.
fn kept() -> Vec<Vec<u8>> {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/offload_program");
    let files = std::fs::read_dir(corpus).unwrap();
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn what_the_fuzzer_kept_holds() {
    let taken = kept().iter().filter(|input| bytes::check(input)).count();
    assert!(taken > 5, "{taken} of {}", kept().len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_near_to_it_holds(
        input in select(kept()),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut input = input;
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = byte;
        }
        bytes::check(&input);
    }
}
