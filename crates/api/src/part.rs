//! Parts: what one owner declares of a node, and what a new version of it changes.
//!
//! A part's text is the configuration file's, without `[node]`. Parts of slices say three things more:
//! * `[[guest]]` is a [`GuestSpec`](crate::GuestSpec), `[[circuit]]` a [`CircuitSpec`](crate::CircuitSpec).
//! * `declared_by = "PART"` in a `[[switch]]`: that part declares the switch, and this one adds ports and rules to it. Its rules may name
//!   ports of both. Of the switch's own keys only its name stands there.
//! * `session_netns = "NAME"` in a `[[switch]]`: sessions with its controllers begin in that network namespace. Datapath ids are unique
//!   within one namespace of sessions.

use crate::{Fault, KeyChange, PartName, SwitchName, in_words};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A part as its owner writes it: the configuration file's syntax, without `[node]`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartText {
    /// The file that it comes from, for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Switches with their ports and rules, as TOML.
    #[schema(example = "[[switch]]\nname = \"sw0\"\n")]
    pub text: String,
}

/// What a node has, as a configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// The file's text, as TOML.
    pub text: String,
}

/// What becomes of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It comes.
    Add,
    /// It changes and carries on.
    Change,
    /// It goes, and comes otherwise.
    Remake,
    /// It goes.
    Remove,
}

/// Kinds of object that a part declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Declared {
    /// A switch.
    Switch,
    /// A port, with its queues and rates.
    Port,
    /// A flow.
    Flow,
    /// A group.
    Group,
    /// A meter.
    Meter,
    /// A guest.
    Guest,
    /// An end of a circuit.
    Circuit,
}

/// What becomes of one object.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ObjectChange {
    /// What.
    pub action: Action,
    /// The kind of the object.
    pub kind: Declared,
    /// Its switch; itself, of a switch. Guests and circuits have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchName>,
    /// A port's, guest's or circuit's name; the text of a flow, group or meter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Keys that change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<KeyChange>,
    /// What of the traffic or the sessions is interrupted by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<String>,
}

/// What a new version of a part changes; with `dry_run`, what it would change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// The part.
    pub part: PartName,
    /// How often it has changed, this time included.
    pub generation: u64,
    /// Each object that changes; none if the part is as it is wanted already.
    pub changes: Vec<ObjectChange>,
}

/// A part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PartView {
    /// Its name; `file` is the configuration file's.
    pub name: PartName,
    /// How often it has changed; 0 for the configuration file, which nobody counts.
    pub generation: u64,
    /// Its switches.
    pub switches: Vec<SwitchName>,
    /// Its ports.
    pub ports: usize,
    /// What of it does not work yet: ports without a link, controllers that are not connected.
    pub waits_for: Vec<Fault>,
    /// What its owner wrote; not of the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<PartText>,
}

impl Action {
    /// The sign that users read.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Change => "~",
            Self::Remake => "-/+",
            Self::Remove => "-",
        }
    }
}

impl Declared {
    /// The word that users read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Port => "port",
            Self::Flow => "flow",
            Self::Group => "group",
            Self::Meter => "meter",
            Self::Guest => "guest",
            Self::Circuit => "circuit",
        }
    }
}

impl fmt::Display for ObjectChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = self.action.sign();
        let (kind, name) = (self.kind.word(), self.name.as_deref().unwrap_or_default());
        match (&self.switch, self.kind) {
            (None, _) => write!(f, "{sign} {kind} {name}")?,
            (Some(switch), Declared::Switch) => write!(f, "{sign} {kind} {switch}")?,
            (Some(switch), Declared::Port) => {
                write!(f, "{sign} {kind} {name} of switch {switch}")?;
            }
            (Some(switch), _) => write!(f, "{sign} {kind} of switch {switch}: {name}")?,
        }
        if !self.keys.is_empty() {
            write!(f, ": {}", in_words(&self.keys))?;
        }
        self.interrupts.iter().try_for_each(|what| write!(f, "; {what}"))
    }
}
