//! An error as a user meets it: which thing, at which step, why, and what to do. One form for log, API and command line.

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use utoipa::ToSchema;

/// An error for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// What it is about: `switch sw0`, `port guest1 of switch sw0`.
    pub thing: String,
    /// What was being done to it.
    pub step: String,
    /// Why that failed: the whole chain, outermost first.
    pub cause: String,
    /// What to do.
    pub remedy: String,
    /// Where it is written, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Box<Location>>,
}

/// A line of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Location {
    /// The file, as who sent it calls it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl Fault {
    /// An error of these four parts.
    pub fn new(
        thing: impl Into<String>,
        step: impl Into<String>,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (thing, step) = (thing.into(), step.into());
        Self { thing, step, cause: cause.into(), remedy: remedy.into(), at: None }
    }

    /// The same, written there.
    #[must_use]
    pub fn at(mut self, file: &str, line: usize) -> Self {
        self.at = Some(Box::new(Location { file: file.into(), line }));
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thing, step, cause, remedy, at } = self;
        at.iter().try_for_each(|at| write!(f, "{}:{}: ", at.file, at.line))?;
        write!(f, "{thing}: {step}: {cause}\n    remedy: {remedy}")
    }
}

impl Error for Fault {}

/// The body of every answer that is an error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What, at which step, why, and what to do.
    pub error: Fault,
    /// What else is wrong, where all of it was found at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Fault>,
}

impl From<Fault> for ErrorBody {
    fn from(error: Fault) -> Self {
        Self { error, others: Vec::new() }
    }
}

impl fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        self.others.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

/// An error and its sources, outermost first. Only what talks to people uses this.
pub fn chain(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        // Some libraries repeat their source in their own text.
        if !texts.iter().any(|outer| outer.contains(&text)) {
            texts.push(text);
        }
        next = source.source();
    }
    texts.join(": ")
}
