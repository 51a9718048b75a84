//! `docs/reference/slice.md` and its JSON schemas: made from the grammar, and held to it by a test.

use crate::file::{DOMAIN, SLICE};
use crate::grammar::{Key, Presence, Shape};
use crate::schema;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/");

const HEAD: &str = "# Slices and domains, key by key

Every key of a slice's file and of the domain's file, as suiro reads them. A test makes this page from the tables that the reader uses.

Both files are YAML; JSON is read too. Everything wrong in a file is told at once, with its line.
Editors complete and check with the schemas [slice.schema.json](slice.schema.json) and [domain.schema.json](domain.schema.json).

| word | is written |
|---|---|
| name | 1 to 40 small letters, digits and `-`, a letter first |
| size | bytes, or a number with `K`, `M`, `G` or `T`: powers of 1024 |
| rate | bits a second from 1k to 1T: powers of 1000 |
| cores | a number with at most three digits after the point |
| time | a number with `us`, `ms` or `s` |
| end | `SWITCH:NUMBER`, `SWITCH:NAME` or `GUEST:PORT`. A switch's port that has a name gets the lowest free number and keeps it |

Keys that are *not built yet* are known and refused, so that no file means something else tomorrow.
";

fn page() -> String {
    let slice = tables("a slice's file", SLICE);
    let domain = tables("the domain's file", DOMAIN);
    format!("{HEAD}\n# A slice\n{slice}\n# The domain\n{domain}").replace("\n# ", "\n## ")
}

/// A table of keys, and behind it the tables inside.
fn tables(title: &str, keys: &'static [Key]) -> String {
    let mut page = format!("\n### {}\n\n{}", capital(title), table(keys));
    for key in keys {
        if let Some((title, keys)) = inside(key)
            && !keys.is_empty()
        {
            page += &tables(&title, keys);
        }
    }
    page
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn inside(key: &Key) -> Option<(String, &'static [Key])> {
    let named = format!("`{}`", key.name);
    match &key.shape {
        Shape::Table(keys) | Shape::Choice(keys) => Some((named, keys)),
        Shape::Named(_, Shape::Table(keys) | Shape::Choice(keys), _) => {
            Some((format!("each of {named}"), keys))
        }
        _ => None,
    }
}

fn table(keys: &[Key]) -> String {
    let (later, built): (Vec<&Key>, Vec<&Key>) =
        keys.iter().partition(|key| key.presence == Presence::Later);
    let rows: String = built.into_iter().map(row).collect();
    let table =
        format!("| key | says | values | when left out | example |\n|---|---|---|---|---|\n{rows}");
    if later.is_empty() {
        return table;
    }
    let later: Vec<_> = later.into_iter().map(|key| format!("`{}`", key.name)).collect();
    format!("{table}\nNot built yet: {}.\n", later.join(", "))
}

fn row(key: &Key) -> String {
    let default = match (key.presence, key.default) {
        (Presence::Needed, _) => "it is needed",
        (_, default) => default,
    };
    let example = if key.example.is_empty() { String::new() } else { format!("`{}`", key.example) };
    let cells =
        [format!("`{}`", key.name), key.help.into(), values(&key.shape), default.into(), example];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn values(shape: &Shape) -> String {
    match shape {
        Shape::Flag => "true, false".into(),
        Shape::Number(range) => format!("{} to {}", range.start(), range.end()),
        Shape::Word(words, _) => words.join(", "),
        Shape::Text(_) | Shape::Any => "a text".into(),
        Shape::List(of, _) => format!("a list: {}", values(of)),
        Shape::Pair(of) => format!("two: {}", values(of)),
        Shape::Table(_) => "a table".into(),
        Shape::Choice(_) => "one of its keys".into(),
        Shape::Named(_, of, most) => format!("names, at most {most}, each with {}", values(of)),
    }
}

fn hold(file: &str, made: &str) {
    let path = format!("{FOLDER}{file}");
    if std::env::var_os("SUIRO_WRITE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "{path} is out of date: run this with SUIRO_WRITE_DOCS=1");
}

#[test]
fn page_and_schemas_are_what_the_grammar_says() {
    let pretty = |schema| serde_json::to_string_pretty(&schema).unwrap() + "\n";
    hold("slice.md", &page());
    hold("slice.schema.json", &pretty(schema::slice()));
    hold("domain.schema.json", &pretty(schema::domain()));
}
