//! The file of a tunnel's keys.
//!
//! A subset of TOML that a reader of one page needs: comments, `[[sa]]`, and `name = value` with a number, a boolean, or a string without
//! escapes. Read here and not by a general parser, whose copies of a key nobody could wipe.

mod line;

use crate::envelope::Mode;
use crate::key::Key;
use line::{Line, Value};

/// SPIs below are reserved (RFC 4303 §2.1).
const SPI_MIN: u64 = 256;

/// What to write instead, for messages.
const FORM: &str = "[[sa]]\nspi_out = 0x1001\nkey_out = \"40 or 72 hexadecimal digits\"\nspi_in = 0x2001\nkey_in = \"others\"";

/// A pair of SAs, one in each direction.
#[derive(Debug)]
pub struct SaPair {
    /// SPI of what comes in.
    pub spi_in: u32,
    /// Its key.
    pub key_in: Key,
    /// SPI and key of what goes out; an SA that only receives needs none.
    pub out: Option<(u32, Key)>,
    /// Whether anything goes out by it: not by old keys, nor by coming ones.
    pub sends: bool,
    /// Whether sequence numbers have 64 bits.
    pub has_esn: bool,
    /// What they carry.
    pub mode: Mode,
}

/// What is wrong with a file. No word of it holds a key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct KeysError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl KeysError {
    fn new(line: usize, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { line, cause: cause.into(), remedy: remedy.into() }
    }
}

/// Reads a file of keys: one SA pair or more, of which one at least sends.
///
/// # Errors
/// The first thing that is wrong. Two equal keys are, wherever they are: with AES-GCM two senders of one key give it away.
pub fn parse(text: &str) -> Result<Vec<SaPair>, KeysError> {
    let mut tables: Vec<Table> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match Line::parse(line) {
            Some(Line::Blank) => {}
            Some(Line::Table) => tables.push(Table { line: number, ..Table::default() }),
            Some(Line::Pair(name, value)) => {
                let table = tables.last_mut().ok_or_else(|| {
                    KeysError::new(
                        number,
                        format!("`{name}` belongs to no SA"),
                        "begin with a line [[sa]]",
                    )
                })?;
                table.set(number, name, value)?;
            }
            None => return Err(KeysError::new(number, "this is no line of a key file", FORM)),
        }
    }
    let pairs = tables.into_iter().map(Table::finish).collect::<Result<Vec<_>, _>>()?;
    check_together(&pairs)?;
    Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
}

/// An `[[sa]]` as far as it is read.
#[derive(Default)]
struct Table {
    line: usize,
    spi_in: Option<u32>,
    spi_out: Option<u32>,
    key_in: Option<Key>,
    key_out: Option<Key>,
    esn: Option<bool>,
    receive_only: Option<bool>,
    mode: Option<Mode>,
}

impl Table {
    fn set(&mut self, line: usize, name: &str, value: Value<'_>) -> Result<(), KeysError> {
        let is_new = match name {
            "spi_in" => self.spi_in.replace(spi(line, name, value)?).is_none(),
            "spi_out" => self.spi_out.replace(spi(line, name, value)?).is_none(),
            "key_in" => self.key_in.replace(key(line, name, value)?).is_none(),
            "key_out" => self.key_out.replace(key(line, name, value)?).is_none(),
            "esn" => self.esn.replace(flag(line, name, value)?).is_none(),
            "receive_only" => self.receive_only.replace(flag(line, name, value)?).is_none(),
            "mode" => self.mode.replace(mode(line, value)?).is_none(),
            _ => {
                let names = "spi_in, spi_out, key_in, key_out, esn, mode, receive_only";
                return Err(KeysError::new(
                    line,
                    format!("`{name}` is no name of a key file"),
                    format!("names are: {names}"),
                ));
            }
        };
        let twice =
            || KeysError::new(line, format!("`{name}` is said twice of one SA"), "remove one");
        is_new.then_some(()).ok_or_else(twice)
    }

