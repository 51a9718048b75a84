//! Reading a port by the tables of its keys, and writing it as it was read.

use super::{COMMON, Kind, PortKind, PortSpec};
use crate::PortName;
use crate::key::{Key, KeyFault, KeyFaults, Keys, nearest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A port that was read: what can be told of it, and everything wrong with it.
pub struct Reading {
    /// The port without the keys that are wrong; none if it cannot be one without them.
    pub spec: Option<PortSpec>,
    /// What is wrong.
    pub faults: Vec<KeyFault>,
}

impl PortSpec {
    /// Reads a port; a key that is `null` is one that is left out.
    ///
    /// # Errors
    /// Everything wrong with it.
    pub fn read(keys: Keys) -> Result<Self, KeyFaults> {
        match Self::read_partly(keys) {
            Reading { spec: Some(spec), faults } if faults.is_empty() => Ok(spec),
            Reading { faults, .. } => Err(KeyFaults(faults)),
        }
    }

    /// Reads a port as far as it is right, for a reader that goes on to find what else is wrong.
    pub fn read_partly(mut keys: Keys) -> Reading {
        keys.retain(|_, value| !value.is_null());
        let mut reader = Reader { keys, good: Keys::new(), faults: Vec::new() };
        let spec = reader.read();
        Reading { spec, faults: reader.faults }
    }

    /// The port as keys. The name is left out where the interface gives it.
    pub fn keys(&self) -> Keys {
        let mut keys = match &self.kind {
            Kind::Tap(kind) => own_keys(kind),
            Kind::AfPacket(kind) => own_keys(kind),
            Kind::AfXdp(kind) => own_keys(kind),
            Kind::Vlink(kind) => own_keys(kind),
            Kind::VhostUser(kind) => own_keys(kind),
            Kind::Vxlan(kind) => own_keys(kind),
        };
        let name = Value::from(self.name.to_string());
        if keys.get("interface") != Some(&name) {
            keys.insert("name".into(), name);
        }
        keys.insert("type".into(), self.kind.kind().word().into());
        keys.extend(self.number.map(|number| ("number".into(), plain(&number))));
        keys.extend(self.mtu.map(|mtu| ("mtu".into(), mtu.into())));
        keys.extend(self.rate.map(|rate| ("rate".into(), plain(&rate))));
        if !self.queue.is_empty() {
            keys.insert("queue".into(), plain(&self.queue));
        }
        keys
    }
}

impl TryFrom<Keys> for PortSpec {
    type Error = KeyFaults;

    fn try_from(keys: Keys) -> Result<Self, KeyFaults> {
        Self::read(keys)
    }
}

impl From<PortSpec> for Keys {
    fn from(spec: PortSpec) -> Self {
        spec.keys()
    }
}

fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("specifications are plain data")
}

fn own_keys(kind: &impl Serialize) -> Keys {
    match plain(kind) {
        Value::Object(keys) => keys,
        other => unreachable!("a kind is a struct, and became {other}"),
    }
}

struct Reader {
    keys: Keys,
    /// Values of the forms of their keys.
    good: Keys,
    faults: Vec<KeyFault>,
}

impl Reader {
    fn read(&mut self) -> Option<PortSpec> {
        let kind = self.kind();
        for (name, value) in std::mem::take(&mut self.keys) {
            self.check(kind, name, &value);
        }
        let kind = kind?;
        let name = self.name();
        self.needed(kind.keys());
        self.alone(kind.keys());
        let own = kind.keys().iter().filter_map(|key| self.good.remove_entry(key.name)).collect();
        // Fails where a key that must be there is missing or wrong, which has been said.
        let kind = build(kind, own).ok()?;
        let spec = PortSpec {
            name: name?,
            number: self.take("number"),
            mtu: self.take("mtu"),
            rate: self.take("rate"),
            queue: self.take("queue").unwrap_or_default(),
            kind,
        };
        if let Kind::Vxlan(tunnel) = &spec.kind {
            self.faults.extend(tunnel.check());
        }
        spec.check_queues(&mut self.faults);
        Some(spec)
    }

    fn kind(&mut self) -> Option<PortKind> {
        let Some(value) = self.keys.get("type") else {
            let remedy = format!("add type = one of: {}", PortKind::WORDS.join(", "));
            self.faults.push(KeyFault::new("type", "the port has no type", remedy));
            return None;
        };
        PortKind::of(value.as_str()?)
    }

