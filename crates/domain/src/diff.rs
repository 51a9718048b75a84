//! What a new version of a slice changes, object by object, and what of it interrupts traffic.
//!
//! In place or anew (D3.6): rate, MTU, controllers, shares of cores and memory change while frames flow. Another node, site, kind, command
//! or port number makes the object anew; so does another way or node of an end for a link.

use crate::admit::rate_in_words;
use crate::decision::Decision;
use crate::file::slice::{Guest, Link, Outside, SliceSpec, Switch};
use crate::wire::OUTSIDE;
use crate::words::{Name, SliceKey};
use crate::world::Admitted;
use api::Action;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use utoipa::ToSchema;

/// What becomes of one object.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// What.
    pub action: Action,
    /// The object, as sentences call it: `link a`.
    pub thing: String,
    /// Where it is, or goes: a node, or the two of a link.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// What of it changes: `rate 100M → 200M`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What it interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<String>,
}

/// What a new version changes. None: nothing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// The slice.
    pub slice: SliceKey,
    /// Objects that change, by kind and name.
    pub changes: Vec<Change>,
}

/// Compares two versions of one slice; either may be missing.
pub fn diff(old: Option<&Admitted>, new: Option<&Admitted>) -> Plan {
    let key = old.or(new).map(|it| it.spec.key());
    let key = key.unwrap_or_else(|| "none/none".parse().expect("two names"));
    let old_and_new = old.zip(new).map(|(old, new)| [old, new]);
    let versions = [old, new].map(|it| it.map(objects).unwrap_or_default());
    let [old, new] = &versions;
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let change = |name: &&(usize, String)| match (old.get(*name), new.get(*name)) {
        (None, Some(new)) => Some(new.change(Action::Add)),
        (Some(old), None) => {
            let interrupts = Some(old.ends.into());
            Some(Change { interrupts, ..old.change(Action::Remove) })
        }
        (Some(old), Some(new)) => new.change_from(old),
        (None, None) => None,
    };
    let time = old_and_new.and_then(|[old, new]| time(&new.spec).change_from(&time(&old.spec)));
    Plan { slice: key, changes: names.iter().filter_map(change).chain(time).collect() }
}

/// An object of a slice, as a plan compares it.
struct Object {
    thing: String,
    at: String,
    /// What it says, by key.
    keys: BTreeMap<&'static str, Value>,
    /// Keys whose change makes it anew.
    anew: &'static [&'static str],
    /// What ends with it.
    ends: &'static str,
}

fn objects(admitted: &Admitted) -> BTreeMap<(usize, String), Object> {
    let Admitted { spec, decision } = admitted;
    let switches = spec
        .switches
        .iter()
        .map(|(name, it)| ((0, name.to_string()), switch(spec, decision, name, it)));
    let guests = spec
        .guests
        .iter()
        .map(|(name, it)| ((1, name.to_string()), guest(spec, decision, name, it)));
    let links =
        spec.links.iter().map(|(name, it)| ((2, name.to_string()), link(spec, decision, name, it)));
    let externals = spec
        .externals
        .iter()
        .map(|(name, it)| ((3, name.to_string()), external(decision, name, it)));
    switches.chain(guests).chain(links).chain(externals).collect()
}

/// When the whole of it is.
fn time(spec: &SliceSpec) -> Object {
    let keys = [("from", value(&spec.from)), ("until", value(&spec.until))];
    Object {
        thing: "time".into(),
        at: String::new(),
        keys: BTreeMap::from(keys),
        anew: &[],
        ends: "",
    }
}

fn value<T: Serialize>(value: T) -> Value {
    serde_json::to_value(value).expect("plain data")
}

fn switch(spec: &SliceSpec, decision: &Decision, name: &Name, it: &Switch) -> Object {
    let settings = spec.switch(it);
    let node = &decision.nodes[name];
    let keys = [
        ("node", value(node)),
        ("dpid", value(&it.dpid)),
        ("fail_mode", value(settings.fail_mode)),
        ("protocols", value(settings.protocols)),
        ("controllers", value(settings.controllers)),
        ("packet_ins", value(spec.budget.packet_ins)),
    ];
    Object {
        thing: format!("switch {name}"),
        at: node.to_string(),
        keys: BTreeMap::from(keys),
        anew: &["node", "dpid"],
        ends: "its rules, sessions and frames",
    }
}

