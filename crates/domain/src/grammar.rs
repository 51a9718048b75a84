//! What a file may say: one row for each key, from which the reader, the JSON schema and the reference page are made.
//!
//! The reader walks a located tree along the grammar. It notes every fault at once, each with line and pointer, and gives the value in
//! the one form that the model's types read.

use crate::fault::{Fault, Place};
use crate::yaml::{self, Node, Value};
use api::{BadText, nearest};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub shape: Shape,
    /// What it says, in a few words.
    pub help: &'static str,
    /// Whether it must be there, may be, or is to come.
    pub presence: Presence,
    /// What is true when it is left out, as the reference says it.
    pub default: &'static str,
    /// An example of its value.
    pub example: &'static str,
}

/// Whether a key must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It must.
    Needed,
    /// It may be left out.
    Optional,
    /// It is known, and refused: not built yet.
    Later,
}

/// What a value may be.
#[derive(Debug)]
pub enum Shape {
    /// True or false.
    Flag,
    /// A whole number in a range.
    Number(RangeInclusive<u64>),
    /// One of a few words; of those behind, that they are not built yet.
    Word(&'static [&'static str], &'static [&'static str]),
    /// A text that stands for something.
    Text(fn(&str) -> Result<(), BadText>),
    /// Anything that is read elsewhere, as text.
    Any,
    /// A list, so many at most.
    List(&'static Shape, usize),
    /// A list of exactly two.
    Pair(&'static Shape),
    /// A table with one of these keys.
    Choice(&'static [Key]),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table whose keys are names that the user gives; so many at most.
    Named(fn(&str) -> Result<(), BadText>, &'static Shape, usize),
}

/// Checks that a text stands for a `T`.
///
/// # Errors
/// It does not.
pub fn stands_for<T: std::str::FromStr<Err = BadText>>(text: &str) -> Result<(), BadText> {
    text.parse::<T>().map(drop)
}

/// Any short text without control characters.
///
/// # Errors
/// It is long, or has them.
pub fn short_text(text: &str) -> Result<(), BadText> {
    let fine = text.len() <= 1024 && !text.contains(char::is_control);
    let what = "a short text";
    fine.then_some(()).ok_or_else(|| BadText {
        given: text.chars().take(40).collect(),
        what,
        form: "at most 1024 bytes in one line",
    })
}

impl Key {
    /// A key that may be left out.
    pub const fn new(name: &'static str, shape: Shape, help: &'static str) -> Self {
        Self { name, shape, help, presence: Presence::Optional, default: "", example: "" }
    }

    /// The key, which must be there.
    pub const fn needed(self) -> Self {
        Self { presence: Presence::Needed, ..self }
    }

    /// The key, which is not built yet.
    pub const fn later(name: &'static str, help: &'static str) -> Self {
        Self { presence: Presence::Later, ..Self::new(name, Shape::Any, help) }
    }

    /// The key, with what is true when it is left out.
    pub const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// The key, with an example of its value.
    pub const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
}

/// Where each value of a file is written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Source {
    file: String,
    lines: BTreeMap<String, usize>,
}

impl Source {
    /// The place of a value, or of the nearest one around it that is written.
    pub fn place(&self, pointer: &str) -> Option<Place> {
        let mut around = pointer;
        loop {
            if let Some(&line) = self.lines.get(around) {
                return Some(Place { file: self.file.clone(), line, pointer: pointer.into() });
            }
            around = &around[..around.rfind('/')?];
        }
    }
}

/// Reads a text along a grammar.
///
/// # Errors
/// Everything that the grammar does not allow, by line.
pub fn read(file: &str, text: &str, keys: &'static [Key]) -> Result<(Json, Source), Vec<Fault>> {
    let mut reader =
        Reader { source: Source { file: file.into(), lines: BTreeMap::new() }, faults: Vec::new() };
    let mut twice = Vec::new();
    let root = yaml::read(text, &mut twice);
    let broken = |reader: &mut Reader, broken: yaml::Broken| {
        let at = Place { file: file.into(), line: broken.line, pointer: String::new() };
        reader.faults.push(Fault::new("file", broken.what).at(Some(at)).remedy(broken.remedy));
    };
    twice.into_iter().for_each(|fault| broken(&mut reader, fault));
    let json = match root {
        Ok(root) => reader.table("", "file", &root, keys),
        Err(fault) => {
            broken(&mut reader, fault);
            None
        }
    };
    match json {
        Some(json) if reader.faults.is_empty() => Ok((json, reader.source)),
        _ => {
            reader.faults.sort_by_key(|fault| fault.at.as_ref().map(|at| at.line));
            Err(reader.faults)
        }
    }
}

struct Reader {
    source: Source,
    faults: Vec<Fault>,
}

impl Reader {
    fn fault(&mut self, pointer: &str, line: usize, thing: &str, what: String, remedy: String) {
        let file = self.source.file.clone();
        let at = Place { file, line, pointer: pointer.into() };
        self.faults.push(Fault::new(thing, what).at(Some(at)).remedy(remedy));
    }

    /// `thing` is what the value belongs to, as sentences name it: `link a`, `rate of link a`.
    fn value(&mut self, pointer: &str, thing: &str, node: &Node, shape: &Shape) -> Option<Json> {
        self.source.lines.insert(pointer.into(), node.line);
        match (shape, &node.value) {
            (Shape::Table(keys), _) => self.table(pointer, thing, node, keys),
            (Shape::Named(name, of, most), _) => self.named(pointer, thing, node, *name, of, *most),
            (Shape::List(of, most), Value::List(items)) => {
                self.list(pointer, thing, node.line, items, (of, *most))
            }
            (Shape::Pair(of), Value::List(items)) if items.len() == 2 => {
                self.list(pointer, thing, node.line, items, (of, 2))
            }
            (Shape::Pair(_), Value::List(items)) => {
                let what = format!("has {} entries", items.len());
                self.fault(pointer, node.line, thing, what, format!("write {}", form(shape)));
                None
            }
            (Shape::Choice(keys), _) => self.choice(pointer, thing, node, keys),
            (Shape::Any, _) => Some(Json::Null),
            (_, Value::Scalar { text, plain }) if !(text.is_empty() && *plain) => {
                self.scalar(pointer, thing, node.line, (text, *plain), shape)
            }
            _ => {
                let what = format!("is {}", kind(node));
                self.fault(pointer, node.line, thing, what, format!("write {}", form(shape)));
                None
            }
        }
    }

    fn scalar(
        &mut self,
        pointer: &str,
        thing: &str,
        line: usize,
        (text, plain): (&str, bool),
        shape: &Shape,
    ) -> Option<Json> {
        let other = || (format!("is {text:?}"), format!("write {}", form(shape)));
        let read = match shape {
            Shape::Flag if plain && text == "true" => Ok(Json::Bool(true)),
            Shape::Flag if plain && text == "false" => Ok(Json::Bool(false)),
            Shape::Number(range) => {
                let number = text.parse().ok().filter(|n: &u64| plain && range.contains(n));
                number.map(Json::from).ok_or_else(other)
            }
            Shape::Word(words, later) => word(text, words, later),
            Shape::Text(check) => check(text).map(|()| text.into()).map_err(|bad| {
                (
                    format!("is {:?}, which is not {}", bad.given, bad.what),
                    format!("write {}", bad.form),
                )
            }),
            _ => Err(other()),
        };
        read.map_err(|(what, remedy)| self.fault(pointer, line, thing, what, remedy)).ok()
    }

    fn list(
        &mut self,
        pointer: &str,
        thing: &str,
        line: usize,
        items: &[std::rc::Rc<Node>],
        (of, most): (&Shape, usize),
    ) -> Option<Json> {
        self.bound(pointer, thing, line, items.len(), most)?;
        let read = items
            .iter()
            .enumerate()
            .map(|(n, item)| self.value(&format!("{pointer}/{n}"), thing, item, of));
        let read: Vec<_> = read.collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Json::Array)
    }

    fn bound(
        &mut self,
        pointer: &str,
        thing: &str,
        line: usize,
        found: usize,
        most: usize,
    ) -> Option<()> {
        if found <= most {
            return Some(());
        }
        let what = format!("has {found} entries, and {most} are the most");
        self.fault(pointer, line, thing, what, format!("keep {most}"));
        None
    }

    fn named(
        &mut self,
        pointer: &str,
        thing: &str,
        node: &Node,
        name: fn(&str) -> Result<(), BadText>,
        of: &Shape,
        most: usize,
    ) -> Option<Json> {
        let entries = self.entries(pointer, thing, node)?;
        self.bound(pointer, thing, node.line, entries.len(), most)?;
        let (mut all, mut whole) = (Map::new(), true);
        for (key, value) in entries {
            let inner = format!("{pointer}/{}", key.name);
            if let Err(bad) = name(&key.name) {
                let what = format!("{:?} is not {}", key.name, bad.what);
                self.fault(&inner, key.line, thing, what, format!("write {}", bad.form));
                whole = false;
                continue;
            }
            match self.value(&inner, &inside(thing, &key.name), value, of) {
                Some(json) => drop(all.insert(key.name.clone(), json)),
                None => whole = false,
            }
            self.source.lines.insert(inner, key.line);
        }
        whole.then_some(Json::Object(all))
    }

    fn table(
        &mut self,
        pointer: &str,
        thing: &str,
        node: &Node,
        keys: &'static [Key],
    ) -> Option<Json> {
        let entries = self.entries(pointer, thing, node)?;
        let (mut all, mut whole) = (Map::new(), true);
        for (key, value) in entries {
            let inner = format!("{pointer}/{}", key.name);
            let Some(known) = keys.iter().find(|known| known.name == key.name) else {
                self.unknown(&inner, thing, key, keys);
                whole = false;
                continue;
            };
            if known.presence == Presence::Later {
                let what = format!("has `{}`, which is not built yet", key.name);
                self.fault(&inner, key.line, thing, what, format!("remove `{}`", key.name));
                whole = false;
                continue;
            }
            let name =
                if thing == "file" { key.name.clone() } else { format!("{} of {thing}", key.name) };
            match self.value(&inner, &name, value, &known.shape) {
                Some(json) => drop(all.insert(key.name.clone(), json)),
                None => whole = false,
            }
            self.source.lines.insert(inner, key.line);
        }
        for key in keys.iter().filter(|key| key.presence == Presence::Needed) {
            if !entries.iter().any(|(given, _)| given.name == key.name) {
                let what = format!("needs `{}`", key.name);
                self.fault(
                    pointer,
                    node.line,
                    thing,
                    what,
                    format!("add {}: {}", key.name, key.example),
                );
                whole = false;
            }
        }
        whole.then_some(Json::Object(all))
    }

    fn choice(
        &mut self,
        pointer: &str,
        thing: &str,
        node: &Node,
        keys: &'static [Key],
    ) -> Option<Json> {
        let table = self.table(pointer, thing, node, keys)?;
        if table.as_object().is_some_and(|table| table.len() == 1) {
            return Some(table);
        }
        let names: Vec<_> = keys.iter().map(|key| key.name).collect();
        let remedy = format!("write one of: {}", names.join(", "));
        self.fault(pointer, node.line, thing, "says not one thing".into(), remedy);
        None
    }

    fn unknown(&mut self, pointer: &str, thing: &str, key: &yaml::Key, keys: &[Key]) {
        let names: Vec<_> = keys.iter().map(|key| key.name).collect();
        let remedy = match nearest(&key.name, &names) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("keys there are {}", names.join(", ")),
        };
        self.fault(pointer, key.line, thing, format!("has no key `{}`", key.name), remedy);
    }

    fn entries<'n>(
        &mut self,
        pointer: &str,
        thing: &str,
        node: &'n Node,
    ) -> Option<&'n [(yaml::Key, std::rc::Rc<Node>)]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            Value::Scalar { text, plain: true } if text.is_empty() => Some(&[]),
            _ => {
                let what = format!("is {}", kind(node));
                self.fault(pointer, node.line, thing, what, "write a table: `key: value`".into());
                None
            }
        }
    }
}

