//! The processes of a lab. A namespace is a lab's own, so whoever runs in it belongs to the lab: that is how they are found and ended.

use super::layout::{Layout, Node};
use super::{user, wide};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::netns;

/// How long a process may take to end by itself. Chosen: a node with a million rules ends within it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks whether it has.
const PAUSE: Duration = Duration::from_millis(10);
/// Nodes that start at a time; more would only wait for each other's core.
const AT_A_TIME: usize = 4;

/// What a node does.
pub enum State {
    /// It answers; its process.
    Serves(u32),
    /// It runs, and does not listen.
    Silent(u32),
    /// It does not run.
    Absent,
}

/// What that node does.
pub fn state(node: &Node) -> State {
    let serves = UnixStream::connect(node.socket()).is_ok();
    match (inside(&node.namespace).unwrap_or_default().first(), serves) {
        (Some(&pid), true) => State::Serves(pid),
        (Some(&pid), false) => State::Silent(pid),
        (None, _) => State::Absent,
    }
}

/// Starts the controller unless it runs.
pub fn start_controller(layout: &Layout) -> Result<String> {
    let host = &layout.controller;
    if !matches!(state(host), State::Serves(_)) {
        let listen = layout.control_address();
        // Browsers are on this host, not in the controller's namespace.
        let here = format!("/proc/{}/ns/net", std::process::id());
        let start = || {
            let mut command = this(host, "control")?;
            command.args(["--listen", &listen, "--portal", "127.0.0.1:0", "--portal-netns", &here]);
            netns::run(command.arg("--background"))
        };
        netns::enter(&host.namespace, start)?;
    }
    Ok(format!("{}, {}", host.socket().display(), layout.control_address()))
}

/// Starts the nodes that do not run, and waits until all serve.
pub fn start(layout: &Layout) -> Result<String> {
    let missing: Vec<_> =
        layout.nodes.iter().filter(|node| !matches!(state(node), State::Serves(_))).collect();
    let strangers: Vec<_> = missing.iter().filter(|node| !node.has_joined()).copied().collect();
    if !strangers.is_empty() {
        user::token(layout, &strangers)?;
    }
    for some in missing.chunks(AT_A_TIME) {
        std::thread::scope(|scope| {
            let started: Vec<_> =
                some.iter().map(|node| scope.spawn(|| start_node(layout, node))).collect();
            started
                .into_iter()
                .try_for_each(|one| one.join().expect("starting a node does not panic"))
        })?;
    }
    Ok(format!("{} started, {} run", missing.len(), layout.nodes.len()))
}

/// Kills what runs on a host as `kill -9` does, and waits until it has gone.
pub fn kill(node: &Node) -> Result<()> {
    signal(&node.namespace, Signal::KILL)?;
    gone(&node.namespace)?;
    // Its first thread leaves the namespace before its last one closes the sockets.
    while UnixStream::connect(node.socket()).is_ok() {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Ends all that runs, and lets each remove what it keeps on this host.
pub fn end(layout: &Layout) -> Result<String> {
    let there: Vec<_> = layout.hosts().filter(|host| wide::exists(&host.namespace)).collect();
    for node in &there {
        signal(&node.namespace, Signal::TERM)?;
    }
    for node in &there {
        gone(&node.namespace)?;
    }
    let nodes: Vec<_> = layout.nodes.iter().filter(|node| wide::exists(&node.namespace)).collect();
    for some in nodes.chunks(AT_A_TIME) {
        std::thread::scope(|scope| {
            let purged: Vec<_> = some.iter().map(|node| scope.spawn(|| purge(node))).collect();
            purged.into_iter().try_for_each(|one| one.join().expect("a purge does not panic"))
        })?;
    }
    Ok(format!("{} ended", there.len()))
}

fn start_node(layout: &Layout, node: &Node) -> Result<()> {
    let start = || {
        let mut command = this(node, "node")?;
        command.args(["--join", &layout.control_address(), "--node-name", &node.name]);
        if !node.has_joined() {
            command.arg("--token-file").arg(layout.token_file());
        }
        netns::run(command.arg("--background"))
    };
    netns::enter(&node.namespace, start).with_context(|| format!("node {}", node.name)).map(drop)
}

/// A node that was killed has left TAPs and eBPF programs; those of others stay.
fn purge(node: &Node) -> Result<()> {
    if !node.state_dir().exists() {
        return Ok(());
    }
    netns::enter(&node.namespace, || netns::run(this(node, "node")?.arg("--purge")))
        .with_context(|| format!("node {}: what it left", node.name))
        .map(drop)
}

fn this(node: &Node, what: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(what).arg("--run-dir").arg(node.run_dir());
    command.arg("--state-dir").arg(node.state_dir());
    Ok(command)
}

/// The processes in a namespace.
pub fn inside(namespace: &str) -> Result<Vec<u32>> {
    if !wide::exists(namespace) {
        return Ok(Vec::new());
    }
    let text = netns::ip(&["netns", "pids", namespace])?;
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

fn signal(namespace: &str, signal: Signal) -> Result<()> {
    for pid in inside(namespace)?.into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
        // One that has ended meanwhile is what was wanted.
        let _ = kill_process(pid, signal);
    }
    Ok(())
}

/// Waits until nobody is left in a namespace, and ends the hard way who does not go.
fn gone(namespace: &str) -> Result<()> {
    for hard in [false, true] {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if inside(namespace)?.is_empty() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        if !hard {
            signal(namespace, Signal::KILL)?;
        }
    }
    ensure!(
        inside(namespace)?.is_empty(),
        "namespace {namespace}: a process does not end; see: ip netns pids {namespace}"
    );
    Ok(())
}
