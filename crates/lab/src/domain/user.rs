//! What a user types, typed by the lab: the `suiro` command against the lab's controller.

use super::layout::{Layout, Node};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testbed::netns;

/// How long nodes may take to be members. Chosen: many times what fifteen take on two cores.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// `suiro ARGUMENTS`; returns what it prints.
pub fn suiro(layout: &Layout, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--control").arg(layout.controller.socket()).args(arguments);
    netns::run(&mut command)
}

/// `suiro ARGUMENTS` at a node, as its operator.
pub fn at_node(node: &Node, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    netns::run(command.arg("--api").arg(node.socket()).args(arguments))
}

/// The namespace of a slice's guest.
pub fn guest_namespace(layout: &Layout, slice: &str, guest: &str) -> Result<String> {
    let view: Value = serde_json::from_str(&suiro(layout, &["--json", "slice", "show", slice])?)?;
    let name = view["guests"][guest]["netns"].as_str();
    Ok(name.with_context(|| format!("guest {guest} has no namespace"))?.to_owned())
}

/// Looks again and again, until what is waited for has come.
pub fn until(
    limit: Duration,
    what: &str,
    mut has_come: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + limit;
    while !has_come()? {
        ensure!(Instant::now() < deadline, "waited {} s in vain until {what}", limit.as_secs());
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// The same with that as its standard input.
pub fn suiro_reads(layout: &Layout, arguments: &[&str], input: &str) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--control").arg(layout.controller.socket()).args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    child.stdin.take().context("its standard input")?.write_all(input.as_bytes())?;
    ensure!(child.wait()?.success(), "suiro {}: refused", arguments.join(" "));
    Ok(())
}

/// Writes down what only root may read.
pub fn keep_secret(path: &Path, text: &str) -> Result<()> {
    let write = || {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    };
    write().with_context(|| format!("{}: cannot be written", path.display()))
}

/// Makes a token by which those nodes join, and writes it down for root alone.
pub fn token(layout: &Layout, nodes: &[&Node]) -> Result<()> {
    let mut arguments = vec!["domain", "token", "add"];
    for node in nodes {
        arguments.extend(["--node", &node.name]);
    }
    let token = suiro(layout, &arguments)?;
    keep_secret(&layout.token_file(), &token)
}

/// Waits until all nodes are members, and have the part that every node has.
pub fn members(layout: &Layout) -> Result<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = suiro(layout, &["--json", "domain", "nodes"])?;
        let nodes: Vec<Value> = serde_json::from_str(&text).context("the list of nodes")?;
        let is_member = |node: &&Value| node["alive"] == true && node["parts"][0] != 0;
        let members = nodes.iter().filter(is_member).count();
        if members == layout.nodes.len() {
            return Ok(format!("{members} nodes, each with its switch K"));
        }
        ensure!(
            Instant::now() < deadline,
            "only {members} of {} nodes are members; see node.log in their run directories",
            layout.nodes.len()
        );
        std::thread::sleep(PAUSE);
    }
}
