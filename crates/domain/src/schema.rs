//! The JSON schema of the two files, made from their grammar: for editors, programs, and `/v1/schema/slice.json`.

use crate::file::{DOMAIN, SLICE};
use crate::grammar::{Key, Presence, Shape};
use serde_json::{Map, Value, json};

/// The schema of a slice's file.
pub fn slice() -> Value {
    root("A slice of suiro", SLICE)
}

/// The schema of the domain's file.
pub fn domain() -> Value {
    root("A domain of suiro", DOMAIN)
}

fn root(title: &str, keys: &[Key]) -> Value {
    let mut schema = table(keys);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = title.into();
    schema
}

/// Keys that are to come are not there: a file with one is refused.
fn built(keys: &[Key]) -> impl Iterator<Item = &Key> {
    keys.iter().filter(|key| key.presence != Presence::Later)
}

fn table(keys: &[Key]) -> Value {
    let properties: Map<String, Value> =
        built(keys).map(|key| (key.name.into(), property(key))).collect();
    let needed = built(keys).filter(|key| key.presence == Presence::Needed).map(|key| key.name);
    json!({
        "type": "object",
        "properties": properties,
        "required": needed.collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

fn property(key: &Key) -> Value {
    let mut schema = shape(&key.shape);
    let default = match key.default {
        "" => String::new(),
        default => format!(" When left out: {default}."),
    };
    schema["description"] = format!("{}.{default}", key.help).into();
    schema
}

fn shape(of: &Shape) -> Value {
    match of {
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Number(range) => {
            json!({"type": "integer", "minimum": range.start(), "maximum": range.end()})
        }
        Shape::Word(words, _) => json!({"enum": words}),
        Shape::Text(_) => json!({"type": ["string", "number"]}),
        Shape::Any => json!({}),
        Shape::List(of, most) => json!({"type": "array", "items": shape(of), "maxItems": most}),
        Shape::Pair(of) => {
            json!({"type": "array", "items": shape(of), "minItems": 2, "maxItems": 2})
        }
        Shape::Table(keys) => table(keys),
        Shape::Choice(keys) => {
            let mut schema = table(keys);
            (schema["minProperties"], schema["maxProperties"]) = (1.into(), 1.into());
            schema
        }
        Shape::Named(_, of, most) => {
            json!({"type": "object", "additionalProperties": shape(of), "maxProperties": most})
        }
    }
}
