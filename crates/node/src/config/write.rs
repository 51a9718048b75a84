//! A configuration file from what a node has: the inverse of the reader. Pure.
//!
//! Keys with their default value are left out, so the file says what somebody chose. Name and type stand first, as people write them.

use super::SwitchConfig;
use api::{GuestSpec, SwitchSpec};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use toml::ser::ValueSerializer;

/// The file of these switches and guests; `remarks` stand at its head, each a line.
pub fn written(remarks: &[String], switches: &[SwitchConfig], guests: &[GuestSpec]) -> String {
    let mut text: String = remarks.iter().map(|remark| format!("# {remark}\n")).collect();
    for switch in switches {
        text += "\n[[switch]]\n";
        text += &keys(chosen(&switch.spec, &SwitchSpec::named(switch.spec.name.clone())));
        for (key, texts) in
            [("meters", &switch.meters), ("groups", &switch.groups), ("flows", &switch.flows)]
        {
            text += &rules(key, texts.iter().map(|located| located.value.as_str()));
        }
        for port in &switch.ports {
            text += "\n[[switch.port]]\n";
            text += &keys(fields(&port.value));
        }
    }
    for guest in guests {
        text += "\n[[guest]]\n";
        text += &keys(fields(guest));
    }
    text
}

fn fields(of: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(fields)) => fields,
        other => unreachable!("a declared thing is an object of keys: {other:?}"),
    }
}

/// What differs from the default; the name in any case.
fn chosen(of: &impl Serialize, default: &impl Serialize) -> Map<String, Value> {
    let usual = fields(default);
    let mut fields = fields(of);
    fields.retain(|key, value| key == "name" || usual.get(key) != Some(value));
    fields
}

fn keys(fields: Map<String, Value>) -> String {
    let rank = |key: &str| ["name", "type"].iter().position(|first| *first == key).unwrap_or(2);
    let mut fields: Vec<_> = fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
    fields.sort_by(|(a, _), (b, _)| (rank(a), a).cmp(&(rank(b), b)));
    fields.iter().map(|(key, value)| format!("{key} = {}\n", inline(value))).collect()
}

/// One rule a line.
fn rules<'a>(key: &str, texts: impl Iterator<Item = &'a str>) -> String {
    let mut lines = String::new();
    for text in texts {
        let _ = writeln!(lines, "  {},", inline(&Value::from(text)));
    }
    if lines.is_empty() { lines } else { format!("{key} = [\n{lines}]\n") }
}

fn inline(value: &Value) -> String {
    let mut text = String::new();
    if let Err(error) = value.serialize(ValueSerializer::new(&mut text)) {
        unreachable!("TOML has every value but null: {error}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Host, Located};

    const EVERY_KIND: &str = include_str!("../../../../docs/reference/node.example.toml");

    fn host() -> Host {
        Host { cores: vec![0, 1, 2, 3], node_id: "n".into(), copied_from: None }
    }

    fn bare(switches: &[SwitchConfig]) -> Vec<SwitchConfig> {
        let mut switches = switches.to_vec();
        let texts =
            |texts: &mut Vec<Located<String>>| texts.iter_mut().for_each(|text| text.line = 0);
        for switch in &mut switches {
            switch.line = 0;
            switch.ports.iter_mut().for_each(|port| port.line = 0);
            texts(&mut switch.flows);
            texts(&mut switch.groups);
            texts(&mut switch.meters);
        }
        switches
    }

    /// The example with its commented keys, too: each key that there is.
    #[test]
    fn what_is_written_is_read_as_it_was() {
        let text: String = EVERY_KIND
            .lines()
            .map(|line| format!("{}\n", line.trim_start_matches("#: ")))
            .collect();
        for text in [EVERY_KIND, &text] {
            let read = match Config::parse(text, "example", &host()) {
                Ok(read) => read,
                Err(_) if text != EVERY_KIND => continue,
                Err(error) => panic!("{error:?}"),
            };
            let guests: Vec<GuestSpec> =
                read.things.guests.iter().map(|guest| guest.value.clone()).collect();
            let written = written(&["A remark".into()], &read.switches, &guests);
            let again = Config::parse(&written, "written", &host())
                .unwrap_or_else(|error| panic!("{error:?}\n{written}"));
            assert_eq!(bare(&again.switches), bare(&read.switches), "{written}");
            let again: Vec<_> = again.things.guests.into_iter().map(|guest| guest.value).collect();
            assert_eq!(again, guests);
        }
    }
}
