//! Reading TOML tables without stopping at the first error.
//!
//! A [`Scope`] is one table. Each question to it ([`Scope::text`], [`Scope::number`] …) names a key, notes a problem if the value is
//! not what was asked, and answers `None` then, so that the reader goes on. [`Scope::close`] reports the keys nobody asked for.

use super::problem::{Lines, Problem, Problems};
use super::syntax::BrokenLine;
use api::{BadText, Keys, nearest};
use serde_json::Value;
use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and the line it stands on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its line, from 1.
    pub line: usize,
}

/// Collects problems of one file.
pub struct Notes {
    lines: Lines,
    broken: Vec<BrokenLine>,
    list: RefCell<Vec<Problem>>,
}

impl Notes {
    /// For this text, beginning with its broken lines.
    pub fn of(text: &str, broken: Vec<BrokenLine>) -> Self {
        let notes = Self { lines: Lines::of(text), broken, list: RefCell::default() };
        for line in &notes.broken {
            notes.add(
                line.line,
                "TOML",
                &*line.message,
                "correct the line; docs/reference/node.example.toml shows every key",
            );
        }
        notes
    }

    /// Notes a problem.
    pub fn add(
        &self,
        line: usize,
        thing: &str,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.list.borrow_mut().push(Problem {
            line,
            thing: thing.into(),
            cause: cause.into(),
            remedy: remedy.into(),
        });
    }

    /// The line of a span.
    pub fn line(&self, span: Range<usize>) -> usize {
        self.lines.line(span)
    }

    /// What was read, if nothing is wrong with it.
    ///
    /// # Errors
    /// Every problem in the file.
    pub fn unless_wrong<T>(self, file: &str, read: T) -> Result<T, Problems> {
        match self.into_sorted() {
            list if list.is_empty() => Ok(read),
            list => Err(Problems { file: file.into(), list }),
        }
    }

    fn into_sorted(self) -> Vec<Problem> {
        let mut list = self.list.into_inner();
        list.sort();
        list.dedup();
        list
    }
}

/// One table while it is read.
pub struct Scope<'t> {
    table: &'t DeTable<'t>,
    /// Where the table begins.
    pub line: usize,
    /// What the table describes, in messages.
    pub thing: String,
    notes: &'t Notes,
    asked: RefCell<Vec<&'static str>>,
}

impl<'t> Scope<'t> {
    /// A table found at `span`.
    pub fn new(table: &'t Spanned<DeTable<'t>>, thing: &str, notes: &'t Notes) -> Self {
        Self::at(table.get_ref(), notes.line(table.span()), thing, notes)
    }

    fn at(table: &'t DeTable<'t>, line: usize, thing: &str, notes: &'t Notes) -> Self {
        Self { table, line, thing: thing.into(), notes, asked: RefCell::default() }
    }

    /// Notes a problem of this table's `key`, or of the table where the key is absent.
    pub fn problem(&self, key: &str, cause: impl Into<String>, remedy: impl Into<String>) {
        self.notes.add(self.line_of(key), &self.thing, cause, remedy);
    }