    /// Without a kind every key that some kind has is one.
    fn check(&mut self, kind: Option<PortKind>, name: String, value: &Value) {
        let of_another = || PortKind::ALL.into_iter().find_map(|kind| kind.key(&name));
        let key = match kind {
            Some(kind) => kind.key(&name),
            None => of_another(),
        };
        let checked = match (key, kind) {
            (Some(key), _) => key.check(value),
            (None, Some(kind)) if of_another().is_some() => Err(out_of_place(kind, &name)),
            (None, _) => Err(unknown(kind, &name)),
        };
        match checked {
            Ok(value) => drop(self.good.insert(name, value)),
            Err(fault) => self.faults.push(fault),
        }
    }

    /// The name given, or the interface's where that is a port name too.
    fn name(&mut self) -> Option<PortName> {
        if let Some(name) = self.take("name") {
            return Some(name);
        }
        let interface = self.good.get("interface").and_then(Value::as_str);
        let name = interface.and_then(|interface| interface.parse().ok());
        let has_fault = self.faults.iter().any(|fault| fault.key == "name");
        if name.is_none() && !has_fault {
            let (cause, remedy) = match interface {
                Some(interface) => (
                    format!("interface {interface} cannot name the port"),
                    "give the port a name of its own",
                ),
                None => ("the port has no name".into(), "add name = \"...\""),
            };
            self.faults.push(KeyFault::new("name", cause, remedy));
        }
        name
    }

    fn needed(&mut self, keys: &[Key]) {
        for key in keys {
            let is_there = self.good.contains_key(key.name)
                || self.faults.iter().any(|fault| fault.key == key.name);
            if let (Some(needed), false) = (key.needed, is_there) {
                self.faults.push(KeyFault::new(key.name, needed.cause, needed.remedy));
            }
        }
    }

    /// Keys whose companion is not set.
    fn alone(&mut self, keys: &[Key]) {
        for Key { name, with, .. } in keys {
            let Some(with) = with.filter(|_| self.good.contains_key(*name)) else { continue };
            let is_off = |value: &Value| *value == Value::Bool(false);
            if self.good.get(with).is_none_or(is_off)
                && self.faults.iter().all(|fault| fault.key != with)
            {
                let cause = format!("`{name}` means nothing without `{with}`");
                let remedy = format!("set `{with}`, too, or remove `{name}`");
                self.faults.push(KeyFault::new(name, cause, remedy));
            }
        }
    }

    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.good.remove(name)?;
        let wrong = |error: serde_json::Error| {
            let remedy = "see docs/reference/node.example.toml, which shows every key";
            self.faults.push(KeyFault::new(name, format!("{name}: {error}"), remedy));
        };
        serde_json::from_value(value).map_err(wrong).ok()
    }
}

fn build(kind: PortKind, own: Keys) -> serde_json::Result<Kind> {
    fn typed<T: DeserializeOwned>(own: Keys) -> serde_json::Result<T> {
        serde_json::from_value(own.into())
    }
    Ok(match kind {
        PortKind::Tap => Kind::Tap(typed(own)?),
        PortKind::AfPacket => Kind::AfPacket(typed(own)?),
        PortKind::AfXdp => Kind::AfXdp(typed(own)?),
        PortKind::Vlink => Kind::Vlink(typed(own)?),
        PortKind::VhostUser => Kind::VhostUser(typed(own)?),
        PortKind::Vxlan => Kind::Vxlan(typed(own)?),
    })
}

fn out_of_place(kind: PortKind, name: &str) -> KeyFault {
    let has_it = |other: &PortKind| other.key(name).is_some();
    let owners: Vec<_> = PortKind::ALL.into_iter().filter(has_it).map(PortKind::word).collect();
    let cause = format!("`{name}` means nothing on a port of type {}", kind.word());
    let remedy = format!("remove it, or make the port one of: {}", owners.join(", "));
    KeyFault::new(name, cause, remedy)
}

fn unknown(kind: Option<PortKind>, name: &str) -> KeyFault {
    let own = kind.map_or(&[][..], PortKind::keys);
    let known: Vec<_> = COMMON.iter().chain(own).map(|key| key.name).collect();
    let remedy = match nearest(name, &known) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("remove it; known here: {}", known.join(", ")),
    };
    KeyFault::new(name, format!("unknown key `{name}`"), remedy)
}

#[cfg(test)]
mod tests;
