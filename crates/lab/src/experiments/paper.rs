//! What the papers measured, from `data/papers.json`.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

static FILE: &str = include_str!("../../data/papers.json");

/// What the papers say of one experiment.
#[derive(Clone, Debug, Deserialize)]
pub struct Paper {
    /// Where it stands, in which unit.
    pub source: String,
    figures: Vec<Figure>,
    #[serde(default)]
    by_core: Vec<ByCore>,
    /// Experiments whose figures are this one's too: the papers have them from one setting.
    #[serde(default)]
    also: Vec<String>,
}

/// One line of a table.
#[derive(Clone, Debug, Deserialize)]
struct Figure {
    case: String,
    steering: String,
    quantity: String,
    vm: Option<u8>,
    /// `null` where the paper has a dash: no session came about.
    by_size: BTreeMap<String, Option<f64>>,
}

/// One line of table 5.
#[derive(Clone, Debug, Deserialize)]
struct ByCore {
    case: String,
    steering: String,
    size: usize,
    counts: Vec<u64>,
}

/// Which figure is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// What was tried.
    pub case: String,
    /// Who chose the cores.
    pub steering: String,
    /// What was measured.
    pub quantity: &'static str,
    /// Of which VM; `None` is of all.
    pub vm: Option<u8>,
    /// Bytes of a datagram; `None` where sizes make no difference.
    pub size: Option<usize>,
}

impl Paper {
    /// Of one experiment.
    ///
    /// # Errors
    /// The file does not know it: a broken build.
    pub fn of(experiment: &str) -> Result<Self> {
        let mut all: BTreeMap<String, Self> =
            serde_json::from_str(FILE).context("data/papers.json cannot be read")?;
        let mut take = |name: &str| {
            all.remove(name).with_context(|| format!("data/papers.json says nothing of {name}"))
        };
        let mut paper = take(experiment)?;
        for name in std::mem::take(&mut paper.also) {
            let Self { figures, by_core, .. } = take(&name)?;
            paper.figures.extend(figures);
            paper.by_core.extend(by_core);
        }
        Ok(paper)
    }

    /// The figure, if the paper has it.
    pub fn figure(&self, key: &Key) -> Option<f64> {
        let is_it = |figure: &&Figure| {
            figure.case == key.case
                && figure.steering == key.steering
                && figure.quantity == key.quantity
                && figure.vm == key.vm
        };
        let by_size = &self.figures.iter().find(is_it)?.by_size;
        *by_size.get(&key.size?.to_string())?
    }

    /// Soft-IRQs of the four cores: table 5.
    pub fn counts(&self, case: &str, steering: &str, size: usize) -> Option<Vec<u64>> {
        let is_it =
            |line: &&ByCore| line.case == case && line.steering == steering && line.size == size;
        self.by_core.iter().find(is_it).map(|line| line.counts.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_its_page_and_figures_are_found_by_what_they_are() {
        for experiment in crate::experiments::NAMES {
            assert!(!Paper::of(experiment).unwrap().source.is_empty());
        }
        let key = |vm, size| Key {
            case: "three VMs".into(),
            steering: "vse".into(),
            quantity: "throughput",
            vm,
            size: Some(size),
        };
        let paper = Paper::of("vse-priority").unwrap();
        assert_eq!(paper.figure(&key(Some(1), 8192)), Some(844.8));
        assert_eq!(paper.figure(&key(None, 8192)), None);
        assert_eq!(paper.figure(&key(Some(1), 9000)), None);
    }

    #[test]
    fn table_5_is_found_by_case_contender_and_size() {
        let paper = Paper::of("vse-two-flows").unwrap();
        assert_eq!(
            paper.counts("two flows", "vse", 8192).unwrap(),
            [0, 0, 171_580_236, 171_738_991]
        );
        assert_eq!(paper.counts("two flows", "vse", 9000), None);
        assert_eq!(paper.counts("three VMs", "vse", 8192), None);
    }
}
