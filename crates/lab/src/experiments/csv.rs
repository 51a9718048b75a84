//! Findings for other programs: `<experiment>.csv` with every round of every figure, `<experiment>-by-core.csv`, `<experiment>-over-time.csv`.

use super::findings::{ByCore, Findings, OverTime, Row};
use anyhow::{Context, Result};
use std::path::Path;

/// Writes the files, and the directory if it is not there.
///
/// # Errors
/// A file that cannot be written.
pub fn write(directory: &Path, findings: &Findings) -> Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("{}: cannot be made", directory.display()))?;
    let files = [
        ("", rounds(&findings.results)),
        ("-by-core", by_core(&findings.by_core)),
        ("-over-time", over_time(&findings.over_time)),
    ];
    files.into_iter().filter(|(_, lines)| lines.len() > 1).try_for_each(|(suffix, lines)| {
        let path = directory.join(format!("{}{suffix}.csv", findings.experiment));
        let text = lines.join("\n") + "\n";
        std::fs::write(&path, text)
            .with_context(|| format!("{}: cannot be written", path.display()))
    })
}

fn rounds(rows: &[Row]) -> Vec<String> {
    let mut lines =
        vec!["case,steering,figure,vm,size,unit,round,value,paper,paper_scaled,cores".to_owned()];
    for row in rows {
        for (round, value) in (1..).zip(&row.rounds) {
            let texts = [
                quoted(&row.case),
                quoted(&row.steering),
                quoted(row.quantity),
                or_empty(row.vm),
                or_empty(row.size),
                quoted(row.unit),
                format!("{round}"),
                format!("{value}"),
                or_empty(row.paper),
                or_empty(row.paper_scaled),
                quoted(&row.cores),
            ];
            lines.push(texts.join(","));
        }
    }
    lines
}

fn by_core(lines: &[ByCore]) -> Vec<String> {
    let mut texts = vec!["case,steering,size,vm,core,frames".to_owned()];
    for line in lines {
        for (vm, frames) in &line.frames_of_vm {
            let text = |(core, frames): (usize, &u64)| {
                format!(
                    "{},{},{},{vm},{core},{frames}",
                    quoted(&line.case),
                    quoted(&line.steering),
                    line.size
                )
            };
            texts.extend(frames.iter().enumerate().map(text));
        }
    }
    texts
}

fn over_time(lines: &[OverTime]) -> Vec<String> {
    let mut texts = vec!["steering,size,seconds,value,unit".to_owned()];
    for line in lines {
        let text = |(time, rate): &(f64, f64)| {
            format!("{},{},{time:.3},{rate:.4},{}", quoted(&line.steering), line.size, line.unit)
        };
        texts.extend(line.points.iter().map(text));
    }
    texts
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// As RFC 4180 wants it where there is a comma, a quote or a line's end inside.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Spread;
    use std::collections::BTreeMap;

    #[test]
    fn every_round_is_a_line_and_texts_with_commas_are_quoted() {
        let row = Row {
            case: "a, \"b\"".into(),
            steering: "vse".into(),
            quantity: "loss",
            vm: None,
            size: Some(64),
            unit: "%",
            cores: "CCX2".into(),
            ours: Spread::default(),
            rounds: vec![0.5, 1.0],
            paper: Some(0.1),
            paper_scaled: None,
        };
        let lines = rounds(&[row]);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[2], "\"a, \"\"b\"\"\",vse,loss,,64,%,2,1,0.1,,CCX2");
    }

    #[test]
    fn each_vm_and_core_is_a_line() {
        let line = ByCore {
            case: "x".into(),
            steering: "rps".into(),
            size: 64,
            frames: vec![1, 5],
            frames_of_vm: BTreeMap::from([(1, vec![1, 2]), (2, vec![0, 3])]),
            paper: None,
        };
        assert_eq!(
            by_core(&[line])[1..],
            ["x,rps,64,1,0,1", "x,rps,64,1,1,2", "x,rps,64,2,0,0", "x,rps,64,2,1,3"]
        );
    }
}
