//! Cutting a text into items: `key`, `key=value`, `key:value` and `key(value)`, separated by commas or white space.

use super::error::TextError;

/// A piece of the text with its place in the whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

impl<'a> Span<'a> {
    pub(super) fn whole(text: &'a str) -> Self {
        Self { at: 0, text }
    }

    /// The bytes `range` of this span.
    pub(super) fn slice(self, range: std::ops::Range<usize>) -> Self {
        Self { at: self.at + range.start, text: &self.text[range] }
    }

    pub(super) fn from(self, start: usize) -> Self {
        self.slice(start..self.text.len())
    }

    /// Both sides of the first `separator`, if there is one.
    pub(super) fn split(self, separator: &str) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        Some((self.slice(0..at), self.from(at + separator.len())))
    }

    pub(super) fn trim(self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        let text = self.text.trim();
        Self { at: self.at + start, text }
    }

    pub(super) fn error(
        self,
        problem: &'static str,
        remedy: impl Into<std::borrow::Cow<'static, str>>,
    ) -> TextError {
        TextError::new(self.at, self.text, problem, remedy)
    }
}

/// One item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    /// Key and value together, for errors.
    pub(super) whole: Span<'a>,
    /// The key as written.
    pub(super) key: Span<'a>,
    /// The value, without its parentheses; empty if there is none.
    pub(super) value: Span<'a>,
}

impl<'a> Item<'a> {
    /// Whether the key is `name`, whatever the case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.key.text.eq_ignore_ascii_case(name)
    }

    /// The value, which must be there.
    pub(super) fn required(&self) -> Result<Span<'a>, TextError> {
        match self.value.text {
            "" => Err(self
                .whole
                .error("a value is missing", "write it after the word, as in key=value")),
            _ => Ok(self.value),
        }
    }

    /// Refuses a value.
    pub(super) fn bare(&self) -> Result<(), TextError> {
        match self.value.text {
            "" => Ok(()),
            _ => Err(self.whole.error("this word takes no value", "write the word alone")),
        }
    }
}

fn is_separator(c: char) -> bool {
    c == ',' || c.is_ascii_whitespace()
}

/// The first item of `text` and what follows it, or `None` at the end.
pub(super) fn next_item(text: Span<'_>) -> Result<Option<(Item<'_>, Span<'_>)>, TextError> {
    let start = text.text.find(|c| !is_separator(c)).unwrap_or(text.text.len());
    let text = text.from(start);
    if text.text.is_empty() {
        return Ok(None);
    }
    let key_end =
        text.text.find(|c| is_separator(c) || ":=(".contains(c)).unwrap_or(text.text.len());
    let key = text.slice(0..key_end);
    let (value, end) = take_value(text, key_end)?;
    Ok(Some((Item { whole: text.slice(0..end), key, value }, text.from(end))))
}

/// The value that begins with the delimiter at `start`, and where it ends.
fn take_value(text: Span<'_>, start: usize) -> Result<(Span<'_>, usize), TextError> {
    match text.text[start..].chars().next() {
        Some('(') => {
            let end = closing(text, start)?;
            Ok((text.slice(start + 1..end), end + 1))
        }
        Some(':' | '=') => {
            let end = value_end(text, start + 1)?;
            Ok((text.slice(start + 1..end), end))
        }
        _ => Ok((text.slice(start..start), start)),
    }
}

/// Where a value without parentheses of its own ends: at a separator that is not inside parentheses.
fn value_end(text: Span<'_>, start: usize) -> Result<usize, TextError> {
    let mut at = start;
    while let Some(c) = text.text[at..].chars().next() {
        match c {
            '(' => at = closing(text, at)? + 1,
            c if is_separator(c) => break,
            c => at += c.len_utf8(),
        }
    }
    Ok(at)
}

/// The offset of the parenthesis that closes the one at `open`.
fn closing(text: Span<'_>, open: usize) -> Result<usize, TextError> {
    let mut depth = 0usize;
    for (at, c) in text.text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(open + at);
        }
    }
    Err(text.from(open).error("a parenthesis is not closed", "add \")\""))
}

/// Every item of `text`.
pub(super) fn items(mut text: Span<'_>) -> Result<Vec<Item<'_>>, TextError> {
    let mut items = Vec::new();
    while let Some((item, rest)) = next_item(text)? {
        items.push(item);
        text = rest;
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(&str, &str)> {
        items(Span::whole(text)).unwrap().iter().map(|i| (i.key.text, i.value.text)).collect()
    }

    #[test]
    fn items_end_at_commas_and_white_space_outside_parentheses() {
        assert_eq!(
            cut(" a , b=1 c:2\td(e,f(g)) "),
            [("a", ""), ("b", "1"), ("c", "2"), ("d", "e,f(g)")]
        );
        assert_eq!(
            cut("set_field:00:11->eth_src,x=(a,b)"),
            [("set_field", "00:11->eth_src"), ("x", "(a,b)")]
        );
        assert_eq!(cut(",, "), []);
    }

    #[test]
    fn an_open_parenthesis_is_found_where_it_stands() {
        assert_eq!(items(Span::whole("a=1,b(c")).unwrap_err().at, 5);
    }
}
