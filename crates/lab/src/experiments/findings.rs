//! What came of an experiment: figures beside the paper's, counts by core, rates over time, goals.

use super::paper::{Key, Paper};
use super::quiet::is_spoiled;
use super::scale::Scale;
use super::stage::Counts;
use crate::report::Spread;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// The experiment.
    pub experiment: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// Where the paper's figures are from.
    pub source: String,
    /// Our rates over the paper's.
    pub scale: f64,
    /// Who ran where, and what else a reader must know.
    pub notes: Vec<String>,
    /// The figures.
    pub results: Vec<Row>,
    /// Who processed what.
    pub by_core: Vec<ByCore>,
    /// Rates over time.
    pub over_time: Vec<OverTime>,
    /// Percent of the cores that others had before the windows.
    pub others_percent: f64,
    /// What was promised.
    pub goals: Vec<Goal>,
}

/// Figures that are counts, whatever a machine's sense of time.
const COUNTED: [&str; 3] = [REORDERED, STRAYS, SHARED];

/// Datagrams behind later ones.
pub const REORDERED: &str = "reordered";
/// Percent of frames that another core processed than most of the same flow's.
pub const STRAYS: &str = "frames off their flow's core";
/// Percent of frames on a core that processed frames of another flow as well.
pub const SHARED: &str = "frames on a shared core";

impl Findings {
    /// These, and those of another part of the same experiment.
    pub fn and(mut self, more: Self) -> Self {
        self.notes.extend(more.notes.into_iter().skip(1)); // the first tells who ran where
        self.results.extend(more.results);
        self.by_core.extend(more.by_core);
        self.over_time.extend(more.over_time);
        self.others_percent = self.others_percent.max(more.others_percent);
        self.goals.extend(more.goals);
        self
    }

    /// What is to be said of one of its goals.
    pub fn verdict(&self, goal: &Goal) -> Verdict {
        match goal.is_met {
            true => Verdict::Kept,
            false if goal.basis != Basis::Counts && is_spoiled(self.others_percent) => {
                Verdict::NotJudged
            }
            false => Verdict::NotKept,
        }
    }

    /// What to do about goals that are not kept.
    pub fn advice(&self) -> Option<String> {
        let verdicts: Vec<_> = self.goals.iter().map(|goal| self.verdict(goal)).collect();
        if verdicts.contains(&Verdict::NotJudged) {
            let others = self.others_percent;
            return Some(format!(
                "not judged: others had {others:.0} % of the cores before the windows; run it again when this machine has nothing else to do"
            ));
        }
        verdicts.contains(&Verdict::NotKept).then(|| {
            "not kept: run it again with more --rounds; if it is not kept then either, report it with the file of --json".into()
        })
    }

    /// What there is to say where time means nothing.
    pub fn counts_only(mut self) -> Self {
        self.results.retain(|row| COUNTED.contains(&row.quantity));
        self.goals.retain(|goal| goal.basis != Basis::Time);
        self.over_time.clear();
        self.notes.push(
            "only counts are shown: an emulated core's rates, losses and delays mean nothing"
                .into(),
        );
        self
    }
}

/// One figure of all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was tried.
    pub case: String,
    /// Who chose the cores.
    pub steering: String,
    /// What was measured.
    pub quantity: &'static str,
    /// Of which VM; of all if there is none.
    pub vm: Option<u8>,
    /// Bytes of a datagram.
    pub size: Option<usize>,
    /// Unit of ours and of the paper's.
    pub unit: &'static str,
    /// Placement classes of the cores while it was measured.
    pub cores: String,
    /// Median and range.
    pub ours: Spread,
    /// Each round's.
    pub rounds: Vec<f64>,
    /// What the paper measured.
    pub paper: Option<f64>,
    /// The same at the scale of this run.
    pub paper_scaled: Option<f64>,
}

