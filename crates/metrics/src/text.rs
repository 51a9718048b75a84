//! The text format, line by line ("Exposition formats", text format 0.0.4).

use std::fmt::{Display, Write};

/// What a family's values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Only grows, from 0.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A page on its way.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
}

/// A family on its way: its head is written with its first series.
pub(crate) struct Family<'p> {
    page: &'p mut Page,
    name: &'static str,
    kind: Kind,
    help: &'static str,
    is_open: bool,
}

impl Page {
    /// A family that only grows; its name ends with `_total`.
    pub(crate) fn counter(&mut self, name: &'static str, help: &'static str) -> Family<'_> {
        Family { page: self, name, kind: Kind::Counter, help, is_open: false }
    }

    /// A family that goes up and down.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &'static str) -> Family<'_> {
        Family { page: self, name, kind: Kind::Gauge, help, is_open: false }
    }

    /// All of it.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// One series and its value now.
    pub(crate) fn is(&mut self, labels: &[(&str, &dyn Display)], value: impl Display) -> &mut Self {
        let text = &mut self.page.text;
        if !self.is_open {
            let kind = if self.kind == Kind::Counter { "counter" } else { "gauge" };
            put(text, format_args!("# HELP {} {}\n# TYPE {0} {kind}\n", self.name, self.help));
            self.is_open = true;
        }
        text.push_str(self.name);
        for (at, (label, named)) in labels.iter().enumerate() {
            put(text, format_args!("{}{label}=\"", if at == 0 { '{' } else { ',' }));
            put(&mut Escaped(text), format_args!("{named}"));
            text.push('"');
        }
        put(text, format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
        self
    }
}

fn put(to: &mut impl Write, what: std::fmt::Arguments<'_>) {
    to.write_fmt(what).expect("a string takes everything");
}

/// A label's value: backslash, quotation mark and line feed are escaped.
struct Escaped<'t>(&'t mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for c in text.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_head_once_and_one_without_series_has_none() {
        let mut page = Page::default();
        page.counter("a_total", "Frames.").is(&[("port", &"g1"), ("core", &3)], 7).is(&[], 0.5);
        page.gauge("b", "Nothing.");
        let expected = "# HELP a_total Frames.\n# TYPE a_total counter\na_total{port=\"g1\",core=\"3\"} 7\na_total 0.5\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn whatever_a_label_holds_stays_one_line() {
        let mut page = Page::default();
        page.gauge("a", "Help.").is(&[("x", &"1\"2\\3\n4")], 1);
        assert!(page.into_text().ends_with("\na{x=\"1\\\"2\\\\3\\n4\"} 1\n"));
    }
}
