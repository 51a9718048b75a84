//! The demonstration: a slice over three sites, planned, applied, and pinged through.

use super::layout::Layout;
use super::steps::Steps;
use super::user::suiro;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The slice's file.
const SLICE: &str = include_str!("demo.yaml");
/// Which slice it is.
const NAME: &str = "red/demo";
/// Its guests with their addresses.
const GUESTS: [(&str, &str); 3] = [("h1", "10.0.0.1"), ("h2", "10.0.0.2"), ("h3", "10.0.0.3")];

/// Plans and applies the slice, pings between all its guests, and removes it.
pub fn run(layout: &Layout, steps: &mut Steps) -> Result<()> {
    let file = layout.directory.join("demo.yaml");
    std::fs::write(&file, SLICE)
        .with_context(|| format!("{}: cannot be written", file.display()))?;
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
    steps.done("ping", || ping(layout))?;
    steps.done("remove", || {
        suiro(layout, &["--timeout", "30", "slice", "del", NAME, "--wait"])?;
        let left = suiro(layout, &["--json", "slice", "list"])?;
        ensure!(left.trim() == "[]", "a slice is left: {left}");
        Ok("no node has anything of it".into())
    })
}

/// Each guest asks each other one.
fn ping(layout: &Layout) -> Result<String> {
    let mut pairs = 0;
    for (guest, own) in GUESTS {
        for (_, address) in GUESTS.iter().filter(|(_, address)| *address != own) {
            let ping = ["slice", "exec", NAME, guest, "--", "ping", "-c3", "-i0.2", "-W2", address];
            suiro(layout, &ping).with_context(|| format!("{guest} to {address}"))?;
            pairs += 1;
        }
    }
    Ok(format!("{pairs} of {pairs} pairs answer"))
}