/// Frames by core, all rounds together: table 5.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByCore {
    /// What was tried.
    pub case: String,
    /// Who chose the cores.
    pub steering: String,
    /// Bytes of a datagram.
    pub size: usize,
    /// Frames that each core processed.
    pub frames: Vec<u64>,
    /// The same for each VM.
    pub frames_of_vm: BTreeMap<u8, Vec<u64>>,
    /// Soft-IRQs of the paper's four cores.
    pub paper: Option<Vec<u64>>,
}

/// A rate over time: figure 6.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverTime {
    /// Who chose the cores.
    pub steering: String,
    /// Bytes of a datagram.
    pub size: usize,
    /// Seconds of counted time, and the rate from there to the next point.
    pub points: Vec<(f64, f64)>,
    /// Unit of the rate.
    pub unit: &'static str,
}

/// A promise and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// What was promised.
    pub claim: String,
    /// What was measured.
    pub value: f64,
    /// The bound.
    pub bound: f64,
    /// Whether the value may not be below it, or not above it.
    pub at_least: bool,
    /// Whether it is kept.
    pub is_met: bool,
    /// What the value was made from.
    pub basis: Basis,
}

/// What came of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept.
    Kept,
    /// It is not.
    NotKept,
    /// It is not, on a machine whose cores others had.
    NotJudged,
}

/// What a figure rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Something measured in time: a rate, a loss.
    Time,
    /// Something counted, which is true however slow the machine is.
    Counts,
    /// Something counted that follows from which cores were free: beside others' work another choice is right.
    Choice,
}

impl Goal {
    /// `value` must reach `bound`.
    pub fn at_least(claim: String, value: f64, bound: f64) -> Self {
        Self { claim, value, bound, at_least: true, is_met: value >= bound, basis: Basis::Time }
    }

    /// `value` must not exceed `bound`.
    pub fn at_most(claim: String, value: f64, bound: f64) -> Self {
        Self { claim, value, bound, at_least: false, is_met: value <= bound, basis: Basis::Time }
    }

    /// The same, of a count.
    pub fn counted(self) -> Self {
        Self { basis: Basis::Counts, ..self }
    }

    /// The same, of a count that tells which cores were chosen.
    pub fn chosen(self) -> Self {
        Self { basis: Basis::Choice, ..self }
    }
}

/// Gathers figures round by round, in the order in which they first come.
#[derive(Default)]
pub struct Sheet {
    gathered: Vec<Gathered>,
    by_core: Vec<ByCore>,
}

struct Gathered {
    key: Key,
    unit: &'static str,
    rounds: Vec<f64>,
    classes: BTreeMap<&'static str, u32>,
}

impl Sheet {
    /// Adds a figure of one round.
    pub fn add(&mut self, key: Key, unit: &'static str, value: f64, class: &'static str) {
        let at = self.gathered.iter().position(|gathered| gathered.key == key);
        let at = at.unwrap_or_else(|| {
            let (rounds, classes) = (Vec::new(), BTreeMap::new());
            self.gathered.push(Gathered { key, unit, rounds, classes });
            self.gathered.len() - 1
        });
        self.gathered[at].rounds.push(value);
        *self.gathered[at].classes.entry(class).or_default() += 1;
    }

    /// Adds who processed what in one round.
    pub fn add_counts(&mut self, key: &Key, counts: &Counts, cores: usize, vms: u8) {
        let size = key.size.unwrap_or(0);
        let is_it = |line: &ByCore| {
            line.case == key.case && line.steering == key.steering && line.size == size
        };
        let at = self.by_core.iter().position(is_it).unwrap_or_else(|| {
            self.by_core.push(ByCore {
                case: key.case.clone(),
                steering: key.steering.clone(),
                size,
                frames: vec![0; cores],
                frames_of_vm: BTreeMap::new(),
                paper: None,
            });
            self.by_core.len() - 1
        });
        let line = &mut self.by_core[at];
        add(&mut line.frames, &counts.frames(cores));
        for vm in 1..=vms {
            let of_vm = line.frames_of_vm.entry(vm).or_insert_with(|| vec![0; cores]);
            add(of_vm, &counts.frames_of(vm, cores));
        }
    }

