//! What differs between two versions of a thing, key by key.

use crate::{Keys, PortSpec, SwitchSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use utoipa::ToSchema;

/// A key with another value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct KeyChange {
    /// The key, as in the configuration file.
    pub key: String,
    /// Its value before; `null` where it was left out.
    pub from: Value,
    /// Its value now.
    pub to: Value,
}

impl fmt::Display for KeyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} → {}", self.key, Shown(&self.from), Shown(&self.to))
    }
}

impl KeyChange {
    /// Keys that are otherwise than before.
    pub fn between(before: &Keys, after: &Keys) -> Vec<Self> {
        differences(before, after)
    }
}

/// A value as people read it.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("none"),
            Value::String(text) => f.write_str(text),
            other => other.fmt(f),
        }
    }
}

/// Changes, one behind the other.
pub fn in_words(changes: &[KeyChange]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl PortSpec {
    /// Keys that are otherwise than in a version before.
    pub fn changes_from(&self, before: &Self) -> Vec<KeyChange> {
        differences(&before.keys(), &self.keys())
    }
}

impl SwitchSpec {
    /// Keys that are otherwise than in a version before.
    pub fn changes_from(&self, before: &Self) -> Vec<KeyChange> {
        let keys = |spec: &Self| match serde_json::to_value(spec) {
            Ok(Value::Object(keys)) => keys,
            other => unreachable!("a switch is a struct of plain data, and became {other:?}"),
        };
        differences(&keys(before), &keys(self))
    }
}

fn differences(before: &Keys, after: &Keys) -> Vec<KeyChange> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let of = |keys: &Keys, name: &String| keys.get(name).cloned().unwrap_or(Value::Null);
    let change = |name: &String| {
        let (from, to) = (of(before, name), of(after, name));
        (from != to).then(|| KeyChange { key: name.clone(), from, to })
    };
    names.into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_that_came_went_or_changed_is_named_with_both_values() {
        let port = |keys| serde_json::from_value::<PortSpec>(keys).expect("a port");
        let before = port(json!({"name": "p", "type": "tap", "mtu": 1400, "rate": "1G"}));
        let after = port(json!({"name": "p", "type": "tap", "mtu": 9000, "netns": "a"}));
        let words = in_words(&after.changes_from(&before));
        assert_eq!(words, "mtu 1400 → 9000, netns none → a, rate 1G → none");
        assert!(after.changes_from(&after).is_empty());
        let switch = |keys| serde_json::from_value::<SwitchSpec>(keys).expect("a switch");
        let before = switch(json!({"name": "s"}));
        let after = switch(json!({"name": "s", "fail_mode": "secure", "aux": 2}));
        let words = in_words(&after.changes_from(&before));
        assert_eq!(words, "aux 0 → 2, fail_mode standalone → secure");
    }
}
