//! What is wrong with a configuration file: all of it, in the order of its lines.

use api::Fault;
use std::fmt;
use std::ops::Range;

/// One thing wrong.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Which switch, port or table.
    pub thing: String,
    /// What is wrong with it.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

/// Everything wrong with one file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Problems {
    /// The file, as messages name it.
    pub file: String,
    /// At least one, by line.
    pub list: Vec<Problem>,
}

impl Problems {
    /// The same as faults.
    pub fn faults(&self) -> Vec<Fault> {
        let fault = |problem: &Problem| {
            let Problem { line, thing, cause, remedy } = problem;
            Fault::new(thing, "read it", cause, remedy).at(&self.file, *line)
        };
        self.list.iter().map(fault).collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Problem { line, thing, cause, remedy } in &self.list {
            writeln!(f, "{}:{line}: {thing}: {cause}\n    remedy: {remedy}", self.file)?;
        }
        let plural = if self.list.len() == 1 { "" } else { "s" };
        write!(f, "{} error{plural} in {}", self.list.len(), self.file)
    }
}

/// Where each line of a text begins.
pub struct Lines(Vec<usize>);

impl Lines {
    /// Of this text.
    pub fn of(text: &str) -> Self {
        let breaks =
            text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(breaks).collect())
    }

    /// The line, from 1, in which a span begins.
    pub fn line(&self, span: Range<usize>) -> usize {
        self.0.partition_point(|&start| start <= span.start)
    }

    /// The bytes of a line of a text of `len` bytes, without its line break.
    pub fn range(&self, line: usize, len: usize) -> Range<usize> {
        self.0[line - 1]..self.0.get(line).map_or(len, |&next| next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_on_the_line_where_it_begins() {
        let lines = Lines::of("a\nbc\n\nd");
        assert_eq!([0, 1, 2, 4, 5, 6].map(|at| lines.line(at..at + 1)), [1, 1, 2, 2, 3, 4]);
    }
}
