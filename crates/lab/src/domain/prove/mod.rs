//! Links that are broken on purpose: does each proof find its fault, and name it?
//!
//! **Question answered**: is a link ever called up that does not carry what it shall?
//!
//! A lab of three sites in a line, a slice with two links between two of them, one to the third, and one over all. Each fault is put in twice: while the slice is
//! built (the wide-area network is shut until the fault is there), and into a slice that is ready. [`faults`] has them, [`scene`] what they are put into.
//!
//! A row is good when the link is never up with the fault in place, the right way of it is named with the right cause within [`BUILDING`] or [`LIFE`], and
//! link `c`, which has no fault, stays up.

mod faults;
mod scene;

use super::layout::Layout;
use super::user::{suiro, until};
use anyhow::{Context, Result, ensure};
use faults::{FAULTS, Fault};
use scene::Scene;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// The slice's file, and its name.
const SLICE: &str = include_str!("prove.yaml");
const NAME: &str = "red/prove";
/// Within which a fault must be found (domain's design, D11).
const BUILDING: Duration = Duration::from_secs(3);
const LIFE: Duration = Duration::from_secs(30);
/// A mended link is up again within it: it is tried for two of each five seconds.
const MENDED: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// One fault, once.
#[derive(Serialize)]
struct Row {
    fault: &'static str,
    /// Into which link it was put.
    link: &'static str,
    /// `building` or `in life`.
    when: &'static str,
    /// Until it was named, in seconds.
    found_s: Option<f64>,
    within_s: u64,
    /// The link was up, with the fault in place: at any time while it was built, or still when it should have been found.
    up: bool,
    /// Link `c` was not.
    other_down: bool,
    /// What is told of it.
    said: String,
}

impl Row {
    fn is_good(&self) -> bool {
        self.found_s.is_some() && !self.up && !self.other_down
    }
}

/// Puts in each fault (of a short run: two), prints a table, and writes it as JSON where that is asked for.
///
/// # Errors
/// A fault was not found, or a step failed.
pub fn run(layout: &Layout, short: bool, json: Option<&Path>) -> Result<()> {
    in_line(layout)?;
    let mut rows = Vec::new();
    println!("{:<18} {:<9} {:>8} {:>8}  SAID OF THE LINK", "FAULT", "WHEN", "FOUND s", "WITHIN s");
    for fault in FAULTS.iter().filter(|fault| fault.in_short || !short) {
        for row in prove(layout, fault).with_context(|| fault.name)? {
            let found = row.found_s.map_or("never".into(), |found| format!("{found:.2}"));
            let miss = if row.is_good() { "" } else { "  MISSED" };
            println!(
                "{:<18} {:<9} {found:>8} {:>8}  {}{miss}",
                row.fault, row.when, row.within_s, row.said
            );
            rows.push(row);
        }
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&rows)?;
        std::fs::write(path, text + "\n")
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    let good = rows.iter().filter(|row| row.is_good()).count();
    ensure!(good == rows.len(), "{} of {} faults were missed", rows.len() - good, rows.len());
    println!("{good} of {good} faults found; no link was up with one");
    Ok(())
}

/// Takes away the segment between first and last site: the way between them leads by the middle one.
fn in_line(layout: &Layout) -> Result<()> {
    let file = layout.directory.join("domain.yaml");
    let cannot = || format!("{}: cannot be changed", file.display());
    let text = std::fs::read_to_string(&file).with_context(cannot)?;
    let sites = layout.sites();
    let segment = format!("  {}-{}:", sites[0], sites[sites.len() - 1]);
    let kept =
        text.lines().filter(|line| !line.starts_with(&segment)).map(|line| format!("{line}\n"));
    std::fs::write(&file, kept.collect::<String>()).with_context(cannot)?;
    suiro(layout, &["apply", "-f", file.to_str().context("the lab's directory is text")?]).map(drop)
}

/// A fault while the slice is built; then, when it is mended and all is ready, in life.
fn prove(layout: &Layout, fault: &'static Fault) -> Result<[Row; 2]> {
    let file = layout.directory.join("prove.yaml");
    std::fs::write(&file, SLICE)
        .with_context(|| format!("{}: cannot be written", file.display()))?;
    let file = file.to_str().context("the lab's directory is text")?;
    scene::shut(layout)?;
    suiro(layout, &["apply", "-f", file])?;
    until(BUILDING * 5, "nodes have their parts", || Ok(show(layout)?["state"] != "building"))?;
    let scene = Scene::look(layout)?;
    (fault.put)(&scene)?;
    scene::open(layout, fault.filter.map(|filter| filter(&scene)).as_deref())?;
    let building = watch(layout, fault, "building", BUILDING)?;
    scene.mend()?;
    ready(layout)?;
    (fault.put)(&scene)?;
    scene::open(layout, fault.filter.map(|filter| filter(&scene)).as_deref())?;
    let life = watch(layout, fault, "in life", LIFE)?;
    scene.mend()?;
    ready(layout)?;
    suiro(layout, &["--timeout", "30", "slice", "del", NAME, "--wait"])?;
    Ok([building, life])
}

/// Looks until the fault is named, and in the building on until the time is over: the link must not come up later.
fn watch(layout: &Layout, fault: &Fault, when: &'static str, within: Duration) -> Result<Row> {
    let (began, is_built) = (Instant::now(), when == "building");
    let mut row = Row {
        fault: fault.name,
        link: fault.link,
        when,
        found_s: None,
        within_s: within.as_secs(),
        up: false,
        other_down: false,
        said: String::new(),
    };
    loop {
        let view = show(layout)?;
        let took = began.elapsed();
        let (link, other) = (&view["links"][fault.link], &view["links"]["c"]);
        let is_up = link["state"] == "up";
        if row.found_s.is_none() {
            row.said = said(link);
            let is_named = !is_up && fault.is_named(link);
            row.found_s = is_named.then_some(took.as_secs_f64()).filter(|_| took <= within);
        }
        row.up |= is_up && (is_built || row.found_s.is_some() || took > within);
        let is_over = took > within || !is_built && row.found_s.is_some();
        if is_over {
            row.other_down = other["state"] != "up";
            return Ok(row);
        }
        std::thread::sleep(PAUSE);
    }
}

fn ready(layout: &Layout) -> Result<()> {
    until(MENDED, "all links are up again", || Ok(show(layout)?["state"] == "ready"))
}

fn show(layout: &Layout) -> Result<Value> {
    let text = suiro(layout, &["--json", "slice", "show", NAME])?;
    serde_json::from_str(&text).context("the slice")
}

/// The state, and each way that is not good.
fn said(link: &Value) -> String {
    let ways = link["ways"].as_array().into_iter().flatten();
    let bad = ways.filter_map(|way| {
        let text = |key: &str| way[key].as_str();
        Some(format!("{} → {}: {}", text("from")?, text("to")?, text("why")?))
    });
    let bad: Vec<_> = bad.collect();
    format!("{}: {}", link["state"].as_str().unwrap_or("none"), bad.join("; "))
}
