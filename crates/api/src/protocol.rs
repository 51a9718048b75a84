//! The OpenFlow versions that a switch speaks.

use crate::BadText;
use openflow::{Version, VersionSet};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// A version of OpenFlow, as users write it: `1.0` or `1.3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "1.3")]
pub struct Protocol(Version);

impl Protocol {
    /// Every version that suiro speaks, oldest first: what a switch speaks that says nothing of it.
    pub fn all() -> Vec<Self> {
        Version::ALL.iter().copied().map(Self).collect()
    }

    /// What a list stands for, oldest first.
    pub fn in_force(list: &[Self]) -> Vec<Self> {
        Self::set(list).known().map(Self).collect()
    }

    /// A list as a set; an empty list is every version.
    pub fn set(list: &[Self]) -> VersionSet {
        let versions: Vec<Version> = list.iter().map(|protocol| protocol.0).collect();
        VersionSet::of(if versions.is_empty() { Version::ALL } else { &versions })
    }
}

impl FromStr for Protocol {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let (what, form) = ("an OpenFlow version that suiro speaks", "1.0 or 1.3");
        Version::from_name(text).map(Self).ok_or_else(|| BadText { given: text.into(), what, form })
    }
}

impl TryFrom<String> for Protocol {
    type Error = BadText;

    fn try_from(text: String) -> Result<Self, BadText> {
        text.parse()
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> String {
        protocol.to_string()
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_they_are_shown_and_others_are_refused_with_what_to_write() {
        for protocol in Protocol::all() {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
        }
        let refused = "1.5".parse::<Protocol>().unwrap_err();
        assert_eq!(refused.form, "1.0 or 1.3");
    }

    #[test]
    fn no_version_named_is_every_version() {
        assert_eq!(Protocol::set(&[]), VersionSet::of(Version::ALL));
        assert_eq!(Protocol::set(&[Protocol(Version::V1_0)]), VersionSet(2));
    }
}
