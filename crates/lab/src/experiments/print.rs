//! Findings as tables: a line for each case and contender, a column for each size, the paper's figure at this run's scale in brackets.

use super::findings::{ByCore, Findings, Row, Verdict};

/// One line of a table.
pub struct Line<'f> {
    /// What was tried, by whom, and what of it.
    pub head: [String; 3],
    /// By size, as in [`Table::sizes`].
    pub cells: Vec<Option<&'f Row>>,
}

/// All figures of an experiment, sizes side by side.
pub struct Table<'f> {
    /// Bytes of a datagram, or nothing where sizes make no difference.
    pub sizes: Vec<Option<usize>>,
    /// The lines, in the order in which they were measured.
    pub lines: Vec<Line<'f>>,
}

impl<'f> Table<'f> {
    /// Of these findings.
    pub fn of(findings: &'f Findings) -> Self {
        let mut sizes: Vec<_> = findings.results.iter().map(|row| row.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut lines: Vec<Line<'f>> = Vec::new();
        for row in &findings.results {
            let head = head(row);
            let at = lines.iter().position(|line| line.head == head).unwrap_or_else(|| {
                lines.push(Line { head, cells: vec![None; sizes.len()] });
                lines.len() - 1
            });
            if let Some(column) = sizes.iter().position(|size| *size == row.size) {
                lines[at].cells[column] = Some(row);
            }
        }
        Self { sizes, lines }
    }
}

impl Table<'_> {
    /// Only what the paper has as well, and sums over all VMs: the rest is in the files.
    fn headlines(mut self) -> Self {
        self.lines.retain(|line| {
            let mut rows = line.cells.iter().flatten();
            rows.any(|row| row.paper.is_some() || (row.vm.is_none() && row.ours.max != 0.0))
        });
        self
    }
}

fn head(row: &Row) -> [String; 3] {
    let vm = row.vm.map_or(String::new(), |vm| format!(" VM {vm}"));
    let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
    [row.case.clone(), row.steering.clone(), format!("{}{vm}{unit}", row.quantity)]
}

/// Median, range, and the paper's figure.
pub fn cell(row: &Row) -> String {
    let digits = digits(row.ours.median);
    let ours = format!(
        "{:.digits$} [{:.digits$}..{:.digits$}]",
        row.ours.median, row.ours.min, row.ours.max
    );
    row.paper_scaled.map_or(ours.clone(), |paper| format!("{ours} ({paper:.digits$})"))
}

fn digits(value: f64) -> usize {
    match value.abs() {
        1000.0.. => 0,
        10.0.. => 1,
        _ => 2,
    }
}

/// Counts by core as percent of their sum.
pub fn shares(counts: &[u64]) -> Vec<f64> {
    let sum: u64 = counts.iter().sum();
    counts.iter().map(|&count| count as f64 * 100.0 / sum.max(1) as f64).collect()
}

/// The paper's soft-IRQs by core, in millions.
pub fn millions(counts: &[u64]) -> String {
    let word = |&count: &u64| match count {
        0 => "0".to_owned(),
        count => format!("{:.1}M", count as f64 / 1e6),
    };
    counts.iter().map(word).collect::<Vec<_>>().join(" / ")
}

/// Name of a column.
pub fn column(size: Option<usize>) -> String {
    size.map_or("figure".into(), |size| format!("{size} B"))
}

/// Prints an experiment's tables and goals.
pub fn print(findings: &Findings) {
    println!("\n{}: {}", findings.experiment, findings.about);
    println!(
        "  (in brackets: the paper's figure, its rates times {:.4}; {})",
        findings.scale, findings.source
    );
    findings.notes.iter().for_each(|note| println!("  {note}"));
    print_table(&Table::of(findings).headlines());
    print_by_core(&findings.by_core);
    for goal in &findings.goals {
        let (verdict, sign) = (
            match findings.verdict(goal) {
                Verdict::Kept => "kept",
                Verdict::NotKept => "NOT KEPT",
                Verdict::NotJudged => "not judged",
            },
            if goal.at_least { ">=" } else { "<=" },
        );
        println!("  goal {verdict}: {}: {:.3} ({sign} {})", goal.claim, goal.value, goal.bound);
    }
    findings.advice().iter().for_each(|advice| println!("  {advice}"));
}

fn print_table(table: &Table<'_>) {
    if !table.lines.is_empty() {
        let lines = table.lines.iter().map(words);
        print_aligned(&std::iter::once(header(table)).chain(lines).collect::<Vec<_>>());
    }
}