    /// Rows beside the paper's figures.
    ///
    /// # Errors
    /// The paper's file does not know the experiment.
    pub fn rows(&self, experiment: &str, scale: Scale) -> Result<Vec<Row>> {
        let paper = Paper::of(experiment)?;
        Ok(self.gathered.iter().map(|gathered| gathered.row(&paper, scale)).collect())
    }

    /// Lines of table 5 beside the paper's.
    ///
    /// # Errors
    /// The paper's file does not know the experiment.
    pub fn by_core(&self, experiment: &str) -> Result<Vec<ByCore>> {
        let paper = Paper::of(experiment)?;
        let line = |line: &ByCore| {
            let paper = paper.counts(&line.case, &line.steering, line.size);
            ByCore { paper, ..line.clone() }
        };
        Ok(self.by_core.iter().map(line).collect())
    }

    /// Median of a figure over all rounds, if it was measured.
    pub fn median(&self, key: &Key) -> Option<f64> {
        let gathered = self.gathered.iter().find(|gathered| gathered.key == *key)?;
        Some(Spread::of(gathered.rounds.clone()).median)
    }

    /// Largest of a figure over all rounds, if it was measured.
    pub fn largest(&self, key: &Key) -> Option<f64> {
        let gathered = self.gathered.iter().find(|gathered| gathered.key == *key)?;
        Some(Spread::of(gathered.rounds.clone()).max)
    }

    /// Who processed what, if it was measured.
    pub fn counts(&self, case: &str, steering: &str, size: usize) -> Option<&ByCore> {
        let is_it =
            |line: &&ByCore| line.case == case && line.steering == steering && line.size == size;
        self.by_core.iter().find(is_it)
    }
}

impl Gathered {
    fn row(&self, paper: &Paper, scale: Scale) -> Row {
        let Key { case, steering, quantity, vm, size } = self.key.clone();
        let figure = paper.figure(&self.key);
        // Shares and counts are what they are at any scale.
        let factor = if self.unit == "Mbit/s" { scale.factor() } else { 1.0 };
        let class = |(class, count): (&&str, &u32)| format!("{class}{count}");
        Row {
            case,
            steering,
            quantity,
            vm,
            size,
            unit: self.unit,
            cores: self.classes.iter().map(class).collect::<Vec<_>>().join("+"),
            ours: Spread::of(self.rounds.clone()),
            rounds: self.rounds.clone(),
            paper: figure,
            paper_scaled: figure.map(|figure| figure * factor),
        }
    }
}

