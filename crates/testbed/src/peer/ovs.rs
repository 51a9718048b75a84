//! Open vSwitch's userspace datapath from Debian's packages, private to one run.

use super::{Attach, Process, SWITCH_CORE, State};
use crate::netns::{Guest, Namespace, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// The daemon of Debian's `openvswitch-switch`, by its own path: `ovs-vswitchd` is an alternative that may name the build with DPDK.
pub(super) const PLAIN: &str = "/usr/lib/openvswitch-switch/ovs-vswitchd";

/// The daemon of Debian's `openvswitch-switch-dpdk`.
pub(super) const WITH_DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// Version of the package, e.g. `3.1.0`.
pub fn version() -> String {
    let text = run(Command::new(PLAIN).arg("--version")).unwrap_or_default();
    text.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap_or("?").to_owned()
}

pub fn start(switch: &Namespace, guests: &[Guest; 2], attach: Attach, tso: bool) -> Result<State> {
    let directory = tempfile::tempdir()?;
    let mut ovs = Ovs::new(switch, directory.path());
    ovs.boot(PLAIN, tso_setting(tso))?;
    for guest in guests {
        ovs.add_port(guest, attach, tso)?;
    }
    let management = Some(directory.path().join("br0.mgmt"));
    Ok(State { processes: ovs.processes, _directory: Some(directory), management })
}

/// The setting that lets large segments through, or none.
pub(super) fn tso_setting(tso: bool) -> &'static [&'static str] {
    if tso { &["userspace-tso-enable=true"] } else { &[] }
}

/// An instance in a namespace, with all its files in one directory.
pub(super) struct Ovs<'a> {
    switch: &'a Namespace,
    directory: &'a Path,
    /// The database, then the switch.
    pub(super) processes: Vec<Process>,
}

/// A command in the namespace that finds an instance with all its files in `directory`.
pub(super) fn command(switch: &Namespace, directory: &Path, program: &str) -> Command {
    let mut command = switch.command(program);
    for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(name, directory);
    }
    command
}

/// The database of an instance with all its files in `directory`.
pub(super) fn database(directory: &Path) -> String {
    format!("unix:{}", directory.join("db.sock").display())
}

impl<'a> Ovs<'a> {
    pub(super) fn new(switch: &'a Namespace, directory: &'a Path) -> Self {
        Self { switch, directory, processes: Vec::new() }
    }

    pub(super) fn command(&self, program: &str) -> Command {
        command(self.switch, self.directory, program)
    }

    fn database(&self) -> String {
        database(self.directory)
    }

    pub(super) fn vsctl(&self, arguments: &[&str]) -> Result<()> {
        let database = format!("--db={}", self.database());
        run(self.command("ovs-vsctl").args(["--timeout=20", &database]).args(arguments))?;
        Ok(())
    }

    /// Starts the database and the daemon with one PMD on the switch's core, these `other_config` settings, and an empty bridge.
    pub(super) fn boot(&mut self, daemon: &str, settings: &[&str]) -> Result<()> {
        let file = self.directory.join("conf.db");
        run(self.command("ovsdb-tool").arg("create").arg(&file).arg(SCHEMA))?;
        let remote = format!("--remote=p{}", self.database());
        let log = self.directory.join("ovsdb.log");
        self.processes
            .push(Process::start(self.command("ovsdb-server").arg(&file).arg(remote), &log)?);
        wait_for(&self.directory.join("db.sock"))?;
        self.vsctl(&["--no-wait", "init"])?;
        let mask = format!("pmd-cpu-mask={:#x}", 1 << SWITCH_CORE);
        for setting in std::iter::once(&mask.as_str()).chain(settings) {
            let setting = format!("other_config:{setting}");
            self.vsctl(&["--no-wait", "set", "Open_vSwitch", ".", &setting])?;
        }
        let log = self.directory.join("vswitchd.log");
        let control = format!("--unixctl={}", self.control().display());
        let mut command = self.command(daemon);
        self.processes.push(Process::start(command.arg(self.database()).arg(control), &log)?);
        self.vsctl(&["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"])
            .with_context(|| last_lines(&log))
    }

    /// The socket that `ovs-appctl` talks to.
    pub(super) fn control(&self) -> PathBuf {
        self.directory.join("vswitchd.ctl")
    }

    pub(super) fn add_port(&self, guest: &Guest, attach: Attach, tso: bool) -> Result<()> {
        let port = guest.port.as_str();
        match attach {
            Attach::Tap => {
                self.vsctl(&[
                    "add-port",
                    "br0",
                    port,
                    "--",
                    "set",
                    "interface",
                    port,
                    "type=internal",
                ])?;
                self.switch.ip(&[
                    "link",
                    "set",
                    port,
                    "netns",
                    guest.namespace.name(),
                    "name",
                    "eth0",
                ])?;
                guest.configure("eth0")
            }
            Attach::AfPacket | Attach::TapAndAfPacket | Attach::Kernel => {
                // Without its own TSO this port type corrupts large segments; its documentation asks to turn them off.
                if !tso {
                    run(guest
                        .namespace
                        .command("ethtool")
                        .args(["-K", "eth0", "tx", "off", "tso", "off", "gso", "off"]))?;
                }
                self.add_interface("br0", port, attach)
            }
            Attach::AfXdpNative | Attach::AfXdpGeneric => {
                run(guest
                    .namespace
                    .command("ethtool")
                    .args(["-K", "eth0", "tx", "off", "tso", "off", "gso", "off"]))?;
                self.add_interface("br0", port, attach)
            }
        }
    }

    /// Adds an existing interface to a bridge, by AF_XDP where that is the way of attaching, else by packet socket.
    pub(super) fn add_interface(&self, bridge: &str, port: &str, attach: Attach) -> Result<()> {
        let mode = match attach {
            Attach::AfXdpNative => "options:xdp-mode=native",
            Attach::AfXdpGeneric => "options:xdp-mode=generic",
            _ => return self.vsctl(&["add-port", bridge, port]),
        };
        let add = ["add-port", bridge, port, "--", "set", "interface", port, "type=afxdp", mode];
        self.vsctl(&add)
    }
}

fn wait_for(path: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !path.exists() {
        let late = Instant::now() >= deadline;
        (!late)
            .then_some(())
            .with_context(|| format!("{}: did not appear within 10 s", path.display()))?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The end of a log, for an error.
fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    format!(
        "Open vSwitch did not start; its last words:\n{}",
        lines[lines.len().saturating_sub(8)..].join("\n")
    )
}
