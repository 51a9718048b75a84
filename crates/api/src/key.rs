//! Keys: one row for each thing that may be said, from which readers, command line, reference and live changes are made.

use crate::BadText;
use serde_json::{Map, Value};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// What may be said of a thing, by name.
pub type Keys = Map<String, Value>;

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Its name in the configuration file and in JSON; the command line writes `-` for `_`.
    pub name: &'static str,
    /// Values that it takes.
    pub form: Form,
    /// What a change of it takes.
    pub change: Change,
    /// Of a key that must be there: what to say without it.
    pub needed: Option<Needed>,
    /// The key that must be set, too, for this one to mean something.
    pub with: Option<&'static str>,
    /// Its value, as help shows it.
    pub value: &'static str,
    /// What it says, in a few words.
    pub help: &'static str,
}

/// What is said of a key that is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needed {
    /// Why that is wrong.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// What a change of a key takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It comes into force while the thing goes on.
    Live,
    /// The thing goes, and another one comes.
    Remake,
}

/// Values that a key takes.
#[derive(Debug)]
pub enum Form {
    /// True or false, false when left out.
    Flag,
    /// True or false, true when left out.
    OnOff,
    /// A whole number in a range.
    Number(RangeInclusive<u64>),
    /// One of a few words.
    Word(&'static [&'static str]),
    /// A text that stands for something.
    Text(fn(&str) -> Result<(), BadText>),
    /// The same, where a number may be written as one.
    TextOrNumber(fn(&str) -> Result<(), BadText>),
    /// Tables of their own.
    Tables,
}

/// Something wrong with one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFault {
    /// The key.
    pub key: String,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

/// Everything wrong with the keys of one thing; at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFaults(pub Vec<KeyFault>);

impl fmt::Display for KeyFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes: Vec<_> = self.0.iter().map(|fault| fault.cause.as_str()).collect();
        f.write_str(&causes.join("; "))
    }
}

impl std::error::Error for KeyFaults {}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for KeyFault {}

impl KeyFault {
    /// A fault of this key.
    pub fn new(key: &str, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { key: key.into(), cause: cause.into(), remedy: remedy.into() }
    }
}

/// Checks that a text stands for a `T`.
///
/// # Errors
/// It does not.
pub fn stands_for<T: FromStr<Err = BadText>>(text: &str) -> Result<(), BadText> {
    text.parse::<T>().map(drop)
}

impl Key {
    /// A key that may be left out, and whose change makes a new thing.
    pub const fn new(
        name: &'static str,
        form: Form,
        value: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, form, change: Change::Remake, needed: None, with: None, value, help }
    }

    /// The key, changed while its thing goes on.
    pub const fn live(self) -> Self {
        Self { change: Change::Live, ..self }
    }

    /// The key, which must be there.
    pub const fn needed(self, cause: &'static str, remedy: &'static str) -> Self {
        Self { needed: Some(Needed { cause, remedy }), ..self }
    }

    /// The key, which means nothing without that other one.
    pub const fn only_with(self, other: &'static str) -> Self {
        Self { with: Some(other), ..self }
    }

    /// Checks a value, and writes it in the one form that types read.
    ///
    /// # Errors
    /// It is not of the key's form.
    pub fn check(&self, value: &Value) -> Result<Value, KeyFault> {
        match &self.form {
            Form::Flag | Form::OnOff if value.is_boolean() => Ok(value.clone()),
            Form::Flag | Form::OnOff => Err(self.mistyped(value, "true or false, without quotes")),
            Form::Number(range) => self.number(value, range),
            Form::Word(words) => self.word(value, words),
            Form::Text(check) => self.text(value, value.as_str(), *check),
            Form::TextOrNumber(check) => {
                let number = value.is_i64() || value.is_u64();
                let digits = number.then(|| value.to_string());
                self.text(value, digits.as_deref().or(value.as_str()), *check)
            }
            Form::Tables if value.is_array() => Ok(value.clone()),
            Form::Tables => Err(self.mistyped(value, "a list of tables")),
        }
    }

    fn number(&self, value: &Value, range: &RangeInclusive<u64>) -> Result<Value, KeyFault> {
        if !(value.is_i64() || value.is_u64()) {
            return Err(self.mistyped(value, "a number without quotes"));
        }
        if value.as_u64().is_some_and(|number| range.contains(&number)) {
            return Ok(value.clone());
        }
        let (name, low, high) = (self.name, range.start(), range.end());
        let cause = format!("{name}: {value} is outside {low} to {high}");
        Err(KeyFault::new(name, cause, format!("choose a number from {low} to {high}")))
    }

    fn word(&self, value: &Value, words: &[&str]) -> Result<Value, KeyFault> {
        let given = value.as_str().ok_or_else(|| self.mistyped(value, QUOTED))?;
        if words.contains(&given) {
            return Ok(value.clone());
        }
        let hint = nearest(given, words)
            .map_or_else(String::new, |word| format!("did you mean {word:?}? "));
        let remedy = format!("{hint}choose one of: {}", words.join(", "));
        Err(KeyFault::new(self.name, format!("{} = {given:?} is unknown", self.name), remedy))
    }

    fn text(
        &self,
        value: &Value,
        text: Option<&str>,
        check: fn(&str) -> Result<(), BadText>,
    ) -> Result<Value, KeyFault> {
        let text = text.ok_or_else(|| self.mistyped(value, QUOTED))?;
        let bad = |bad: BadText| {
            KeyFault::new(self.name, format!("{}: {bad}", self.name), format!("write {}", bad.form))
        };
        check(text).map_err(bad)?;
        Ok(text.into())
    }

    fn mistyped(&self, value: &Value, wanted: &str) -> KeyFault {
        let cause = format!("{} is {}", self.name, kind(value));
        KeyFault::new(self.name, cause, format!("write {wanted}"))
    }
}

