//! What is wrong with a text, where, and what to write instead.

use std::borrow::Cow;

/// A text that says nothing, or nothing that a switch can do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("column {}: \"{word}\": {problem}; {remedy}", .at + 1)]
pub struct TextError {
    /// Byte offset of the word in the text.
    pub at: usize,
    /// The word.
    pub word: String,
    /// What is wrong with it.
    pub problem: &'static str,
    /// What to do about it.
    pub remedy: Cow<'static, str>,
}

impl TextError {
    pub(super) fn new(
        at: usize,
        word: &str,
        problem: &'static str,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { at, word: word.to_owned(), problem, remedy: remedy.into() }
    }
}