fn word(text: &str, words: &[&str], later: &[&str]) -> Result<Json, (String, String)> {
    if words.contains(&text) {
        return Ok(text.into());
    }
    let choice = format!("choose one of: {}", words.join(", "));
    if later.contains(&text) {
        return Err((format!("is {text:?}, which is not built yet"), choice));
    }
    let remedy = nearest(text, words).map_or(choice, |word| format!("did you mean {word}?"));
    Err((format!("is {text:?}, which is unknown"), remedy))
}

/// `switches` and `s1` are `switch s1`; what is inside another thing is named with it.
fn inside(thing: &str, name: &str) -> String {
    let (kind, of) = thing.split_once(' ').map_or((thing, ""), |(kind, of)| (kind, of));
    let one = match kind {
        "switches" => "switch",
        other => other.strip_suffix('s').unwrap_or(other),
    };
    if of.is_empty() { format!("{one} {name}") } else { format!("{one} {name} {of}") }
}

fn form(shape: &Shape) -> String {
    match shape {
        Shape::Flag => "true or false, without quotes".into(),
        Shape::Number(range) => format!("a number from {} to {}", range.start(), range.end()),
        Shape::Word(words, _) => format!("one of: {}", words.join(", ")),
        Shape::Text(_) | Shape::Any => "a text".into(),
        Shape::List(..) => "a list: [a, b]".into(),
        Shape::Pair(_) => "a list of two: [a, b]".into(),
        Shape::Table(_) | Shape::Choice(_) | Shape::Named(..) => "a table: `key: value`".into(),
    }
}

fn kind(node: &Node) -> &'static str {
    match &node.value {
        Value::Scalar { text, plain: true } if text.is_empty() => "empty",
        Value::Scalar { .. } => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a table",
    }
}
