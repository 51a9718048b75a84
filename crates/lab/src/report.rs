//! Figures side by side: medians, spread, ratio, goal; as a table for people and as JSON for `docs/benchmarks/`.

use anyhow::{Context, Result};
use serde::Serialize;
use std::path::PathBuf;
use testbed::machine::Machine;

/// Median, range and number of several rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many figures these are of.
    pub count: usize,
}

impl Spread {
    /// Of at least one figure.
    pub fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let last = figures.len() - 1;
        let median = (figures[last / 2] + figures[last.div_ceil(2)]) / 2.0;
        Self { median, min: figures[0], max: figures[last], count: figures.len() }
    }
}

/// What the others do in the same run.
#[derive(Clone, Debug, Serialize)]
pub struct Peer {
    /// Name and version.
    pub name: String,
    /// Its figures.
    #[serde(flatten)]
    pub spread: Spread,
}

/// One row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub case: String,
    /// Unit of all figures of the row.
    pub unit: &'static str,
    /// Placement class of the two cores while it was measured.
    pub cores: String,
    /// Our figures.
    pub ours: Spread,
    /// The peer's.
    pub peer: Option<Peer>,
    /// Ours over the peer's (for costs: the peer's over ours), so that more is better.
    pub ratio: Option<f64>,
    /// What performance.md of the project's plan asks of the ratio.
    pub goal: Option<f64>,
}

/// A run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the benchmark.
    bench: &'static str,
    /// Where it ran.
    machine: Machine,
    /// What ended the run before its end, if anything did: rows are missing then.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_short: Option<String>,
    /// The rows.
    results: Vec<Row>,
    /// Where its JSON form goes.
    #[serde(skip)]
    path: Option<PathBuf>,
}

impl Report {
    /// Of a run that begins.
    pub fn new(bench: &'static str, path: Option<PathBuf>) -> Self {
        let cut_short = Some("interrupted".into());
        Self { bench, machine: Machine::here(), cut_short, results: Vec::new(), path }
    }

    /// The rows so far.
    pub fn rows(&self) -> &[Row] {
        &self.results
    }

    /// Takes rows and saves all so far: what was measured outlives an interrupted run, and a file that cannot be written is found out after the first rows.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<()> {
        self.results.extend(rows);
        self.save()
    }

    /// The run is over: prints and saves what was measured, also if it failed.
    ///
    /// # Errors
    /// What the run failed with, or the file cannot be written.
    pub fn end(mut self, end: Result<()>) -> Result<()> {
        self.cut_short = end.as_ref().err().map(|error| format!("{error:#}"));
        if !self.results.is_empty() {
            self.print();
        }
        end.and(self.save())
    }

    fn save(&self) -> Result<()> {
        // A run that measured nothing leaves an earlier one's file alone.
        let Some(path) = self.path.as_ref().filter(|_| !self.results.is_empty()) else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, text + "\n")
            .with_context(|| format!("{}: writing the report failed", path.display()))
    }

    fn print(&self) {
        println!("{}", self.machine);
        let width = self.results.iter().map(|row| row.case.len()).fold(50, usize::max);
        println!(
            "{:<width$} {:>6} {:>5} {:>30} {:>30}  {:>6} {:>5}",
            "case", "unit", "cores", "suiro", "peer", "ratio", "goal"
        );
        for row in &self.results {
            let peer = row.peer.as_ref();
            let name = peer.map_or(String::new(), |peer| format!("  ({})", peer.name));
            println!(
                "{:<width$} {:>6} {:>5} {:>30} {:>30}  {:>6} {:>5}{name}",
                row.case,
                row.unit,
                row.cores,
                show(row.ours),
                peer.map_or("-".into(), |peer| show(peer.spread)),
                row.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}x")),
                row.goal.map_or("-".into(), |goal| format!("{goal}x")),
            );
        }
        if self.cut_short.is_some() {
            println!("Not all of it: the run was cut short.");
        }
    }
}

fn show(spread: Spread) -> String {
    let digits = if spread.median >= 1000.0 {
        0
    } else if spread.median >= 10.0 {
        1
    } else {
        2
    };
    let Spread { median, min, max, count } = spread;
    format!("{median:.digits$} [{min:.digits$}..{max:.digits$}] of {count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let spread = Spread::of(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((spread.median, spread.min, spread.max, spread.count), (2.5, 1.0, 4.0, 4));
        assert_eq!(show(spread), "2.50 [1.00..4.00] of 4");
        assert_eq!(Spread::of(vec![7.0]).median, 7.0);
    }

    #[test]
    fn what_was_measured_outlives_an_interruption_and_a_failure() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let saved = || std::fs::read_to_string(file.path()).unwrap();
        let begin = || Report::new("none", Some(file.path().into()));
        let row = |case: &str| Row {
            case: case.into(),
            unit: "ms",
            cores: String::new(),
            ours: Spread::of(vec![1.0]),
            peer: None,
            ratio: None,
            goal: None,
        };

        let mut report = begin();
        report.add([row("a first case")]).unwrap();
        drop(report);
        assert!(
            saved().contains("a first case") && saved().contains(r#""cut_short": "interrupted""#)
        );

        // One that fails before it has measured anything leaves the file as it is.
        let mut report = begin();
        report.add([]).unwrap();
        assert!(report.end(Err(anyhow::anyhow!("no such peer"))).is_err());
        assert!(saved().contains("a first case"));

        let mut report = begin();
        report.add([row("another case")]).unwrap();
        let error = report.end(Err(anyhow::anyhow!("no such peer"))).unwrap_err();
        assert_eq!(error.to_string(), "no such peer");
        assert!(
            saved().contains("another case") && saved().contains(r#""cut_short": "no such peer""#)
        );

        let mut report = begin();
        report.add([row("the last case")]).unwrap();
        report.end(Ok(())).unwrap();
        assert!(saved().contains("the last case") && !saved().contains("cut_short"));

        let mut report = Report::new("none", Some("/no/such/directory".into()));
        let error = report.add([row("a case")]).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/directory: writing the report failed"));
    }
}