const QUOTED: &str = "text in double quotes";

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// Finds the word that the writer of `given` most likely meant: at most two typing errors away, and less than half the word.
pub fn nearest<'a>(given: &str, words: &[&'a str]) -> Option<&'a str> {
    let (distance, word) = words.iter().map(|&word| (typing_errors(given, word), word)).min()?;
    (distance <= 2 && 2 * distance < word.len().max(2)).then_some(word)
}

/// Damerau–Levenshtein distance (restricted): insertions, deletions, replacements, and swaps of neighbours.
fn typing_errors(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        let [older, old, new] = &mut rows;
        new[0] = i;
        for j in 1..=b.len() {
            let replace = old[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            new[j] = replace.min(old[j] + 1).min(new[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                new[j] = new[j].min(older[j - 2] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_word_and_another_word_does_not() {
        let words = ["interface", "netns", "number", "name", "mtu", "mac"];
        assert_eq!(nearest("interfcae", &words), Some("interface"));
        assert_eq!(nearest("nets", &words), Some("netns"));
        assert_eq!(nearest("mut", &words), Some("mtu"));
        assert_eq!(nearest("colour", &words), None);
        assert_eq!(nearest("", &words), None);
    }

    #[test]
    fn a_value_of_another_form_is_refused_with_what_to_write() {
        let number = Key::new("ttl", Form::Number(1..=255), "", "");
        let dscp = Key::new("dscp", Form::TextOrNumber(stands_for::<crate::Dscp>), "", "");
        let word = Key::new("mode", Form::Word(&["auto", "native"]), "", "");
        let flag = Key::new("server", Form::Flag, "", "");
        for (key, value, cause, remedy) in [
            (&number, Value::from("5"), "ttl is text", "a number without quotes"),
            (&number, 0.into(), "ttl: 0 is outside 1 to 255", "from 1 to 255"),
            (&number, (-1).into(), "ttl: -1 is outside", "from 1 to 255"),
            (&number, 1.5.into(), "ttl is a number with a fraction", "a number"),
            (&dscp, 64.into(), "dscp: \"64\" is not a DSCP", "0 to 63"),
            (&word, "natve".into(), "mode = \"natve\" is unknown", "did you mean \"native\"?"),
            (&flag, 1.into(), "server is a number", "true or false"),
        ] {
            let fault = key.check(&value).unwrap_err();
            assert!(fault.cause.contains(cause) && fault.remedy.contains(remedy), "{fault:?}");
        }
        assert_eq!(dscp.check(&46.into()), Ok("46".into()));
        assert_eq!(number.check(&255.into()), Ok(255.into()));
    }
}
