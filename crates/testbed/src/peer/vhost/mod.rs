//! Switches for guests on vhost-user ports: ours, and Open vSwitch with DPDK.
//!
//! Each connects to one socket per guest, numbers its ports from 1 in the guests' order, forwards on the switch's core alone, and
//! does nothing that its rules do not say (fail mode secure). Both get the same rules, word by word, by `ovs-ofctl`.

mod ovs;
mod suiro;

use super::Process;
use crate::hugepages::Reserved;
use crate::netns::{Namespace, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Which switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Ours.
    Suiro,
    /// Open vSwitch with DPDK.
    OvsDpdk,
    /// The same with `userspace-tso-enable`, which is off as it comes.
    OvsDpdkTso,
}

impl Kind {
    /// As it stands in reports.
    pub fn name(self) -> String {
        match self {
            Kind::Suiro => "suiro".into(),
            Kind::OvsDpdk => format!("ovs-dpdk {}", super::ovs_version()),
            Kind::OvsDpdkTso => format!("ovs-dpdk {}, tso", super::ovs_version()),
        }
    }
}

/// What a switch's forwarding core did since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Frames received.
    pub frames: u64,
    /// Cycles of polls that found frames.
    pub busy: u64,
    /// Cycles of polls that found none; asleep, a switch counts neither.
    pub idle: u64,
    /// Frames that its caches did not know, and another thread decided on; ours has no such path.
    pub upcalls: u64,
}

impl Work {
    /// What was done since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            upcalls: self.upcalls.saturating_sub(before.upcalls),
        }
    }

    /// Busy cycles per frame.
    pub fn cycles_per_frame(self) -> f64 {
        self.busy as f64 / self.frames.max(1) as f64
    }
}

/// A switch at work; gone when dropped.
pub struct Running {
    kind: Kind,
    /// Started processes, the switch itself last.
    processes: Vec<Process>,
    /// OpenFlow management socket.
    management: PathBuf,
    /// Where it tells its counters.
    control: PathBuf,
    _pages: Option<Reserved>,
    namespace: Namespace,
    directory: tempfile::TempDir,
}

impl Running {
    /// Starts a switch that will connect to these sockets, on which guests must listen by then, for frames up to `frame` bytes.
    ///
    /// # Errors
    /// The step that failed.
    pub fn start(kind: Kind, sockets: &[PathBuf], frame: usize) -> Result<Self> {
        let running = match kind {
            Kind::Suiro => suiro::start(sockets, suiro::Alone::Drops),
            Kind::OvsDpdk | Kind::OvsDpdkTso => ovs::start(kind, sockets, frame),
        };
        running.with_context(|| format!("{}: starting failed", kind.name()))
    }

    /// Starts our switch so that it learns by itself, for it is going to lose its rules: it will be killed.
    ///
    /// # Errors
    /// The step that failed.
    pub fn start_learning(sockets: &[PathBuf]) -> Result<Self> {
        suiro::start(sockets, suiro::Alone::Learns).context("suiro: starting failed")
    }

    /// Ends our switch the hard way.
    ///
    /// # Errors
    /// It has ended.
    pub fn kill(&mut self) -> Result<()> {
        self.processes.last_mut().context("no process")?.kill()
    }

    /// Starts our switch again after [`Running::kill`]; it is not up yet.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start_again(&mut self) -> Result<()> {
        let process = suiro::launch(&self.namespace, self.directory.path())?;
        self.processes.pop();
        self.processes.push(process);
        Ok(())
    }

    /// File descriptors that the switch has open.
    ///
    /// # Errors
    /// It has ended.
    pub fn descriptors(&self) -> Result<u64> {
        let path = format!("/proc/{}/fd", self.pid()?);
        Ok(std::fs::read_dir(&path).with_context(|| path.clone())?.count() as u64)
    }

    /// Where it takes commands: our API, or `ovs-appctl`'s socket.
    pub fn control(&self) -> &Path {
        &self.control
    }

    /// A command that will run beside it, and find it where Open vSwitch's tools look.
    pub fn command(&self, program: &str) -> Command {
        super::ovs::command(&self.namespace, self.directory.path(), program)
    }

    /// Adds rules in the syntax of `ovs-ofctl`.
    ///
    /// # Errors
    /// What `ovs-ofctl` says.
    pub fn add_rules(&self, rules: &[String]) -> Result<()> {
        let file = self.directory.path().join("rules");
        std::fs::write(&file, rules.join("\n"))?;
        let mut command = Command::new("ovs-ofctl");
        command.args(["-O", "OpenFlow13", "add-flows"]).arg(&self.management).arg(&file);
        run(&mut command).with_context(|| format!("{}: adding rules failed", self.kind.name()))?;
        Ok(())
    }

    /// What its forwarding core has done.
    ///
    /// # Errors
    /// It does not answer.
    pub fn work(&self) -> Result<Work> {
        match self.kind {
            Kind::Suiro => suiro::work(&self.control),
            Kind::OvsDpdk | Kind::OvsDpdkTso => ovs::work(&self.control),
        }
        .with_context(|| format!("{}: reading its counters failed", self.kind.name()))
    }

    /// Frames by the rung of the ladder that took them; none of a switch that has no ladder.
    ///
    /// # Errors
    /// It does not answer.
    pub fn rungs(&self) -> Result<Vec<(String, u64)>> {
        match self.kind {
            Kind::Suiro => suiro::rungs(&self.control),
            Kind::OvsDpdk | Kind::OvsDpdkTso => Ok(Vec::new()),
        }
        .with_context(|| format!("{}: reading its rungs failed", self.kind.name()))
    }

    /// Stops all of it, so that its core is free.
    ///
    /// # Errors
    /// It has ended.
    pub fn freeze(&self) -> Result<()> {
        self.processes.iter().try_for_each(Process::freeze)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// It has ended.
    pub fn thaw(&self) -> Result<()> {
        self.processes.iter().try_for_each(Process::thaw)
    }

    /// Resident memory of the switch in KiB.
    ///
    /// # Errors
    /// It has ended.
    pub fn memory_kib(&self) -> Result<u64> {
        self.switch()?.memory_kib()
    }

    /// Processor time that the switch has used.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        self.switch()?.cpu_time()
    }

    /// Its process.
    ///
    /// # Errors
    /// There is none.
    pub fn pid(&self) -> Result<u32> {
        Ok(self.switch()?.pid())
    }

    /// The end of our switch's log.
    pub fn last_words(&self) -> String {
        last_lines(&self.directory.path().join(suiro::LOG))
    }

    fn switch(&self) -> Result<&Process> {
        self.processes.last().context("no process")
    }
}

/// Name of the port of a guest, from 1.
fn port_name(number: usize) -> String {
    format!("vm{number}")
}

/// The end of a log, for an error.
fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
