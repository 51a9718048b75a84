//! Syntax errors, all of them: TOML's own recovery loses the rest of a table after some errors, so each broken line is taken out and the
//! rest is parsed again.
//!
//! Lines are overwritten with spaces, never removed, so that every span still points into the user's file.

use super::problem::Lines;
use std::ops::Range;
use toml::de::DeTable;

/// A line that TOML does not allow.
pub struct BrokenLine {
    /// Its number, from 1.
    pub line: usize,
    /// What TOML says.
    pub message: String,
    /// What stands before its `=`.
    pub key: String,
}

/// Broken lines that are looked for. Chosen: nobody corrects more in one go, and each costs one more parse.
const MOST: usize = 50;

/// The text without its broken lines, and those.
pub fn without_broken_lines(text: &str) -> (String, Vec<BrokenLine>) {
    let lines = Lines::of(text);
    let mut rest = text.to_owned();
    let mut broken = Vec::new();
    while broken.len() < MOST {
        let Err(error) = DeTable::parse(&rest) else { break };
        let line = lines.line(error.span().unwrap_or(0..0));
        let range = lines.range(line, text.len());
        if rest[range.clone()].trim().is_empty() {
            break;
        }
        let key = text[range.clone()].split('=').next().unwrap_or_default().trim().to_owned();
        broken.push(BrokenLine { line, message: error.message().to_owned(), key });
        blank(&mut rest, range);
    }
    (rest, broken)
}

fn blank(text: &mut String, range: Range<usize>) {
    let spaces = " ".repeat(range.len());
    text.replace_range(range, &spaces);
}