fn guest(spec: &SliceSpec, decision: &Decision, name: &Name, it: &Guest) -> Object {
    let node = &decision.nodes[name];
    let keys = [
        ("node", value(node)),
        ("kind", value(it.kind)),
        ("command", value(&it.command)),
        ("files", value(&it.files)),
        ("control", value(it.control)),
        ("cpu", value(spec.cpu(it))),
        ("memory", value(spec.memory(it))),
        ("pids", value(spec.pids(it))),
        ("restart", value(spec.restart(it))),
        ("ports", value(&it.ports)),
    ];
    Object {
        thing: format!("guest {name}"),
        at: node.to_string(),
        keys: BTreeMap::from(keys),
        anew: &["node", "kind", "command", "files"],
        ends: "what runs in it",
    }
}

fn link(spec: &SliceSpec, decision: &Decision, name: &Name, it: &Link) -> Object {
    let ends = it.between.each_ref().map(|end| &decision.nodes[&end.of]);
    let circuit = decision.circuits.get(name.to_string().as_str());
    let way =
        circuit.map(|circuit| circuit.nodes().map(Name::to_string).collect::<Vec<_>>().join("–"));
    let at = way.clone().unwrap_or_else(|| ends[0].to_string());
    let keys = [
        ("between", value(&it.between)),
        ("way", value(&way)),
        ("rate", value(spec.rate(it))),
        ("mtu", value(spec.mtu(it))),
        ("max_delay", value(it.max_delay)),
    ];
    Object {
        thing: format!("link {name}"),
        at,
        keys: BTreeMap::from(keys),
        anew: &["between", "way"],
        ends: "its frames",
    }
}

fn external(decision: &Decision, name: &Name, it: &Outside) -> Object {
    let circuit = decision.circuits.get(&format!("{OUTSIDE}{name}"));
    let way =
        circuit.map(|circuit| circuit.nodes().map(Name::to_string).collect::<Vec<_>>().join("–"));
    let keys = [
        ("use", value(&it.door)),
        ("door", value(decision.doors.get(name))),
        ("to", value(&it.to)),
        ("way", value(&way)),
        ("rate", value(circuit.map(|circuit| rate_in_words(circuit.rate)))),
    ];
    Object {
        thing: format!("external {name}"),
        at: way.unwrap_or_default(),
        keys: BTreeMap::from(keys),
        anew: &["use", "door", "to", "way"],
        ends: "its frames",
    }
}

impl Object {
    fn change(&self, action: Action) -> Change {
        let (thing, at) = (self.thing.clone(), self.at.clone());
        Change { action, thing, at, keys: Vec::new(), interrupts: None }
    }

    fn change_from(&self, old: &Self) -> Option<Change> {
        let changed: Vec<&str> = self
            .keys
            .iter()
            .filter(|(key, value)| old.keys.get(*key) != Some(value))
            .map(|(key, _)| *key)
            .collect();
        if changed.is_empty() {
            return None;
        }
        let anew = changed.iter().any(|key| self.anew.contains(key));
        let words = changed.iter().map(|key| in_words(key, &old.keys[key], &self.keys[key]));
        let change = self.change(if anew { Action::Remake } else { Action::Change });
        Some(Change { keys: words.collect(), interrupts: anew.then(|| self.ends.into()), ..change })
    }
}

/// Values that are tables are too long for a line: their key alone.
fn in_words(key: &str, old: &Value, new: &Value) -> String {
    let short = |value: &Value| match value {
        Value::Null => Some("none".to_owned()),
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => None,
        Value::Array(items) if items.iter().all(Value::is_string) => {
            Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        Value::Array(_) => None,
        other => Some(other.to_string()),
    };
    match (short(old), short(new)) {
        (Some(old), Some(new)) if old.len() + new.len() < 100 => format!("{key} {old} → {new}"),
        _ => key.to_owned(),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.action.sign(), self.thing)?;
        if !self.at.is_empty() {
            write!(f, " ({})", self.at)?;
        }
        if !self.keys.is_empty() {
            write!(f, ": {}", self.keys.join(", "))?;
        }
        self.interrupts.iter().try_for_each(|what| write!(f, "; interrupts {what}"))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return write!(f, "slice {} is as it is wanted", self.slice);
        }
        let lines: Vec<String> = self.changes.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}
