//! Promised output, and what came.
//!
//! A line that is `...` stands for any lines. Within a line `...` stands for any text and `<number>` for a number, with a point or without.
//! Several spaces are as good as one, so that columns may be as wide as their values.

/// The first promised line that did not come, by its index; the number of promised lines if something came that was not promised.
pub fn mismatch(expected: &[String], got: &[String]) -> Option<usize> {
    let Some((line, rest)) = expected.split_first() else {
        return (!got.is_empty()).then_some(0);
    };
    if line.trim() == "..." {
        let at = (0..=got.len()).map(|skipped| mismatch(rest, &got[skipped..]));
        let deepest = at.collect::<Option<Vec<_>>>()?.into_iter().max();
        return deepest.map(|at| at + 1);
    }
    match got.split_first() {
        Some((came, others)) if is_like(&spaced(line), &spaced(came)) => {
            mismatch(rest, others).map(|at| at + 1)
        }
        _ => Some(0),
    }
}

fn spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_like(pattern: &str, text: &str) -> bool {
    if let Some(rest) = pattern.strip_prefix("...") {
        return (0..=text.len())
            .filter(|&at| text.is_char_boundary(at))
            .any(|at| is_like(rest, &text[at..]));
    }
    if let Some(rest) = pattern.strip_prefix("<number>") {
        let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.');
        let (number, after) = text.split_at(end.unwrap_or(text.len()));
        return number.parse::<f64>().is_ok() && is_like(rest, after);
    }
    match (pattern.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some(wanted), Some(came)) if wanted == came => {
            is_like(&pattern[wanted.len_utf8()..], &text[came.len_utf8()..])
        }
        _ => false,
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

pub fn what_varies_is_matched_and_all_else_is_literal() {
    let is_as = |expected: &str, got: &str| mismatch(&lines(expected), &lines(got)).is_none();
    assert!(
        is_as("a  b", "a b") && is_as("", "") && is_as("in <number> ms, ...", "in 0.35 ms, ok")
    );
    assert!(is_as("first\n...\nlast", "first\nlast") && is_as("...\nlast", "x\nlast\nlast"));
    assert!(!is_as("in <number> ms", "in no ms") && !is_as("<number>", "1.2.3"));
    assert!(!is_as("a.b", "axb") && !is_as("a", "ab") && !is_as("", "a") && !is_as("a", ""));
}

pub fn the_first_line_that_differs_is_named() {
    let at = |expected: &str, got: &str| mismatch(&lines(expected), &lines(got));
    assert_eq!(at("a\nb\nc", "a\nx\nc"), Some(1));
    assert_eq!(at("a\n...\nc\nd", "a\nx\nc\ne"), Some(3));
    assert_eq!(at("a", "a\nb"), Some(1));
}
