//! The demonstration: a tenant's network over three sites, a ring under its own controller, from its file to pings.

use super::layout::Layout;
use super::osken;
use super::steps::Steps;
use super::user::{at_node, suiro, until};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The slice's file, and its controller's program.
const SLICE: &str = include_str!("demo.yaml");
const PROGRAM: &str = include_str!("../../../../demo/tree_switch.py");
/// Which slice it is.
const NAME: &str = "red/demo";
/// Its links as its controller finds them by LLDP: datapath id and port of both ends.
const LINKS: &str = "3 switches, 3 links: 1:2-2:2 1:3-3:4 2:3-3:3";
/// Its guests with their addresses.
const GUESTS: [(&str, [&str; 2]); 3] = [
    ("h1", ["10.0.0.1", "2001:db8::1"]),
    ("h2", ["10.0.0.2", "2001:db8::2"]),
    ("h3", ["10.0.0.3", "2001:db8::3"]),
];
/// Within which the controller must know all links. Chosen: its program waits until LLDP tells nothing new for some seconds.
const FOUND: Duration = Duration::from_secs(30);

/// Plans and applies the slice, waits until its controller knows its links, pings between all its guests, and removes it.
pub fn run(layout: &Layout, steps: &mut Steps<'_>) -> Result<()> {
    let file = write(layout)?;
    let file = file.to_str().context("the lab's directory is text")?;
    steps.done("plan", || {
        let text = suiro(layout, &["--json", "diff", "-f", file])?;
        let plan: Value = serde_json::from_str(&text).context("the plan")?;
        Ok(format!("{} objects", plan["changes"].as_array().map_or(0, Vec::len)))
    })?;
    steps.done("apply", || {
        let text = suiro(layout, &["--json", "apply", "-f", file])?;
        let done: Value = serde_json::from_str(&text).context("the answer")?;
        Ok(format!("generation {}", done["generation"]))
    })?;
    steps.done("ready", || {
        suiro(layout, &["--timeout", "60", "apply", "-f", file, "--wait"]).map(|_| String::new())
    })?;
    steps.done("topology", || topology(layout))?;
    steps.done("ping", || ping(layout))?;
    steps.done("remove", || {
        suiro(layout, &["--timeout", "30", "slice", "del", NAME, "--wait"])?;
        let left = suiro(layout, &["--json", "slice", "list"])?;
        ensure!(left.trim() == "[]", "a slice is left: {left}");
        Ok("no node has anything of it".into())
    })
}

/// Writes the slice's file, with the program that it names beside it.
fn write(layout: &Layout) -> Result<PathBuf> {
    let packages = osken::show(layout)?;
    let slice = SLICE.replace("PACKAGES", &packages.display().to_string());
    for (name, text) in [("tree_switch.py", PROGRAM), ("demo.yaml", &slice)] {
        let file = layout.directory.join(name);
        std::fs::write(&file, text)
            .with_context(|| format!("{}: cannot be written", file.display()))?;
    }
    Ok(layout.directory.join("demo.yaml"))
}

/// Waits until the tenant's controller has found what the file says.
fn topology(layout: &Layout) -> Result<String> {
    let mut log = String::new();
    let found = until(FOUND, "the tenant's controller has found all links", || {
        log = at_node(&layout.nodes[0], &["guest", "logs", "ctl"])?;
        Ok(log.lines().last().is_some_and(|line| line == format!("topology: {LINKS}")))
    });
    found.with_context(|| format!("it says:\n{log}"))?;
    Ok(format!("the tenant's os-ken found {LINKS}"))
}

/// Each guest asks each other one, by IPv4 and IPv6.
fn ping(layout: &Layout) -> Result<String> {
    let mut pairs = 0;
    for (guest, own) in GUESTS {
        for (_, addresses) in GUESTS.iter().filter(|(_, addresses)| *addresses != own) {
            for address in addresses {
                let ping =
                    ["slice", "exec", NAME, guest, "--", "ping", "-c3", "-i0.2", "-W2", address];
                suiro(layout, &ping).with_context(|| format!("{guest} to {address}"))?;
            }
            pairs += 1;
        }
    }
    Ok(format!("{pairs} of {pairs} pairs answer"))
}
