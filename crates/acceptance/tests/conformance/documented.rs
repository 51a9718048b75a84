//! `docs/reference/openflow.md` names a proof for all that it says; this checks that each proof is there.

use crate::harness::Suite;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The case, about all cases so far.
pub fn cases(suite: &mut Suite) {
    let names = suite.names();
    suite.plain("docs::every_proof_in_openflow_md_is_there", move || {
        let page = Path::new(ROOT).join("docs/reference/openflow.md");
        let text = std::fs::read_to_string(&page).unwrap();
        let proofs: Vec<&str> = text.lines().flat_map(proofs).collect();
        assert!(proofs.len() > 100, "{} has only {} proofs", page.display(), proofs.len());
        let is_missing = |proof: &&str| match proof.ends_with(".rs") {
            true => !Path::new(ROOT).join(proof).is_file(),
            false => !names.iter().any(|name| is_match(proof, name)),
        };
        let missing: Vec<&str> = proofs.into_iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{} names what is not there: {missing:#?}", page.display());
    });
}

/// What a line names as proof: the words in backticks that are a case's name (they hold `::`) or a file of tests.
fn proofs(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|word| line.starts_with('|') && (word.contains("::") || word.ends_with(".rs")))
}

/// Whether the pattern, in which `*` stands for anything, is the whole name.
fn is_match(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| is_match(after, rest)))
        }),
    }
}
