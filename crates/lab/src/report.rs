//! Figures side by side: medians, spread, ratio, goal; as a table for people and as JSON for `docs/benchmarks/`.

use crate::machine::Machine;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;

/// Median and range of several rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// Of at least one figure.
    pub fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let last = figures.len() - 1;
        let median = (figures[last / 2] + figures[last.div_ceil(2)]) / 2.0;
        Self { median, min: figures[0], max: figures[last] }
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
    pub bench: &'static str,
    /// Where it ran.
    pub machine: Machine,
    /// What ended the run before its end, if anything did: rows are missing then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
    /// The rows.
    pub results: Vec<Row>,
}

impl Report {
    /// Writes the JSON form.
    pub fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, text + "\n")
            .with_context(|| format!("{}: writing the report failed", path.display()))
    }

    /// Prints the table.
    pub fn print(&self) {
        println!("{}", self.machine);
        let width = self.results.iter().map(|row| row.case.len()).fold(50, usize::max);
        println!(
            "{:<width$} {:>6} {:>5} {:>24} {:>24}  {:>6} {:>5}",
            "case", "unit", "cores", "suiro", "peer", "ratio", "goal"
        );
        for row in &self.results {
            let peer = row.peer.as_ref();
            let name = peer.map_or(String::new(), |peer| format!("  ({})", peer.name));
            println!(
                "{:<width$} {:>6} {:>5} {:>24} {:>24}  {:>6} {:>5}{name}",
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
    format!("{:.digits$} [{:.digits$}..{:.digits$}]", spread.median, spread.min, spread.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let spread = Spread::of(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 4.0));
        assert_eq!(Spread::of(vec![7.0]).median, 7.0);
    }
}
