//! The text format, line by line ("Exposition formats", text format 0.0.4).

use api::Latency;
use std::fmt::{Display, Write};

/// Ends of a histogram's lines, as powers of two of a nanosecond: 256 ns to 0.54 s.
const ENDS: std::ops::RangeInclusive<u32> = 8..=29;

/// What a family's values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Only grows, from 0.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How long things took.
    Histogram,
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

    /// A family of times; its name ends with `_seconds`.
    pub(crate) fn histogram(&mut self, name: &'static str, help: &'static str) -> Family<'_> {
        Family { page: self, name, kind: Kind::Histogram, help, is_open: false }
    }

    /// All of it.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// One series and its value now.
    pub(crate) fn is(&mut self, labels: &[(&str, &dyn Display)], value: impl Display) -> &mut Self {
        self.line("", labels, value);
        self
    }

    /// The series of one histogram.
    pub(crate) fn took(&mut self, labels: &[(&str, &dyn Display)], times: &Latency) -> &mut Self {
        let of = |end: &dyn Display, frames: u64, family: &mut Self| {
            let labels: Vec<_> = labels.iter().copied().chain([("le", end)]).collect();
            family.line("_bucket", &labels, frames);
        };
        for power in ENDS {
            let ns = 1_u64 << power;
            of(&(ns as f64 / 1e9), times.below(ns), self);
        }
        of(&"+Inf", times.frames(), self);
        self.line("_sum", labels, times.sum_ns as f64 / 1e9);
        self.line("_count", labels, times.frames());
        self
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        let text = &mut self.page.text;
        if !self.is_open {
            let kind = match self.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            put(text, format_args!("# HELP {} {}\n# TYPE {0} {kind}\n", self.name, self.help));
            self.is_open = true;
        }
        text.push_str(self.name);
        text.push_str(suffix);
        for (at, (label, named)) in labels.iter().enumerate() {
            put(text, format_args!("{}{label}=\"", if at == 0 { '{' } else { ',' }));
            put(&mut Escaped(text), format_args!("{named}"));
            text.push('"');
        }
        put(text, format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
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
    use api::LatencyBucket;

    #[test]
    fn a_family_has_its_head_once_and_one_without_series_has_none() {
        let mut page = Page::default();
        page.counter("a_total", "Frames.").is(&[("port", &"g1"), ("core", &3)], 7).is(&[], 0.5);
        page.gauge("b", "Nothing.");
        let expected = "# HELP a_total Frames.\n# TYPE a_total counter\na_total{port=\"g1\",core=\"3\"} 7\na_total 0.5\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn times_are_lines_that_add_up_to_a_sum_and_a_count() {
        let bucket = |from_ns, below_ns, frames| LatencyBucket { from_ns, below_ns, frames };
        let buckets =
            vec![bucket(0, Some(128), 4), bucket(1024, Some(1280), 5), bucket(1 << 30, None, 1)];
        let mut page = Page::default();
        let times = Latency { buckets, sum_ns: 2_500_000_000 };
        page.histogram("a_seconds", "Times.").took(&[("class", &"x")], &times);
        let text = page.into_text();
        assert!(text.starts_with("# HELP a_seconds Times.\n# TYPE a_seconds histogram\n"));
        for line in [
            "a_seconds_bucket{class=\"x\",le=\"0.000000256\"} 4",
            "a_seconds_bucket{class=\"x\",le=\"0.000001024\"} 4",
            "a_seconds_bucket{class=\"x\",le=\"0.000002048\"} 9",
            "a_seconds_bucket{class=\"x\",le=\"0.536870912\"} 9",
            "a_seconds_bucket{class=\"x\",le=\"+Inf\"} 10",
            "a_seconds_sum{class=\"x\"} 2.5",
            "a_seconds_count{class=\"x\"} 10",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(text.lines().count(), 2 + 22 + 3);
    }

    #[test]
    fn whatever_a_label_holds_stays_one_line() {
        let mut page = Page::default();
        page.gauge("a", "Help.").is(&[("x", &"1\"2\\3\n4")], 1);
        assert!(page.into_text().ends_with("\na{x=\"1\\\"2\\\\3\\n4\"} 1\n"));
    }
}
