//! `docs/reference/openflow-errors.md`, as the rows have it.

use super::{Proof, Row, TYPES, rows};
use std::fmt::Write;

const DOCUMENT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openflow-errors.md");

const HEAD: &str = "\
# Errors

Every error type and code of OpenFlow 1.3.5 §7.4.4: when suiro sends it and the test that provokes it, or why it is never sent. The
tests are cases of `cargo test -p suiro-acceptance --test conformance`; the table is made from their rows (`SUIRO_WRITE_DOCS=1` with the case
`errors::the_document_says_the_same` writes it), so it cannot say anything else.

A refused message changes nothing, and its error repeats its first 64 bytes.
";

fn line(row: &Row) -> String {
    let (kind, number) = row.code.numbers();
    let proof = match &row.proof {
        Proof::Case(_) => format!("`errors::{}_{}`", TYPES[usize::from(kind)], row.code),
        Proof::Other(test) => format!("`{test}`"),
        Proof::Never => "never sent".into(),
    };
    format!("| {kind}, {number} | {} | {} | {proof} |\n", row.code, row.when)
}

fn text() -> String {
    let mut text = HEAD.to_owned();
    let mut last = None;
    for row in rows() {
        let (kind, _) = row.code.numbers();
        if last.replace(kind) != Some(kind) {
            let name = TYPES[usize::from(kind)].to_uppercase();
            write!(
                text,
                "\n## OFPET_{name}\n\n| type, code | name | when | proof |\n|---|---|---|---|\n"
            )
            .unwrap();
        }
        text += &line(&row);
    }
    text
}

/// The document is what the rows say; `SUIRO_WRITE_DOCS=1` makes it so.
pub fn check() {
    let wanted = text();
    if std::env::var_os("SUIRO_WRITE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(DOCUMENT, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/reference/openflow-errors.md is out of date: run this with SUIRO_WRITE_DOCS=1"
    );
}
