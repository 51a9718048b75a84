//! Texts into models: every fault of a stage at once.

use crate::fault::{Fault, Place};
use crate::file::check;
use crate::file::domain::DomainSpec;
use crate::file::slice::SliceSpec;
use crate::file::{DOMAIN, SLICE};
use crate::grammar::{self, Source};
use serde::de::DeserializeOwned;

/// A slice and where its file says what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// What it says.
    pub spec: SliceSpec,
    source: Source,
}

/// The domain and where its file says what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    /// What it says.
    pub spec: DomainSpec,
    source: Source,
}

impl Slice {
    /// Reads a slice's file; `file` is what messages call it.
    ///
    /// # Errors
    /// Every fault of the first stage that finds one: the text and its keys, then what they say together.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Fault>> {
        let (spec, source) = read(file, text, SLICE)?;
        let faults = check::slice(&spec, &source);
        if faults.is_empty() { Ok(Self { spec, source }) } else { Err(faults) }
    }

    /// A slice that has been read before; faults have no lines.
    pub fn of(spec: SliceSpec) -> Self {
        Self { spec, source: Source::default() }
    }

    /// Where a value is written.
    pub fn place(&self, pointer: &str) -> Option<Place> {
        self.source.place(pointer)
    }
}

impl Domain {
    /// Reads the domain's file; `file` is what messages call it.
    ///
    /// # Errors
    /// As [`Slice::parse`].
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Fault>> {
        let (spec, source) = read(file, text, DOMAIN)?;
        let faults = check::domain(&spec, &source);
        if faults.is_empty() { Ok(Self { spec, source }) } else { Err(faults) }
    }

    /// A domain that has been read before; faults have no lines.
    pub fn of(spec: DomainSpec) -> Self {
        Self { spec, source: Source::default() }
    }

    /// Where a value is written.
    pub fn place(&self, pointer: &str) -> Option<Place> {
        self.source.place(pointer)
    }
}

fn read<T: DeserializeOwned>(
    file: &str,
    text: &str,
    keys: &'static [grammar::Key],
) -> Result<(T, Source), Vec<Fault>> {
    let (json, source) = grammar::read(file, text, keys)?;
    // The grammar and the types say the same; what only the types refuse has no line, but is told all the same.
    let spec = serde_json::from_value(json)
        .map_err(|error| vec![Fault::new(file, format!("is refused: {error}"))])?;
    Ok((spec, source))
}
