//! What nodes really have: each object of a slice with all that makes it the same one, and whose it is.
//!
//! An object that was removed and made again is another one: a port by its address, a rule by when it began.

use super::file::End;
use crate::domain::layout::{Layout, Node};
use crate::domain::user::at_node;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

/// The switch of a node that carries links to others.
const K: &str = "K";
/// Two looks at a rule's age differ by less, as long as it is the same rule. Chosen: above a command's time on a busy machine, below an edit's.
const SAME_S: f64 = 0.5;

/// An object.
#[derive(Clone, Debug)]
struct Object {
    /// What it is, in all that may not change unasked.
    is: String,
    /// When it began, in seconds since 1970, where that is told.
    began: Option<f64>,
    /// The thing of the slice that it belongs to, such as `link x3`; none: the nodes' own, or a part of what stays.
    of: Option<String>,
}

impl Object {
    fn is_same(&self, other: &Self) -> bool {
        let began = self.began.zip(other.began).is_none_or(|(a, b)| (a - b).abs() < SAME_S);
        self.is == other.is && began
    }
}

/// All objects of all nodes.
pub struct Seen {
    objects: BTreeMap<String, Object>,
}

impl Seen {
    /// Looks at every node. `things` says whose ports of the slice's switches are.
    pub fn look(layout: &Layout, things: &BTreeMap<End, String>) -> Result<Self> {
        let mut objects = BTreeMap::new();
        for node in &layout.nodes {
            Look {
                node,
                things,
                ids: BTreeMap::new(),
                ports: BTreeMap::new(),
                objects: &mut objects,
            }
            .all()?;
        }
        Ok(Self { objects })
    }

    /// Things of the slice of which an object has come, gone, changed, or is another one; objects of no thing by their own name.
    pub fn touched(&self, before: &Self) -> BTreeSet<String> {
        let names: BTreeSet<&String> = self.objects.keys().chain(before.objects.keys()).collect();
        let touched = |name: &&String| match (before.objects.get(*name), self.objects.get(*name)) {
            (Some(old), Some(new)) if old.is_same(new) => None,
            (old, new) => new.or(old).map(|it| it.of.clone().unwrap_or_else(|| (*name).clone())),
        };
        names.iter().filter_map(touched).collect()
    }
}

/// A look at one node.
struct Look<'a> {
    node: &'a Node,
    things: &'a BTreeMap<End, String>,
    /// Things by the even tunnel id of their path, or by a meter.
    ids: BTreeMap<u64, String>,
    /// Things by the number of their port of `K`.
    ports: BTreeMap<u64, String>,
    objects: &'a mut BTreeMap<String, Object>,
}

impl Look<'_> {
    fn all(&mut self) -> Result<()> {
        for circuit in self.ask(&["circuit", "list"])? {
            let spec = &circuit["spec"];
            let thing = thing(spec["link"].as_str().unwrap_or_default());
            if let Some(id) = spec["id"].as_u64() {
                self.ids.insert(id, thing.clone());
            }
            self.add(format!("circuit {}", spec["link"]), spec.to_string(), None, Some(thing));
        }
        for port in self.ask(&["port", "list"])? {
            self.port(&port);
        }
        for guest in self.ask(&["guest", "list"])? {
            let name = guest["spec"]["name"].as_str().unwrap_or_default();
            let is = format!("{} {}", guest["spec"], guest["pid"]);
            self.add(format!("guest {name}"), is, None, Some(format!("guest {name}")));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let rules = self.ask(&["flow", "list", K])?;
        for rule in &rules {
            self.name_meter(rule);
        }
        for rule in rules {
            let name = format!("rule of K {} {}", rule["priority"], text(&rule["match"]));
            let of = self.of_rule(&rule);
            let began = rule["duration_s"].as_f64().map(|age| now - age);
            self.add(name, text(&rule["actions"]).into(), began, of);
        }
        for meter in self.ask(&["meter", "list", K])? {
            let id = meter["meter_id"].as_u64().unwrap_or_default();
            let of = self.ids.get(&id).or_else(|| self.ids.get(&(id & !1))).cloned();
            self.add(format!("meter {id} of K"), text(&meter["text"]).into(), None, of);
        }
        Ok(())
    }

    fn ask(&self, words: &[&str]) -> Result<Vec<Value>> {
        let said = at_node(self.node, &[&["--json"], words].concat())?;
        serde_json::from_str(&said)
            .with_context(|| format!("suiro {} at {}", words.join(" "), self.node.name))
    }

    fn add(&mut self, name: String, is: String, began: Option<f64>, of: Option<String>) {
        let name = format!("{name} at {}", self.node.name);
        self.objects.insert(name, Object { is, began, of });
    }

    /// A port of a switch of the slice is its end's; one of `K` is that of the port that it is joined with, or of the guest that it is.
    fn port(&mut self, port: &Value) {
        let (switch, name) = (text(&port["switch"]), text(&port["name"]));
        let at = |switch: &str, port: &str| {
            let (switch, number) = (switch.rsplit('.').next()?, port.strip_prefix('p')?);
            let end = End { switch: switch.into(), port: number.parse().ok()? };
            self.things.get(&end).cloned()
        };
        let of = if switch == K {
            let peer = text(&port["spec"]["peer"]).split_once(':');
            let guest = text(&port["spec"]["netns"]).splitn(3, '-').nth(2);
            let joined = peer.and_then(|(switch, port)| at(switch, port));
            joined.or_else(|| guest.map(|guest| format!("guest {guest}")))
        } else {
            at(switch, name)
        };
        if let (K, Some(thing), Some(number)) = (switch, &of, port["number"].as_u64()) {
            self.ports.insert(number, thing.clone());
        }
        let is = format!("{} {}", port["spec"], port["mac"]);
        self.add(format!("port {switch}:{name}"), is, None, of);
    }

    /// Meters of links within a node have ids that no circuit tells.
    fn name_meter(&mut self, rule: &Value) {
        let (matched, actions) = (text(&rule["match"]), text(&rule["actions"]));
        let thing = number(matched, "in_port=").and_then(|port| self.ports.get(&port)).cloned();
        if let (Some(meter), Some(thing)) = (number(actions, "meter:"), thing) {
            self.ids.entry(meter & !1).or_insert(thing);
        }
    }

    fn of_rule(&self, rule: &Value) -> Option<String> {
        let (matched, actions) = (text(&rule["match"]), text(&rule["actions"]));
        if matched.contains("tun_id=0x1/0x1") {
            return None;
        }
        let by_port = number(matched, "in_port=").and_then(|port| self.ports.get(&port));
        let id = number(matched, "tun_id=").or_else(|| number(actions, "set_field:0x"));
        by_port.or_else(|| self.ids.get(&(id? & !1))).cloned()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The number behind a word; hexadecimal where it begins so, or the word does.
fn number(text: &str, word: &str) -> Option<u64> {
    let at = text.find(word)? + word.len();
    let (digits, radix) = match text[at..].strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if word.ends_with("0x") => (&text[at..], 16),
        None => (&text[at..], 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], radix).ok()
}

/// `g4.eth0` is guest `g4`'s, `x3` is a link.
fn thing(link: &str) -> String {
    match link.split_once('.') {
        Some((guest, _)) => format!("guest {guest}"),
        None => format!("link {link}"),
    }
}