    fn finish(self) -> Result<(usize, SaPair), KeysError> {
        let line = self.line;
        let missing = |name: &str| {
            KeysError::new(
                line,
                format!("the SA has no {name}"),
                format!("write it as in:\n{FORM}"),
            )
        };
        let sends = self.receive_only != Some(true);
        if sends && self.spi_out.is_none() {
            return Err(missing("spi_out"));
        }
        if sends && self.key_out.is_none() {
            return Err(missing("key_out"));
        }
        let pair = SaPair {
            spi_in: self.spi_in.ok_or_else(|| missing("spi_in"))?,
            key_in: self.key_in.ok_or_else(|| missing("key_in"))?,
            out: self.spi_out.zip(self.key_out),
            sends,
            has_esn: self.esn.unwrap_or(true),
            mode: self.mode.unwrap_or_default(),
        };
        Ok((line, pair))
    }
}

/// What no SA shows alone.
fn check_together(pairs: &[(usize, SaPair)]) -> Result<(), KeysError> {
    if !pairs.iter().any(|(_, pair)| pair.sends) {
        let cause = "no SA sends: there is none, or all are receive_only";
        return Err(KeysError::new(pairs.first().map_or(1, |(line, _)| *line), cause, FORM));
    }
    let mut keys: Vec<&Key> = Vec::new();
    let mut spis: Vec<(bool, u32)> = Vec::new();
    for (line, pair) in pairs {
        let out = pair.out.as_ref();
        for spi in
            [Some((false, pair.spi_in)), out.map(|(spi, _)| (true, *spi))].into_iter().flatten()
        {
            if spis.contains(&spi) {
                let cause = format!("two SAs have SPI {:#x} in the same direction", spi.1);
                return Err(KeysError::new(*line, cause, "give each its own"));
            }
            spis.push(spi);
        }
        for key in [Some(&pair.key_in), out.map(|(_, key)| key)].into_iter().flatten() {
            if keys.iter().any(|other| other.aes() == key.aes()) {
                let cause = "a key is there twice: two senders of one AES-GCM key give it away";
                let remedy = "make one for each SA and direction: od -An -v -tx1 -N20 /dev/urandom | tr -d ' \\n'";
                return Err(KeysError::new(*line, cause, remedy));
            }
            keys.push(key);
        }
    }
    Ok(())
}

fn spi(line: usize, name: &str, value: Value<'_>) -> Result<u32, KeysError> {
    let number = if let Value::Number(number) = value { Some(number) } else { None };
    let spi = number.filter(|spi| *spi >= SPI_MIN).and_then(|spi| u32::try_from(spi).ok());
    let wrong = || {
        let remedy = format!("choose a number from {SPI_MIN} to {:#x}", u32::MAX);
        KeysError::new(line, format!("`{name}` is no SPI that an SA may have"), remedy)
    };
    spi.ok_or_else(wrong)
}

fn key(line: usize, name: &str, value: Value<'_>) -> Result<Key, KeysError> {
    let remedy = "od -An -v -tx1 -N20 /dev/urandom | tr -d ' \\n' makes one (-N36 for AES-256)";
    let text = if let Value::Text(text) = value { text } else { "" };
    Key::from_hex(text).map_err(|error| KeysError::new(line, format!("`{name}`: {error}"), remedy))
}

fn flag(line: usize, name: &str, value: Value<'_>) -> Result<bool, KeysError> {
    match value {
        Value::Flag(flag) => Ok(flag),
        _ => Err(KeysError::new(
            line,
            format!("`{name}` is neither true nor false"),
            "write one of them",
        )),
    }
}

fn mode(line: usize, value: Value<'_>) -> Result<Mode, KeysError> {
    match value {
        Value::Text("transport") => Ok(Mode::Transport),
        Value::Text("tunnel") => Ok(Mode::Tunnel),
        _ => Err(KeysError::new(line, "`mode` is no mode", "write \"transport\" or \"tunnel\"")),
    }
}

#[cfg(test)]
mod tests;
