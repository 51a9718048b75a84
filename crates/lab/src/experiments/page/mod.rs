//! One page with everything: tables, plots, goals. A single file without scripts or anything from elsewhere, so that it can be kept beside the figures.

mod plot;

use super::findings::{ByCore, Findings, Verdict};
use super::print::{Table, cell, column, millions, shares};
use anyhow::Result;
use plot::{Bar, Group, bars, lines};
use std::fmt::Write;
use testbed::machine::Machine;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#222}\
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}\
th,td{border-bottom:1px solid #ddd;padding:.2rem .7rem;text-align:left;vertical-align:top}\
th{background:#f4f4f4}.kept{color:#176b2c}.broken{color:#b00020;font-weight:600}\
.plots{display:flex;flex-wrap:wrap;gap:1rem}svg{max-width:100%;height:auto}small{color:#666}";

/// The page.
///
/// # Errors
/// A plot that cannot be drawn.
pub fn page(machine: &Machine, experiments: &[Findings]) -> Result<String> {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>suiro lab</title><style>{STYLE}</style>\n\
         <h1>The papers' experiments</h1>\n<p>{}</p>\n",
        escaped(&machine.to_string())
    );
    for findings in experiments {
        section(&mut text, findings)?;
    }
    Ok(text + "</html>\n")
}

fn section(text: &mut String, findings: &Findings) -> Result<()> {
    writeln!(
        text,
        "<h2>{}</h2>\n<p>{}.</p>",
        escaped(findings.experiment),
        escaped(findings.about)
    )?;
    writeln!(
        text,
        "<p><small>Medians of all rounds with smallest and largest. In brackets the paper's figure, its rates times {:.4}: {}.</small></p>",
        findings.scale,
        escaped(&findings.source)
    )?;
    for note in &findings.notes {
        writeln!(text, "<p><small>{}.</small></p>", escaped(note))?;
    }
    goals(text, findings)?;
    plots(text, findings)?;
    table(text, findings)?;
    by_core(text, &findings.by_core)
}

fn goals(text: &mut String, findings: &Findings) -> Result<()> {
    if findings.goals.is_empty() {
        return Ok(());
    }
    text.push_str("<table><tr><th>goal<th>measured<th>bound<th></tr>\n");
    for goal in &findings.goals {
        let (class, word) = match findings.verdict(goal) {
            Verdict::Kept => ("kept", "kept"),
            Verdict::NotKept => ("broken", "not kept"),
            Verdict::NotJudged => ("", "not judged"),
        };
        let sign = if goal.at_least { "≥" } else { "≤" };
        writeln!(
            text,
            "<tr><td>{}<td>{:.3}<td>{sign} {}<td class=\"{class}\">{word}</tr>",
            escaped(&goal.claim),
            goal.value,
            goal.bound
        )?;
    }
    text.push_str("</table>\n");
    let advice = findings.advice().map(|advice| format!("<p>{}.</p>\n", escaped(&advice)));
    text.push_str(&advice.unwrap_or_default());
    Ok(())
}

/// Bars of the main figure of each size, and of each size's rate over time, with the paper's beside ours.
fn plots(text: &mut String, findings: &Findings) -> Result<()> {
    text.push_str("<div class=\"plots\">\n");
    let table = Table::of(findings);
    for quantity in ["throughput", "loss", "cost"] {
        for (position, &size) in table.sizes.iter().enumerate() {
            let rows = table.lines.iter().filter_map(|line| line.cells[position]);
            let groups: Vec<Group> = rows
                .filter(|row| row.quantity == quantity)
                .map(|row| Group {
                    name: name(&row.case, &row.steering, row.vm),
                    bars: vec![
                        Bar {
                            series: "here",
                            value: row.ours.median,
                            range: Some((row.ours.min, row.ours.max)),
                        },
                        Bar {
                            series: "paper, scaled",
                            value: row.paper_scaled.unwrap_or(f64::NAN),
                            range: None,
                        },
                    ],
                })
                .collect();
            let unit = table
                .lines
                .iter()
                .filter_map(|line| line.cells[position])
                .find(|row| row.quantity == quantity);
            if let (false, Some(row)) = (groups.is_empty(), unit) {
                text.push_str(&bars(
                    &format!("{quantity}, {}, {}", row.unit, column(size)),
                    &groups,
                )?);
            }
        }
    }
    let mut sizes: Vec<_> = findings.over_time.iter().map(|line| line.size).collect();
    sizes.dedup();
    for size in sizes {
        let of_size: Vec<_> = findings.over_time.iter().filter(|line| line.size == size).collect();
        let unit = of_size.first().map_or("", |line| line.unit);
        text.push_str(&lines(&format!("throughput over time, {unit}, {size} B"), &of_size)?);
    }
    text.push_str("</div>\n");
    Ok(())
}

fn name(case: &str, steering: &str, vm: Option<u8>) -> String {
    vm.map_or_else(|| format!("{case}: {steering}"), |vm| format!("{case}: {steering}, VM {vm}"))
}

fn table(text: &mut String, findings: &Findings) -> Result<()> {
    let table = Table::of(findings);
    text.push_str("<table><tr><th>case<th>steering<th>figure");
    table.sizes.iter().try_for_each(|&size| write!(text, "<th>{}", column(size)))?;
    text.push_str("</tr>\n");
    for line in &table.lines {
        text.push_str("<tr>");
        line.head.iter().try_for_each(|word| write!(text, "<td>{}", escaped(word)))?;
        for row in &line.cells {
            let (shown, cores) =
                row.map_or(("-".into(), ""), |row| (cell(row), row.cores.as_str()));
            write!(text, "<td title=\"cores: {}\">{}", escaped(cores), escaped(&shown))?;
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table>\n");
    Ok(())
}

fn by_core(text: &mut String, lines: &[ByCore]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    text.push_str("<table><tr><th>who processed what<th>steering<th>size<th>frames by core<th>percent<th>paper: soft-IRQs by core</tr>\n");
    let percent = |shares: &[f64]| {
        shares.iter().map(|share| format!("{share:.1}")).collect::<Vec<_>>().join(" / ")
    };
    for line in lines {
        let frames: Vec<_> = line.frames.iter().map(u64::to_string).collect();
        writeln!(
            text,
            "<tr><td>{}<td>{}<td>{} B<td>{}<td>{}<td>{}</tr>",
            escaped(&line.case),
            escaped(&line.steering),
            line.size,
            frames.join(" / "),
            percent(&shares(&line.frames)),
            line.paper.as_deref().map_or("-".into(), millions),
        )?;
    }
    text.push_str("</table>\n");
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::findings::{Goal, OverTime};
    use super::*;
    use crate::experiments::findings::Row;
    use crate::report::Spread;

    #[test]
    fn a_page_has_its_tables_and_plots_and_no_markup_from_texts() {
        let row = Row {
            case: "a < b".into(),
            steering: "vse".into(),
            quantity: "throughput",
            vm: None,
            size: Some(1400),
            unit: "Mbit/s",
            cores: "CCX1".into(),
            ours: Spread::of(vec![90.0, 95.0, 99.0]),
            rounds: vec![95.0],
            paper: Some(1509.9),
            paper_scaled: Some(151.0),
        };
        let over_time = OverTime {
            steering: "vse".into(),
            size: 1400,
            points: vec![(0.0, 1.0), (0.1, 2.0)],
            unit: "Mbit/s",
        };
        let findings = Findings {
            experiment: "vse-collision",
            about: "x",
            source: "y".into(),
            scale: 0.1,
            notes: vec![],
            results: vec![row],
            by_core: vec![],
            over_time: vec![over_time],
            others_percent: 0.0,
            goals: vec![Goal::at_least("z".into(), 1.0, 0.95)],
        };
        let text = page(&Machine::here(), &[findings]).unwrap();
        assert_eq!(text.matches("<svg").count(), 2);
        assert!(
            text.contains("a &lt; b") && !text.contains("a < b"),
            "texts are escaped, in plots as well"
        );
        assert!(text.contains("95.0 [90.0..99.0] (151.0)") && text.contains("class=\"kept\""));
    }
}
