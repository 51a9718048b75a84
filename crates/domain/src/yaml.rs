//! A YAML text as a tree in which every value knows its line.
//!
//! Bounded: a text of [`TEXT_MAX`] bytes, [`NODES_MAX`] values with what aliases repeat, [`DEPTH_MAX`] levels. Aliases and `<<` work; a
//! key that stands twice is a fault. Scalars stay text: the grammar says what each one is, so `no` and `012` are what somebody wrote.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use std::collections::HashMap;
use std::rc::Rc;

/// Longest text, in bytes. Chosen: 10,000 links are a tenth of it.
pub const TEXT_MAX: usize = 4 << 20;
/// Most values. Chosen: four for each of 50,000 links.
pub const NODES_MAX: usize = 200_000;
/// Most levels. Chosen: the grammar needs eight.
pub const DEPTH_MAX: usize = 64;

/// A value and its line.
#[derive(Debug)]
pub struct Node {
    /// Its line, from 1.
    pub line: usize,
    /// What it is.
    pub value: Value,
}

/// A value.
#[derive(Debug)]
pub enum Value {
    /// A text; nothing at all is a plain empty one.
    Scalar {
        /// It.
        text: String,
        /// Whether it stands without quotes.
        plain: bool,
    },
    /// A list.
    List(Vec<Rc<Node>>),
    /// Keys with their lines and values, in the text's order.
    Map(Vec<(Key, Rc<Node>)>),
}

/// A key and its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// It.
    pub name: String,
    /// Its line, from 1.
    pub line: usize,
}

/// Something wrong with the text itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Line.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl Broken {
    fn new(line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { line, what: what.into(), remedy: remedy.into() }
    }
}

/// Reads a text of one document; keys that stand twice are noted, and the first one counts.
///
/// # Errors
/// It is no YAML, or beyond a bound: nothing behind that place is known.
pub fn read(text: &str, twice: &mut Vec<Broken>) -> Result<Rc<Node>, Broken> {
    if text.len() > TEXT_MAX {
        let what = format!("has {} bytes, and {TEXT_MAX} are the most", text.len());
        return Err(Broken::new(1, what, "keep large files of guests in images"));
    }
    let parser = Parser::new_from_str(text);
    let mut reader = Reader { parser, anchors: HashMap::new(), nodes: 0, twice };
    let root = reader.document()?;
    Ok(root)
}

struct Reader<'a, 'b> {
    parser: Parser<'a, StrInput<'a>>,
    /// Values with an anchor, and how many values each has inside.
    anchors: HashMap<usize, (Rc<Node>, usize)>,
    nodes: usize,
    twice: &'b mut Vec<Broken>,
}

impl<'a> Reader<'a, '_> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Broken> {
        let ended = || Broken::new(1, "ends in the middle", "complete it");
        self.parser.next_event().ok_or_else(ended)?.map_err(|error| {
            let remedy = "check indentation, colons and quotes there";
            Broken::new(error.marker().line(), format!("is not YAML: {}", error.info()), remedy)
        })
    }

    fn document(&mut self) -> Result<Rc<Node>, Broken> {
        let root = loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
                (Event::StreamEnd, _) => return Ok(empty(1)),
                (event, span) => break self.node(event, span, 0)?,
            }
        };
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(root),
                (Event::DocumentStart(_), span) => {
                    let line = span.start.line();
                    return Err(Broken::new(
                        line,
                        "begins a second document",
                        "put it into a file of its own",
                    ));
                }
                _ => {}
            }
        }
    }

    fn count(&mut self, nodes: usize, line: usize) -> Result<(), Broken> {
        self.nodes += nodes;
        let what = || format!("has more than {NODES_MAX} values, repeated ones among them");
        (self.nodes <= NODES_MAX)
            .then_some(())
            .ok_or_else(|| Broken::new(line, what(), "divide the slice, or use fewer aliases"))
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Rc<Node>, Broken> {
        let (line, before) = (span.start.line(), self.nodes);
        if depth > DEPTH_MAX {
            let what = format!("has values more than {DEPTH_MAX} levels deep");
            return Err(Broken::new(line, what, "a slice needs eight"));
        }
        self.count(1, line)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                (Value::Scalar { text: text.into_owned(), plain }, anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                // An alias inside what it names has no value yet.
                let (node, inside) = self.anchors.get(&anchor).cloned().ok_or_else(|| {
                    Broken::new(
                        line,
                        "has an alias that names nothing above it",
                        "name an anchor that ends above",
                    )
                })?;
                self.count(inside, line)?;
                return Ok(node);
            }
            _ => return Ok(empty(line)),
        };
        let node = Rc::new(Node { line, value });
        if anchor > 0 {
            self.anchors.insert(anchor, (Rc::clone(&node), self.nodes - before));
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Broken> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Broken> {
        let mut entries: Vec<(Key, Rc<Node>)> = Vec::new();
        let mut merged: Vec<(Key, Rc<Node>)> = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let line = span.start.line();
            let key = self.node(event, span, depth + 1)?;
            let Value::Scalar { text: name, .. } = &key.value else {
                return Err(Broken::new(
                    line,
                    "has a list or a table as a key",
                    "write a word as the key",
                ));
            };
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            if name == "<<" {
                merge(&value, &mut merged)?;
            } else if let Some(first) = seen.insert(name.clone(), line) {
                let what = format!("has the key `{name}` twice; the first is on line {first}");
                self.twice.push(Broken::new(line, what, "keep one of them"));
                seen.insert(name.clone(), first);
            } else {
                entries.push((Key { name: name.clone(), line }, value));
            }
        }
        merged.retain(|(key, _)| seen.insert(key.name.clone(), key.line).is_none());
        entries.extend(merged);
        Ok(Value::Map(entries))
    }
}

