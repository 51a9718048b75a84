//! What is wrong with a file or what does not fit, as people read it: where, what, short by how much, what would fit.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Place {
    /// The file, as who sent it calls it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The value, as a JSON pointer: `/links/a/rate`.
    pub pointer: String,
}

/// One fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// Where it is written, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
    /// What it is about: `guest vm1`. The sentence goes on with `what`.
    pub thing: String,
    /// What is wrong: `wants 4 GiB of memory at sendai; …`.
    pub what: String,
    /// What is lacking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_by: Option<String>,
    /// What would be admitted in its place; computed, not guessed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<String>,
    /// What to do, where `fits` does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Fault {
    /// A fault of that thing.
    pub fn new(thing: impl Into<String>, what: impl Into<String>) -> Self {
        let (thing, what) = (thing.into(), what.into());
        Self { at: None, thing, what, short_by: None, fits: Vec::new(), remedy: None }
    }

    /// The same, written there.
    #[must_use]
    pub fn at(self, at: Option<Place>) -> Self {
        Self { at, ..self }
    }

    /// The same, with what to do.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// The same, with what is lacking.
    #[must_use]
    pub fn short_by(self, short_by: impl Into<String>) -> Self {
        Self { short_by: Some(short_by.into()), ..self }
    }

    /// The same, with what would be admitted.
    #[must_use]
    pub fn fits(self, fits: Vec<String>) -> Self {
        Self { fits, ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.iter().try_for_each(|at| write!(f, "{}:{}: ", at.file, at.line))?;
        write!(f, "{} {}", self.thing, self.what)?;
        let short = self.short_by.iter().map(|short| format!("short by {short}"));
        let fits = (!self.fits.is_empty()).then(|| format!("fits: {}", self.fits.join(", or ")));
        let rest: Vec<_> = short.chain(fits).chain(self.remedy.clone()).collect();
        match (&rest[..], &self.remedy) {
            ([], _) => Ok(()),
            // A remedy alone ends the line: `site "tokio" is unknown · did you mean tokyo?`
            ([only], Some(_)) => write!(f, " · {only}"),
            (all, _) => write!(f, "\n    {}", all.join(" · ")),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_reads_as_one_sentence_with_its_way_out() {
        let at = |line| Some(Place { file: "demo.yaml".into(), line, pointer: String::new() });
        let unknown =
            Fault::new("site \"tokio\"", "is unknown").at(at(12)).remedy("did you mean tokyo?");
        assert_eq!(
            unknown.to_string(),
            "demo.yaml:12: site \"tokio\" is unknown · did you mean tokyo?"
        );
        let short = Fault::new("link a", "wants 2 ms; the shortest way takes 4.1 ms")
            .at(at(49))
            .short_by("2.1 ms")
            .fits(vec!["delay 4.2ms".into()]);
        assert_eq!(
            short.to_string(),
            "demo.yaml:49: link a wants 2 ms; the shortest way takes 4.1 ms\n    short by 2.1 ms · fits: delay 4.2ms"
        );
    }
}
