//! One line of a key file.

/// What a line says.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Line<'a> {
    /// Nothing: empty, or a comment.
    Blank,
    /// `[[sa]]`.
    Table,
    /// `name = value`.
    Pair(&'a str, Value<'a>),
}

/// What is behind the `=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value<'a> {
    /// Decimal, or hexadecimal behind `0x`.
    Number(u64),
    /// `true` or `false`.
    Flag(bool),
    /// Between quotation marks, no escapes.
    Text(&'a str),
}

impl<'a> Line<'a> {
    /// `None`: it is none of these.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let text = line.trim_matches([' ', '\t']);
        if text.is_empty() || text.starts_with('#') {
            return is_comment(text).then_some(Self::Blank);
        }
        if let Some(rest) = text.strip_prefix("[[sa]]") {
            return is_comment(rest).then_some(Self::Table);
        }
        let (name, value) = text.split_once('=')?;
        let name = name.trim_matches([' ', '\t']);
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
        let (value, rest) = Value::parse(value.trim_matches([' ', '\t']))?;
        let is_pair = !name.is_empty() && name.bytes().all(is_name) && is_comment(rest);
        is_pair.then_some(Self::Pair(name, value))
    }
}

impl<'a> Value<'a> {
    /// The value at the beginning, and what is behind it.
    fn parse(text: &'a str) -> Option<(Self, &'a str)> {
        if let Some(text) = text.strip_prefix('"') {
            let (text, rest) = text.split_once('"')?;
            let is_plain = !text.contains(|c: char| c == '\\' || c.is_control());
            return is_plain.then_some((Self::Text(text), rest));
        }
        let end = text.find([' ', '\t', '#']).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let value = match word {
            "true" => Self::Flag(true),
            "false" => Self::Flag(false),
            _ => Self::Number(number(word)?),
        };
        Some((value, rest))
    }
}

/// As TOML writes them; without its `_`, and neither octal nor binary.
fn number(word: &str) -> Option<u64> {
    let is = |digits: &str, radix| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    if let Some(digits) = word.strip_prefix("0x") {
        return is(digits, 16).then(|| u64::from_str_radix(digits, 16).ok()).flatten();
    }
    let is_decimal = is(word, 10) && (word == "0" || !word.starts_with('0'));
    is_decimal.then(|| word.parse().ok()).flatten()
}

/// Whether a line may end with this.
fn is_comment(rest: &str) -> bool {
    let rest = rest.trim_matches([' ', '\t']);
    rest.is_empty()
        || rest.starts_with('#') && !rest.contains(|c: char| c.is_control() && c != '\t')
}