/// What `<<` brings: a table, or several, of which the first that has a key counts.
fn merge(from: &Rc<Node>, into: &mut Vec<(Key, Rc<Node>)>) -> Result<(), Broken> {
    match &from.value {
        Value::Map(entries) => into.extend(entries.iter().cloned()),
        Value::List(items) => return items.iter().try_for_each(|item| merge(item, into)),
        Value::Scalar { .. } => {
            let what = "has a `<<` without a table to take keys from";
            return Err(Broken::new(from.line, what, "name the anchor of a table"));
        }
    }
    Ok(())
}

fn empty(line: usize) -> Rc<Node> {
    Rc::new(Node { line, value: Value::Scalar { text: String::new(), plain: true } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Result<Rc<Node>, Broken> {
        read(text, &mut Vec::new())
    }

    fn at<'a>(node: &'a Node, path: &str) -> &'a Node {
        path.split('/').fold(node, |node, name| match &node.value {
            Value::Map(entries) => {
                entries.iter().find(|(key, _)| key.name == name).unwrap().1.as_ref()
            }
            Value::List(items) => &items[name.parse::<usize>().unwrap()],
            Value::Scalar { .. } => panic!("{name} in a scalar"),
        })
    }

    fn text(node: &Node) -> &str {
        let Value::Scalar { text, .. } = &node.value else { panic!("{node:?}") };
        text
    }

    #[test]
    fn every_value_knows_its_line_and_stays_as_written() {
        let root = tree("a: no\nb:\n  - 012\n  - {c: \"x\"}\n").unwrap();
        assert_eq!((at(&root, "a").line, text(at(&root, "a"))), (1, "no"));
        assert_eq!((at(&root, "b/0").line, text(at(&root, "b/0"))), (3, "012"));
        assert_eq!((at(&root, "b/1/c").line, text(at(&root, "b/1/c"))), (4, "x"));
    }

    #[test]
    fn aliases_and_merged_keys_are_what_they_name_and_own_keys_win() {
        let root = tree("d: &d {x: 1, y: 2}\ne: {<<: *d, y: 3}\nf: *d\n").unwrap();
        assert_eq!((text(at(&root, "e/x")), text(at(&root, "e/y"))), ("1", "3"));
        assert_eq!(text(at(&root, "f/y")), "2");
    }

    #[test]
    fn a_key_that_stands_twice_is_noted_with_both_lines_and_the_first_counts() {
        let mut twice = Vec::new();
        let root = read("a: 1\nb: 2\na: 3\n", &mut twice).unwrap();
        assert_eq!(text(at(&root, "a")), "1");
        let [Broken { line: 3, what, .. }] = &twice[..] else { panic!("{twice:?}") };
        assert!(what.contains("line 1"), "{what}");
    }

    #[test]
    fn bombs_depth_length_second_documents_and_self_naming_aliases_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{inner}]\n");
        }
        let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
        let deeper = "[".repeat(20_000);
        for (text, what) in [
            (bomb.as_str(), "200000 values"),
            (&deep, "64 levels"),
            (&deeper, "limit"),
            (&"#".repeat(TEXT_MAX + 1), "bytes"),
            ("a: 1\n---\nb: 2\n", "second document"),
            ("a: &a [*a]\n", "names nothing above it"),
            ("a: [1, 2\nb: 3\n", "not YAML"),
            ("{[a]: 1}\n", "a list or a table as a key"),
            ("a: {<<: 3}\n", "without a table"),
        ] {
            let broken = tree(text).unwrap_err();
            assert!(broken.what.contains(what), "{broken:?}");
        }
    }
}