fn print_aligned(texts: &[Vec<String>]) {
    let columns = texts.first().map_or(0, Vec::len);
    let width =
        |column: usize| texts.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    for line in texts {
        let cells = line.iter().zip(&widths).map(|(text, &width)| format!("{text:<width$}"));
        println!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn header(table: &Table<'_>) -> Vec<String> {
    let sizes = table.sizes.iter().map(|&size| column(size));
    ["case", "steering", "figure"].map(str::to_owned).into_iter().chain(sizes).collect()
}

fn words(line: &Line<'_>) -> Vec<String> {
    let cells = line.cells.iter().map(|row| row.map_or("-".into(), cell));
    line.head.iter().cloned().chain(cells).collect()
}

/// Table 5: who processed what, and of which VM.
fn print_by_core(lines: &[ByCore]) {
    let Some(first) = lines.first() else { return };
    let cores = (0..first.frames.len()).map(|core| format!("core {core}"));
    let head = ["frames processed", "steering", "size", "of"].map(str::to_owned);
    let head = head.into_iter().chain(cores).chain(["paper: soft-IRQs by core".into()]).collect();
    print_aligned(&std::iter::once(head).chain(lines.iter().flat_map(by_core)).collect::<Vec<_>>());
}

fn by_core(line: &ByCore) -> Vec<Vec<String>> {
    let words = |whose: String, frames: &[u64], paper: String| {
        let share = |(&count, share): (&u64, f64)| match count {
            0 => "0".to_owned(),
            count => format!("{count} ({share:.1} %)"),
        };
        let head = [line.case.clone(), line.steering.clone(), format!("{} B", line.size), whose];
        head.into_iter()
            .chain(frames.iter().zip(shares(frames)).map(share))
            .chain([paper])
            .collect()
    };
    let paper = line.paper.as_deref().map_or(String::new(), millions);
    let all = words("all".into(), &line.frames, paper);
    let vm = |(vm, frames): (&u8, &Vec<u64>)| words(format!("VM {vm}"), frames, String::new());
    std::iter::once(all).chain(line.frames_of_vm.iter().map(vm)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Spread;

    fn row(steering: &str, size: usize, median: f64, paper: Option<f64>) -> Row {
        Row {
            case: "two flows".into(),
            steering: steering.into(),
            quantity: "loss",
            vm: Some(2),
            size: Some(size),
            unit: "%",
            cores: "CCX5".into(),
            ours: Spread::of(vec![median]),
            rounds: vec![median],
            paper,
            paper_scaled: paper,
        }
    }

    #[test]
    fn counts_stand_beside_the_papers_and_below_them_whose_frames_they_were() {
        let line = ByCore {
            case: "two flows".into(),
            steering: "vse".into(),
            size: 8192,
            frames: vec![0, 0, 30, 10],
            frames_of_vm: [(1, vec![0, 0, 30, 0]), (2, vec![0, 0, 0, 10])].into(),
            paper: Some(vec![0, 0, 171_580_236, 171_738_991]),
        };
        let lines = by_core(&line);
        assert_eq!(
            lines[0][3..],
            ["all", "0", "0", "30 (75.0 %)", "10 (25.0 %)", "0 / 0 / 171.6M / 171.7M"]
        );
        assert_eq!(lines[2][3..], ["VM 2", "0", "0", "0", "10 (100.0 %)", ""]);
    }

    #[test]
    fn sizes_stand_side_by_side_and_what_was_not_measured_is_a_dash() {
        let results = vec![
            row("rps", 8192, 50.0, Some(43.5)),
            row("rps", 1400, 0.5, None),
            row("vse", 1400, 0.0, None),
        ];
        let findings = Findings {
            experiment: "x",
            about: "",
            source: String::new(),
            scale: 1.0,
            notes: vec![],
            results,
            by_core: vec![],
            over_time: vec![],
            others_percent: 0.0,
            goals: vec![],
        };
        let table = Table::of(&findings);
        assert_eq!(table.sizes, [Some(1400), Some(8192)]);
        assert_eq!(
            words(&table.lines[0]),
            ["two flows", "rps", "loss VM 2, %", "0.50 [0.50..0.50]", "50.0 [50.0..50.0] (43.5)"]
        );
        assert_eq!(words(&table.lines[1])[3..], ["0.00 [0.00..0.00]", "-"]);
    }
}
