//! A slice that is edited at random while guests talk: does only that move which the plan names?
//!
//! **Question answered**: what do the other links of a slice notice of a change?
//!
//! Two guests send numbered datagrams to and fro over two links and three switches, 500 a second, all the time. Meanwhile links and guests come and go, and
//! rates change. A row is good when no datagram of the edit's time is lost or late, and when the things of which any object has changed on any node are
//! those that the plan names: what [`seen`] compares is every port, rule and meter of `K`, circuit and guest. At the end `suiro audit --deep` must find nothing.

mod file;
mod seen;

use super::layout::Layout;
use super::talk::Talk;
use super::user::{guest_namespace, suiro};
use anyhow::{Context, Result, ensure};
use file::Slice;
use seen::Seen;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::driver::flows::Random;

const NAME: &str = "red/edit";
/// Between two datagrams (domain's design, D11: 500 a second).
const PACE: Duration = Duration::from_millis(2);

/// Edits of one kind.
#[derive(Serialize, Default)]
struct Row {
    edits: u32,
    /// Until the slice was ready again, in seconds: middle and longest.
    ready_s: [f64; 2],
    #[serde(skip)]
    all: Vec<f64>,
    /// Things that were touched and are not in the plan, or the other way round.
    unplanned: Vec<String>,
}

/// As many edits; prints a table, and writes it as JSON where that is asked for.
///
/// # Errors
/// An edit touched what its plan does not name, datagrams were lost or late, or a step failed.
pub fn run(layout: &Layout, edits: u32, seed: u64, json: Option<&Path>) -> Result<()> {
    let path = layout.directory.join("edit.yaml");
    let file = path.to_str().context("the lab's directory is text")?;
    let write = |slice: &Slice| {
        std::fs::write(&path, slice.text()).with_context(|| format!("{file}: cannot be written"))
    };
    let (mut slice, mut random) = (Slice::default(), Random(seed.max(1)));
    write(&slice)?;
    suiro(layout, &["--timeout", "60", "apply", "-f", file, "--wait"])?;
    let [from, to] = ["h1", "h3"].map(|guest| guest_namespace(layout, NAME, guest));
    let talk = Talk::begin(&from?, &to?, "10.0.0.3", PACE)?;
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut before = Seen::look(layout, &slice.things())?;
    for _ in 0..edits {
        let mut things = slice.things();
        let kind = slice.edit(&mut random);
        things.extend(slice.things());
        write(&slice)?;
        let planned = planned(layout, file)?;
        let began = Instant::now();
        suiro(layout, &["--timeout", "60", "apply", "-f", file, "--wait"])?;
        let took = began.elapsed().as_secs_f64();
        let after = Seen::look(layout, &things)?;
        let touched = after.touched(&before);
        let row = rows.entry(kind).or_default();
        (row.edits, before) = (row.edits + 1, after);
        row.all.push(took);
        row.unplanned.extend(touched.symmetric_difference(&planned).cloned());
    }
    let heard = talk.end();
    rows.values_mut().for_each(Row::sum);
    print(&rows);
    let (sent, lost) = (heard.sent, heard.sent - heard.answered);
    println!(
        "{sent} datagrams to and fro over links a and b: {lost} lost, {} late, longest gap {} ms",
        heard.late,
        heard.gap.as_millis()
    );
    if let Some(path) = json {
        let all = serde_json::json!({"kinds": rows, "datagrams": {"sent": sent, "lost": lost, "late": heard.late}});
        std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    suiro(layout, &["audit", "--deep"]).context("after all edits")?;
    println!("suiro audit --deep: nothing");
    let unplanned: Vec<&String> = rows.values().flat_map(|row| &row.unplanned).collect();
    ensure!(
        unplanned.is_empty(),
        "touched and not planned, or planned and not touched: {unplanned:?}"
    );
    ensure!(
        lost == 0 && heard.late == 0,
        "links that no edit named lost frames, or changed their order"
    );
    Ok(())
}

/// The things that the plan names.
fn planned(layout: &Layout, file: &str) -> Result<BTreeSet<String>> {
    let plan: Value = serde_json::from_str(&suiro(layout, &["--json", "diff", "-f", file])?)?;
    let changes = plan["changes"].as_array().context("a plan has changes")?;
    Ok(changes.iter().filter_map(|change| Some(change["thing"].as_str()?.to_owned())).collect())
}

impl Row {
    fn sum(&mut self) {
        self.all.sort_by(f64::total_cmp);
        let last = self.all.len().saturating_sub(1);
        let at = |n: usize| self.all.get(n).copied().unwrap_or_default();
        self.ready_s = [at(last / 2), at(last)];
    }
}

fn print(rows: &BTreeMap<&str, Row>) {
    println!(
        "{:<15} {:>6} {:>12} {:>12} {:>10}",
        "EDIT", "TIMES", "READY s p50", "LONGEST s", "UNPLANNED"
    );
    for (kind, Row { edits, ready_s: [middle, longest], unplanned, .. }) in rows {
        println!("{kind:<15} {edits:>6} {middle:>12.2} {longest:>12.2} {:>10}", unplanned.len());
    }
}