    /// The line of a key, or of the table.
    pub fn line_of(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.line, |value| self.notes.line(value.span()))
    }

    /// Notes that a needed key is absent, unless a broken line further down was meant to be it.
    pub fn missing(&self, key: &str, cause: &str, remedy: impl Into<String>) {
        let meant = |broken: &BrokenLine| broken.line > self.line && broken.key == key;
        if !self.has(key) && !self.notes.broken.iter().any(meant) {
            self.notes.add(self.line, &self.thing, cause, remedy);
        }
    }

    /// The notes, for problems of other lines.
    pub fn notes(&self) -> &'t Notes {
        self.notes
    }

    /// Whether the key is there, right or wrong.
    fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn ask(&self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    /// A string.
    pub fn string(&self, key: &'static str) -> Option<Located<String>> {
        self.ask(key).and_then(|value| self.as_string(key, value))
    }

    /// A string that stands for a `T`.
    pub fn text<T: FromStr<Err = BadText>>(&self, key: &'static str) -> Option<T> {
        self.string(key).and_then(|found| self.parsed(key, &found))
    }

    /// A string or a number that stands for a `T`.
    pub fn text_or_number<T: FromStr<Err = BadText>>(&self, key: &'static str) -> Option<T> {
        let value = self.ask(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            return self.as_string(key, value).and_then(|found| self.parsed(key, &found));
        };
        let line = self.notes.line(value.span());
        let text = u64::from_str_radix(integer.as_str(), integer.radix())
            .map_or_else(|_| integer.to_string(), |number| number.to_string());
        self.parsed(key, &Located { value: text, line })
    }

    /// One of a few words.
    pub fn word<T>(
        &self,
        key: &'static str,
        words: &[&str],
        of: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let found = self.string(key)?;
        let value = of(&found.value);
        if value.is_none() {
            self.unknown_word(key, &found, words);
        }
        value
    }

    /// A list of words out of a few; `None` when the key is absent.
    pub fn words<T>(
        &self,
        key: &'static str,
        words: &[&str],
        of: fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let list = self.strings(key);
        let word = |found: Located<String>| {
            let value = of(&found.value);
            if value.is_none() {
                self.unknown_word(key, &found, words);
            }
            value
        };
        self.has(key).then(|| list.into_iter().filter_map(word).collect())
    }

    fn unknown_word(&self, key: &str, found: &Located<String>, words: &[&str]) {
        let hint = nearest(&found.value, words)
            .map_or_else(String::new, |word| format!("did you mean {word:?}? "));
        let remedy = format!("{hint}choose one of: {}", words.join(", "));
        let cause = format!("{key} = {:?} is unknown", found.value);
        self.notes.add(found.line, &self.thing, cause, remedy);
    }

    /// An integer in a range.
    pub fn number(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.ask(key)?;
        self.as_number(key, value, &range)
    }

    /// True or false.
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        let value = self.ask(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(key, value, "true or false");
        }
        flag
    }

    /// A list of strings.
    pub fn strings(&self, key: &'static str) -> Vec<Located<String>> {
        self.list(key).into_iter().filter_map(|value| self.as_string(key, value)).collect()
    }

    /// A list of strings that stand for `T`s.
    pub fn texts<T: FromStr<Err = BadText>>(&self, key: &'static str) -> Vec<Located<T>> {
        let parse = |found: Located<String>| {
            Some(Located { value: self.parsed(key, &found)?, line: found.line })
        };
        self.strings(key).into_iter().filter_map(parse).collect()
    }

    /// A list of integers; `None` when the key is absent.
    pub fn numbers(
        &self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<Vec<Located<u64>>> {
        let list = self.list(key);
        let locate = |value: &Spanned<DeValue<'_>>| {
            Some(Located {
                value: self.as_number(key, value, &range)?,
                line: self.notes.line(value.span()),
            })
        };
        self.has(key).then(|| list.into_iter().filter_map(locate).collect())
    }

    /// One table; absent is `None`.
    pub fn table(&self, key: &'static str, thing: &str) -> Option<Scope<'t>> {
        let value = self.ask(key)?;
        match value.get_ref() {
            DeValue::Table(table) => {
                Some(Self::at(table, self.notes.line(value.span()), thing, self.notes))
            }
            _ => {
                self.problem(
                    key,
                    format!("{key} is {}, not a table", kind(value)),
                    format!("write [{key}]"),
                );
                None
            }
        }
    }

    /// The tables of `[[path]]`.
    pub fn tables(&self, key: &'static str, path: &str) -> Vec<Scope<'t>> {
        let not_tables = || {
            self.problem(
                key,
                format!("{key} must be written as tables"),
                format!("write [[{path}]] before each {key}"),
            );
        };
        let Some(value) = self.ask(key) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            not_tables();
            return Vec::new();
        };
        let mut scopes = Vec::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            let Some(table) = item.get_ref().as_table() else {
                not_tables();
                continue;
            };
            scopes.push(Self::at(
                table,
                self.notes.line(item.span()),
                &format!("{key} #{}", index + 1),
                self.notes,
            ));
        }
        scopes
    }

    /// Notes a problem of `key`, or that it is missing.
    pub fn fault(&self, key: &str, cause: String, remedy: String) {
        match self.has(key) {
            true => self.problem(key, cause, remedy),
            false => self.missing(key, &cause, remedy),
        }
    }

    /// Every key that was not asked for, for a reader that has a table of what there may be.
    pub fn rest(&self) -> Keys {
        let asked = self.asked.borrow();
        let rest = self.table.iter().filter(|(key, _)| !asked.contains(&key.get_ref().as_ref()));
        rest.map(|(key, value)| (key.get_ref().to_string(), plain(value.get_ref()))).collect()
    }

    /// Reports keys that nobody asked for.
    pub fn close(self) {
        let known = self.asked.borrow();
        for key in self.table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let remedy = match nearest(key.get_ref(), &known) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("remove it; known here: {}", known.join(", ")),
            };
            let cause = format!("unknown key `{}`", key.get_ref());
            self.notes.add(self.notes.line(key.span()), &self.thing, cause, remedy);
        }
    }

    fn list(&self, key: &'static str) -> Vec<&'t Spanned<DeValue<'t>>> {
        let Some(value) = self.ask(key) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(key, value, "a list, such as [...]");
            return Vec::new();
        };
        list.iter().collect()
    }

    fn as_string(
        &self,
        key: &'static str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Located<String>> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, value, "text in double quotes");
        }
        text.map(|text| Located { value: text.into(), line: self.notes.line(value.span()) })
    }

    fn parsed<T: FromStr<Err = BadText>>(
        &self,
        key: &'static str,
        found: &Located<String>,
    ) -> Option<T> {
        let note = |bad: BadText| {
            self.notes.add(
                found.line,
                &self.thing,
                format!("{key}: {bad}"),
                format!("write {}", bad.form),
            );
        };
        found.value.parse().map_err(note).ok()
    }

    fn as_number(
        &self,
        key: &'static str,
        value: &Spanned<DeValue<'_>>,
        range: &RangeInclusive<u64>,
    ) -> Option<u64> {
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_type(key, value, "a number without quotes");
            return None;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = (range.start(), range.end());
            let cause = format!("{key}: {integer} is outside {low} to {high}");
            self.notes.add(
                self.notes.line(value.span()),
                &self.thing,
                cause,
                format!("choose a number from {low} to {high}"),
            );
        }
        number
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) {
        let cause = format!("{key} is {}", kind(value));
        self.notes.add(
            self.notes.line(value.span()),
            &self.thing,
            cause,
            format!("write {wanted}"),
        );
    }
}

/// A value as JSON has it. Dates become texts, which no key takes for anything else.
fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(integer) => {
            let (digits, radix) = (integer.as_str(), integer.radix());
            let small = || i64::from_str_radix(digits, radix).map(Value::from).ok();
            let number = u64::from_str_radix(digits, radix).map(Value::from).ok().or_else(small);
            number.unwrap_or_else(|| digits.into())
        }
        DeValue::Float(float) => float.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(list) => list.iter().map(|value| plain(value.get_ref())).collect(),
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
                (String::from(AsRef::<str>::as_ref(key.get_ref())), plain(value.get_ref()))
            };
            Value::Object(table.iter().map(entry).collect())
        }
    }
}

fn kind(value: &Spanned<DeValue<'_>>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
