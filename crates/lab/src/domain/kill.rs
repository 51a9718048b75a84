//! A controller and nodes that are killed in turn, while guests talk: is all as declared afterwards?
//!
//! **Question answered**: what does a tenant notice of a `kill -9`, and what is left of it?
//!
//! After each round `suiro audit --deep` must find nothing: what nodes and their kernels really have is what is declared. Guests' processes must be the
//! same as before. While the controller is away guests must go on talking.

use super::layout::Layout;
use super::running;
use super::steps::Steps;
use super::talk::Talk;
use super::user::{at_node, guest_namespace, members, suiro, until};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// The slice's file, and its name.
const SLICE: &str = include_str!("kill.yaml");
const NAME: &str = "red/kill";
/// Between two datagrams. Chosen: fine enough for gaps of tenths of a second.
const PACE: Duration = Duration::from_millis(10);
/// How long guests must talk without a controller, and after each round.
const LISTEN: Duration = Duration::from_secs(1);
/// Within which all must be as declared again. Chosen: many times what it takes.
const HEALED: Duration = Duration::from_secs(60);
/// The longest gap that a controller's death may make. Chosen: none is expected; a busy machine has pauses.
const UNFELT: Duration = Duration::from_millis(900);

/// As many rounds; each kills the next of controller and nodes.
pub fn run(layout: &Layout, rounds: u32) -> Result<()> {
    let file = layout.directory.join("kill.yaml");
    std::fs::write(&file, SLICE)
        .with_context(|| format!("{}: cannot be written", file.display()))?;
    let file = file.to_str().context("the lab's directory is text")?;
    suiro(layout, &["--timeout", "60", "apply", "-f", file, "--wait"])?;
    let [from, to] = ["h1", "h3"].map(|guest| guest_namespace(layout, NAME, guest));
    let (from, to) = (from?, to?);
    let before = processes(layout)?;
    let mut steps = Steps::at(layout);
    let mut longest = Duration::ZERO;
    for (round, victim) in (1..=rounds).zip(layout.hosts().cycle()) {
        let is_controller = victim.name == layout.controller.name;
        steps.done(&format!("{round}: kill -9 {}", victim.name), || {
            let talk = Talk::begin(&from, &to, "10.0.0.3", PACE)?;
            running::kill(victim)?;
            if is_controller {
                std::thread::sleep(LISTEN);
            }
            heal(layout, file, &before)?;
            std::thread::sleep(LISTEN);
            let heard = talk.end();
            ensure!(heard.answered > 0, "h1 and h3 do not talk any more");
            let limit = if is_controller { UNFELT } else { HEALED };
            ensure!(heard.gap < limit, "h1 and h3 could not talk for {} ms", heard.gap.as_millis());
            longest = longest.max(heard.gap);
            Ok(format!(
                "suiro audit --deep: nothing; guests' longest gap {} ms",
                heard.gap.as_millis()
            ))
        })?;
    }
    println!("{rounds} rounds; the longest gap between guests was {} ms", longest.as_millis());
    Ok(())
}

/// Starts who is missing, and waits until what runs is what is declared, guests' processes as before.
fn heal(layout: &Layout, file: &str, before: &BTreeSet<String>) -> Result<()> {
    running::start_controller(layout)?;
    running::start(layout)?;
    members(layout)?;
    suiro(layout, &["--timeout", "60", "apply", "-f", file, "--wait"])?;
    let plan: Value = serde_json::from_str(&suiro(layout, &["--json", "diff", "-f", file])?)?;
    ensure!(
        plan["changes"] == Value::Array(Vec::new()),
        "the controller wants other things: {plan}"
    );
    let mut differs = String::new();
    let healed = until(HEALED, "suiro audit --deep finds nothing", || {
        differs =
            suiro(layout, &["audit", "--deep"]).err().map(|it| it.to_string()).unwrap_or_default();
        Ok(differs.is_empty())
    });
    healed.context(differs)?;
    let now = processes(layout)?;
    ensure!(now == *before, "guests' processes were {before:?} and are {now:?}");
    Ok(())
}

/// Each guest with its process: one that was started anew has another.
fn processes(layout: &Layout) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for node in &layout.nodes {
        let text = at_node(node, &["--json", "guest", "list"])?;
        let guests: Vec<Value> = serde_json::from_str(&text)
            .with_context(|| format!("suiro guest list at {}", node.name))?;
        let told = |it: &Value| format!("{} guest {} {}", node.name, it["spec"]["name"], it["pid"]);
        all.extend(guests.iter().map(told));
    }
    Ok(all)
}
