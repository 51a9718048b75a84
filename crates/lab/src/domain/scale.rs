//! How long large slices and many slices take, from the file to links that are proved.

use super::layout::{Layout, Size};
use super::used::{Used, typed};
use super::user::suiro;
use super::{Which, own_of};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;
use testbed::peer::mininet;

/// Switches of the large slice, in a line; each has a guest with two ports.
const SWITCHES: usize = 100;
const PORTS: usize = 2;
/// Slices that are applied at once, and switches of each, in a line over all sites.
const SLICES: usize = 10;
const EACH: usize = 10;

/// What one large slice took.
#[derive(Clone, Copy, Debug)]
pub struct Large {
    /// Seconds until it was ready.
    pub ready_s: f64,
    /// Seconds of processor time, of all that runs.
    pub processor_s: f64,
    /// MiB that came with it.
    pub memory_mib: f64,
    /// Seconds until it was gone.
    pub gone_s: f64,
    /// Seconds of processor time of all that, its end included.
    pub whole_processor_s: f64,
}

/// What the same topology took elsewhere, from its beginning to its end.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// Seconds.
    pub whole_s: f64,
    /// Seconds of processor time, of all that ran.
    pub processor_s: f64,
}

/// Mininet's line of as many switches and hosts' ports.
///
/// # Errors
/// Mininet or Open vSwitch is not there, or failed.
pub fn beside() -> Result<Beside> {
    let before = typed();
    let whole_s = mininet::line(SWITCHES, PORTS)?.as_secs_f64();
    Ok(Beside { whole_s, processor_s: (typed() - before).as_secs_f64() })
}

/// One slice of 100 switches, 200 ports and 99 links on one node. Each round has a lab of its own name.
///
/// # Errors
/// A step failed.
pub fn large(round: u32) -> Result<Large> {
    let size = Size { sites: 1, nodes: 1, which: Which { name: format!("large{round}") } };
    let mut large = None;
    own_of(size, |layout| {
        let file = write(layout, "large", &line("large", SWITCHES, &["tokyo"], PORTS))?;
        let (began, before) = (Instant::now(), Used::of(layout));
        apply(layout, &file)?;
        let (ready_s, after) = (began.elapsed().as_secs_f64(), Used::of(layout));
        let began = Instant::now();
        suiro(layout, &["--timeout", "60", "slice", "del", "red/large", "--wait"])?;
        large = Some(Large {
            ready_s,
            processor_s: after.processor.saturating_sub(before.processor).as_secs_f64(),
            memory_mib: (after.memory_kib as f64 - before.memory_kib as f64) / 1024.0,
            gone_s: began.elapsed().as_secs_f64(),
            whole_processor_s: Used::of(layout)
                .processor
                .saturating_sub(before.processor)
                .as_secs_f64(),
        });
        Ok(())
    })?;
    large.context("the lab has not run")
}

/// Ten slices of ten switches over three sites, applied at once: the seconds that each took until it was ready, in order.
///
/// # Errors
/// A step failed.
pub fn many(round: u32) -> Result<Vec<f64>> {
    let size = Size { sites: 3, nodes: 1, which: Which { name: format!("many{round}") } };
    let mut seconds = Vec::new();
    own_of(size, |layout| {
        let sites = ["tokyo", "osaka", "sendai"];
        let file = |n: usize| {
            let name = format!("many{n}");
            write(layout, &name, &line(&name, EACH, &sites, 1))
        };
        let files = (0..SLICES).map(file).collect::<Result<Vec<_>>>()?;
        thread::scope(|scope| {
            let one = |file: &PathBuf| {
                let began = Instant::now();
                apply(layout, file).map(|()| began.elapsed().as_secs_f64())
            };
            let all: Vec<_> = files.iter().map(|file| scope.spawn(move || one(file))).collect();
            for one in all {
                seconds.push(one.join().expect("an apply does not panic")?);
            }
            Ok(())
        })
    })?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds)
}

fn apply(layout: &Layout, file: &Path) -> Result<()> {
    let file = file.to_str().context("the lab's directory is text")?;
    suiro(layout, &["--timeout", "120", "apply", "-f", file, "--wait"]).map(drop)
}

fn write(layout: &Layout, name: &str, text: &str) -> Result<PathBuf> {
    let path = layout.directory.join(format!("{name}.yaml"));
    std::fs::write(&path, text)
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(path)
}

/// Switches in a line, the first ones at the first site; each with a guest of so many ports.
fn line(name: &str, switches: usize, sites: &[&str], ports: usize) -> String {
    let mut text = format!(
        "suiro: slice/1\nname: {name}\ntenant: red\ndefaults: {{switch: {{fail_mode: standalone}}, guest: {{cpu: 0.001, memory: 1M}}}}\nswitches:\n"
    );
    let site = |n: usize| sites[n * sites.len() / switches];
    // Writing to a text cannot fail.
    for n in 0..switches {
        let _ = writeln!(text, "  s{n}: {{site: {}}}", site(n));
    }
    text += "guests:\n";
    for n in 0..switches {
        let ports: Vec<String> =
            (0..ports).map(|port| format!("eth{port}: {{to: \"s{n}:{}\"}}", 10 + port)).collect();
        let _ = writeln!(
            text,
            "  g{n}: {{kind: process, site: {}, ports: {{{}}}}}",
            site(n),
            ports.join(", ")
        );
    }
    text += "links:\n";
    for n in 1..switches {
        let _ = writeln!(text, "  l{n}: {{between: [\"s{}:2\", \"s{n}:1\"]}}", n - 1);
    }
    text
}
