//! What of a slice is kept, and what is computed from that.

use api::{Declaration, PartName, PartText};
use domain::file::slice::SliceSpec;
use domain::{Admitted, Decision, Name, Names, Part};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What of a slice is kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// How often it has changed.
    pub generation: u64,
    /// What its owner wrote.
    pub declared: Declaration,
    /// What that says.
    pub spec: SliceSpec,
    /// What has been decided.
    pub decision: Decision,
    /// Nodes that have a part of it, or may have.
    pub had: BTreeSet<Name>,
    /// It goes as soon as no node has a part any more.
    pub going: bool,
}

/// A part and the name of what is in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Version {
    /// SHA-256 of its text.
    pub version: String,
    /// As the node takes it.
    pub text: PartText,
}

impl Record {
    /// What is kept of a declaration that was admitted in the place of `old`.
    pub fn next(old: Option<&Self>, declared: Declaration, admitted: &Admitted) -> Self {
        let mut had = old.map(|old| old.had.clone()).unwrap_or_default();
        had.extend(admitted.decision.all_nodes());
        let generation = old.map_or(0, |old| old.generation) + 1;
        let Admitted { spec, decision } = admitted.clone();
        Self { generation, declared, spec, decision, had, going: false }
    }

    /// As `domain` knows it.
    pub fn admitted(&self) -> Admitted {
        Admitted { spec: self.spec.clone(), decision: self.decision.clone() }
    }

    /// The name of its part on each node.
    pub fn part(&self) -> PartName {
        Names::new(&self.spec.key(), self.decision.uid).part()
    }

    /// What each node shall have of it; nothing when it goes.
    pub fn parts(&self) -> BTreeMap<Name, Version> {
        if self.going {
            return BTreeMap::new();
        }
        let parts = domain::compile(&self.spec, &self.decision);
        parts
            .into_iter()
            .map(|(node, part)| (node, Version::of(&part, &self.declared.file)))
            .collect()
    }
}

impl Version {
    /// Of that part; `file` is what messages call it.
    pub fn of(part: &Part, file: &str) -> Self {
        let text = part.text(file);
        Self { version: version(&text.text), text }
    }
}

/// The name of a part's text: equal texts have equal ones.
pub fn version(text: &str) -> String {
    hex(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
