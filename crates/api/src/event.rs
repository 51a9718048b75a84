//! Events: each change of what a node has and of how that does, in one order, with a number to go on from.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Where a reader of events is: the number of the last one that it has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Kinds of object that events are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Noun {
    /// The node itself: its store, its workers. Of a domain: one of its nodes.
    Node,
    /// A part: what one owner declares.
    Part,
    /// A switch.
    Switch,
    /// A port of a switch.
    Port,
    /// A controller of a switch.
    Controller,
    /// A flow of packets of a switch: the rung that it takes.
    Flow,
    /// The flows, groups and meters of a switch, counted.
    Rules,
    /// A guest.
    Guest,
    /// An end of a circuit.
    Circuit,
    /// Somebody who looks at frames.
    Capture,
    /// A bound that somebody hits.
    Bound,
    /// A slice of a domain: `tenant/slice`.
    Slice,
    /// A link of a slice: `tenant/slice/link`.
    Link,
    /// The operator's declaration of a domain.
    Domain,
}

/// What happened to an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Happening {
    /// It is there now.
    Added,
    /// Something else is wanted of it.
    Changed,
    /// It is gone.
    Removed,
    /// It does something else by itself: a link goes up, a controller comes.
    State,
    /// It does not do what it shall; the text says why.
    Fault,
    /// It is there, as the text says: told to readers that begin, and no change.
    Present,
}

/// What an event is about, and what it says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct News {
    /// The kind of its object.
    pub kind: Noun,
    /// The object's switch; the switch itself, of a switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The object's name in its switch, or on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What happened.
    pub change: Happening,
    /// Who wanted it: `file`, `api`, or a part's name; nobody where it happened by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// For people.
    pub text: String,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its number: one more than that of the event before it. No other event of the node ever has it.
    pub revision: Revision,
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The rest.
    #[serde(flatten)]
    pub news: News,
}

/// What a reader is told whose events are not kept any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Gone {
    /// Where the reader was.
    pub since: Revision,
    /// From where on events are kept.
    pub oldest: Revision,
    /// The newest event.
    pub newest: Revision,
}

impl News {
    /// News of a switch.
    pub fn of_switch(switch: &str, change: Happening, text: impl Into<String>) -> Self {
        let switch = Some(switch.into());
        Self { kind: Noun::Switch, switch, name: None, change, by: None, text: text.into() }
    }

    /// News of something that belongs to a switch.
    pub fn inside(
        (kind, switch, name): (Noun, &str, &str),
        change: Happening,
        text: impl Into<String>,
    ) -> Self {
        let (switch, name) = (Some(switch.into()), Some(name.into()));
        Self { kind, switch, name, change, by: None, text: text.into() }
    }

    /// News of the rules of a switch.
    pub fn of_rules(switch: &str, change: Happening, text: impl Into<String>) -> Self {
        Self { kind: Noun::Rules, ..Self::of_switch(switch, change, text) }
    }

    /// News of something that belongs to no switch.
    pub fn of_node(kind: Noun, name: &str, change: Happening, text: impl Into<String>) -> Self {
        let name = Some(name.into());
        Self { kind, switch: None, name, change, by: None, text: text.into() }
    }

    /// The same, wanted by somebody.
    #[must_use]
    pub fn by(mut self, owner: impl fmt::Display) -> Self {
        self.by = Some(owner.to_string());
        self
    }
}

impl Noun {
    /// The word that users read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Part => "part",
            Self::Switch => "switch",
            Self::Port => "port",
            Self::Controller => "controller",
            Self::Flow => "flow",
            Self::Rules => "rules",
            Self::Guest => "guest",
            Self::Circuit => "circuit",
            Self::Capture => "capture",
            Self::Bound => "bound",
            Self::Slice => "slice",
            Self::Link => "link",
            Self::Domain => "domain",
        }
    }
}

impl Happening {
    /// The word that users read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::State => "state",
            Self::Fault => "fault",
            Self::Present => "present",
        }
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.change.word(), self.kind.word())?;
        match (&self.switch, &self.name) {
            (Some(switch), Some(name)) => write!(f, " {switch} {name}")?,
            (Some(one), None) | (None, Some(one)) => write!(f, " {one}")?,
            (None, None) => {}
        }
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        self.by.iter().try_for_each(|by| write!(f, " (by {by})"))
    }
}