fn add(sums: &mut [u64], counts: &[u64]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

#[cfg(test)]
mod tests {
    use super::super::stage::Count;
    use super::*;

    fn key(steering: &str) -> Key {
        let (case, steering) = ("two flows".into(), steering.into());
        Key { case, steering, quantity: "loss", vm: Some(1), size: Some(1400) }
    }

    #[test]
    fn rounds_of_a_figure_come_together_beside_the_papers() {
        let mut sheet = Sheet::default();
        for (value, class) in [(3.0, "CCX"), (1.0, "SMT"), (2.0, "CCX")] {
            sheet.add(key("default"), "%", value, class);
            sheet.add(key("rps"), "%", 0.0, class);
        }
        let rows = sheet.rows("vse-two-flows", Scale { capacity: 95.49 }).unwrap();
        assert_eq!(
            (rows.len(), rows[0].ours.median, rows[0].cores.as_str()),
            (2, 2.0, "CCX2+SMT1")
        );
        assert_eq!(rows[0].rounds, [3.0, 1.0, 2.0]);
        assert_eq!(
            (rows[0].paper, rows[0].paper_scaled),
            (Some(34.5), Some(34.5)),
            "a share is not scaled"
        );
        assert_eq!(sheet.median(&key("default")), Some(2.0));
        assert_eq!(sheet.median(&key("vse")), None);
    }

    #[test]
    fn a_rate_of_the_paper_is_scaled() {
        let mut sheet = Sheet::default();
        let case = "flow collision".into();
        let key = Key {
            case,
            steering: "default".into(),
            quantity: "throughput",
            vm: None,
            size: Some(1400),
        };
        sheet.add(key, "Mbit/s", 90.0, "CCX");
        let rows = sheet.rows("vse-collision", Scale { capacity: 95.49 }).unwrap();
        assert!((rows[0].paper_scaled.unwrap() - 95.49).abs() < 1e-9);
    }

    #[test]
    fn counts_of_all_rounds_add_up_by_core_and_vm() {
        let frames = |frames| Count { frames, ..Count::default() };
        let counts =
            Counts::by_vm(vec![vec![], vec![frames(1), frames(2)], vec![frames(4), frames(0)]]);
        let mut sheet = Sheet::default();
        sheet.add_counts(&key("vse"), &counts, 2, 2);
        sheet.add_counts(&key("vse"), &counts, 2, 2);
        let line = sheet.counts("two flows", "vse", 1400).unwrap();
        assert_eq!(line.frames, [10, 4]);
        assert_eq!(line.frames_of_vm[&1], [2, 4]);
        let lines = sheet.by_core("vse-two-flows").unwrap();
        assert_eq!(lines[0].paper.as_ref().unwrap().len(), 4);
    }

    #[test]
    fn a_goal_is_met_on_its_own_side_of_the_bound() {
        assert!(Goal::at_least(String::new(), 0.95, 0.95).is_met);
        assert!(!Goal::at_most(String::new(), 1.06, 1.05).is_met);
    }

    #[test]
    fn a_rate_and_a_choice_that_others_may_have_spoiled_are_not_judged_and_a_count_is() {
        let goal = || Goal::at_most("VM 1's loss".into(), 1.0, 0.0);
        let kept = Goal::at_least(String::new(), 1.0, 0.95);
        let goals = vec![goal(), goal().chosen(), goal().counted(), kept];
        let mut findings = Findings { goals, ..Findings::default() };
        let verdicts = |findings: &Findings| {
            findings.goals.iter().map(|goal| findings.verdict(goal)).collect::<Vec<_>>()
        };
        use Verdict::{Kept, NotJudged, NotKept};
        assert_eq!(verdicts(&findings), [NotKept, NotKept, NotKept, Kept]);
        assert!(findings.advice().unwrap().contains("--rounds"));
        findings.others_percent = 60.0;
        assert_eq!(verdicts(&findings), [NotJudged, NotJudged, NotKept, Kept]);
        assert!(findings.advice().unwrap().contains("others had 60 % of the cores"));
        findings.goals.drain(..3);
        assert_eq!(findings.advice(), None);
    }

    #[test]
    fn where_time_means_nothing_only_counts_are_left() {
        let mut sheet = Sheet::default();
        for quantity in ["throughput", STRAYS] {
            sheet.add(Key { quantity, ..key("vse") }, "%", 1.0, "CCX");
        }
        let goal = |claim: &str| Goal::at_most(claim.into(), 0.0, 0.0);
        let findings = Findings {
            experiment: "vse-two-flows",
            about: "",
            source: String::new(),
            scale: 1.0,
            notes: vec![],
            results: sheet.rows("vse-two-flows", Scale { capacity: 4.0 }).unwrap(),
            by_core: vec![],
            over_time: vec![],
            others_percent: 0.0,
            goals: vec![goal("a loss"), goal("a count").counted(), goal("a choice").chosen()],
        };
        let left = findings.counts_only();
        assert_eq!(left.results.iter().map(|row| row.quantity).collect::<Vec<_>>(), [STRAYS]);
        let claims: Vec<_> = left.goals.iter().map(|goal| &*goal.claim).collect();
        assert_eq!(claims, ["a count", "a choice"]);
    }
}
