//! The switches, and how each of them is looked into.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::netns::run;
use testbed::peer::SWITCH_CORE;
use testbed::peer::vhost::{self, Running, Work};
use testbed::process::Process;
use testbed::testpmd::{Testpmd, TestpmdSpec};

/// How long a program may take until it captures.
const PATIENCE: Duration = Duration::from_secs(15);
/// From a capture's file, or the mark in its log, to frames. Chosen: dumpcap makes its file before it asks testpmd for frames.
const SETTLED: Duration = Duration::from_millis(500);
/// Time for what is still on its way to the file.
const DRAINED: Duration = Duration::from_millis(500);

/// Which switch, with its own way to capture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `suiro capture`.
    Suiro,
    /// Open vSwitch with DPDK, and `ovs-tcpdump`: a mirror to a TAP.
    OvsDpdk,
    /// DPDK's testpmd, which passes frames on unread, and `dpdk-dumpcap`.
    Testpmd,
}

impl Kind {
    /// All, ours first.
    pub const EACH: [Self; 3] = [Self::Suiro, Self::OvsDpdk, Self::Testpmd];

    /// As it stands in reports.
    pub fn name(self) -> String {
        match self {
            Self::Suiro => vhost::Kind::Suiro.name(),
            Self::OvsDpdk => vhost::Kind::OvsDpdk.name() + ", ovs-tcpdump",
            Self::Testpmd => "testpmd, dpdk-dumpcap".into(),
        }
    }
}

/// A switch at work between two guests.
pub enum Switch {
    /// One with rules.
    Ruled(Kind, Box<Running>),
    /// One that sends all that one guest sends to the other.
    Testpmd(Box<Testpmd>),
}

impl Switch {
    /// Starts it on the guests' sockets.
    pub fn start(kind: Kind, sockets: &[PathBuf; 2], rules: &[String]) -> Result<Self> {
        let of = match kind {
            Kind::Suiro => vhost::Kind::Suiro,
            Kind::OvsDpdk => vhost::Kind::OvsDpdk,
            Kind::Testpmd => {
                let spec = TestpmdSpec::new("captured", SWITCH_CORE).shared();
                let spec = sockets.iter().fold(spec, |spec, socket| spec.back_end(socket));
                let mut testpmd = Testpmd::start(&spec.option("--forward-mode=io"))?;
                testpmd.command("start")?;
                return Ok(Self::Testpmd(Box::new(testpmd)));
            }
        };
        let running = Running::start(of, sockets, 64)?;
        running.add_rules(rules)?;
        Ok(Self::Ruled(kind, Box::new(running)))
    }

    /// What its core has done; testpmd does not say.
    pub fn work(&self) -> Result<Option<Work>> {
        match self {
            Self::Ruled(_, running) => running.work().map(Some),
            Self::Testpmd(_) => Ok(None),
        }
    }

    /// Captures what its first port sees and the filter takes; returns once it does.
    pub fn capture(&self, filter: &str) -> Result<Capture> {
        let directory = tempfile::tempdir_in("/dev/shm")?;
        let file = directory.path().join("frames");
        let path = file.to_str().context("the capture's file: a path that is no text")?;
        let mut command = match self {
            Self::Ruled(Kind::Suiro, running) => {
                let mut command = Command::new(std::env::current_exe().context("own binary")?);
                command.env("SUIRO_API", running.control());
                command.args(["capture", "sw0:vm1", "--budget", "100%", "-w", path]);
                if !filter.is_empty() {
                    command.args(["--filter", filter]);
                }
                command
            }
            Self::Ruled(_, running) => {
                let mut command = running.command("ovs-tcpdump");
                command.args(["-i", "vm1", "-w", path]);
                command.args(filter.split_whitespace());
                command
            }
            Self::Testpmd(testpmd) => {
                let mut command = testpmd.dumpcap()?;
                command.args(["-i", "net_vhost0", "-w", path]);
                if !filter.is_empty() {
                    command.args(["-f", filter]);
                }
                command
            }
        };
        let log = directory.path().join("log");
        let process = Process::start(&mut command, &log)?;
        let is_ours = matches!(self, Self::Ruled(Kind::Suiro, _));
        let capture = Capture { process: Some(process), is_ours, file, log, _directory: directory };
        capture.wait_until_it_looks()?;
        Ok(capture)
    }
}

/// A capture at work.
pub struct Capture {
    process: Option<Process>,
    is_ours: bool,
    file: PathBuf,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Capture {
    fn wait_until_it_looks(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !self.file.exists() {
            ensure!(Instant::now() < deadline, "the capture does not begin: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(SETTLED);
        Ok(())
    }

    /// Ends it in order, and returns how many records are in its file.
    ///
    /// # Errors
    /// What it said; or, of ours, records that are neither in the file nor counted as lost.
    pub fn end(mut self) -> Result<u64> {
        std::thread::sleep(DRAINED);
        let process = self.process.take().context("it has ended")?;
        process.interrupt()?;
        // ovs-tcpdump ends before the tcpdump that it started does.
        std::thread::sleep(DRAINED);
        let records = records(&self.file).with_context(|| self.said())?;
        if self.is_ours {
            self.is_exact(records)?;
        }
        Ok(records)
    }

    /// Of ours: matched = written + lost, and the file has what was written.
    fn is_exact(&self, records: u64) -> Result<()> {
        let said = self.said();
        let before = |what: &str| {
            let (number, _) = said.split_once(what)?;
            number.rsplit([' ', '\n']).next()?.parse::<u64>().ok()
        };
        let [matched, written, lost] = [" frames matched", " written", " lost for want of room"]
            .map(|what| before(what).with_context(|| format!("no number in: {said}")));
        let (matched, written, lost) = (matched?, written?, lost?);
        ensure!(
            written == records && matched == written + lost,
            "{records} records in the file, but: {said}"
        );
        Ok(())
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// How many frames a file holds, by Wireshark's own count.
fn records(file: &Path) -> Result<u64> {
    let said = run(Command::new("capinfos").args(["-M", "-c"]).arg(file))?;
    let line = said.lines().find_map(|line| line.strip_prefix("Number of packets:"));
    line.and_then(|count| count.trim().parse().ok()).context("capinfos: no number of packets")
}
