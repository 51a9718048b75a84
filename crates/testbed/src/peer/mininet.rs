//! Mininet of Debian's package with Open vSwitch's userspace datapath: a line of switches, built and gone again.
//!
//! `mn` kills what is called like its programs when it fails, and removes files from `/tmp`: it has processes, mounts and `/tmp` of its own.

use super::ovs::{Ovs, PLAIN};
use crate::netns::{Namespace, run};
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::{Duration, Instant};

/// Version of the package, e.g. `2.3.0`.
pub fn version() -> String {
    // It goes to one or the other, by version.
    let output = Command::new("mn").arg("--version").output();
    let said = output.map(|it| [it.stdout, it.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&said).lines().last().unwrap_or("?").trim().to_owned()
}

/// How long `mn` takes for so many learning switches in a line with so many hosts each, from its start to its end. Open vSwitch runs before.
///
/// # Errors
/// A program is not there, or did not end well.
pub fn line(switches: usize, hosts: usize) -> Result<Duration> {
    let namespace = Namespace::create("mininet")?;
    let directory = tempfile::Builder::new().prefix("suiro-mininet-").tempdir_in("/run")?;
    let mut ovs = Ovs::new(&namespace, directory.path());
    ovs.boot(PLAIN, &[])?;
    let mut command = ovs.command("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["sh", "-c", "mount -t tmpfs none /tmp && exec \"$@\"", "sh", "timeout", "300"]);
    command.args(["mn", "--switch", "ovs,datapath=user,failMode=standalone"]);
    command.args(["--controller", "none", "--test", "build", "--topo"]);
    command.arg(format!("linear,{switches},{hosts}"));
    let began = Instant::now();
    let said = run(command.env("PYTHONUNBUFFERED", "1").arg("--verbosity=output"))
        .context("Mininet; run 'make setup' if it is not there")?;
    ensure!(!said.contains("Caught exception"), "Mininet: {said}");
    Ok(began.elapsed())
}
