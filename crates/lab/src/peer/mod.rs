//! The contenders: each joins two guests with one switch, in the same namespaces and on the same core.

mod bridge;
mod ovs;
mod suiro;
pub mod tunnel;
pub mod vhost;

use crate::netns::{Guest, Namespace, run};
use crate::sys;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use ovs::version as ovs_version;

/// The core that traffic is made on.
pub const GENERATORS_CORE: usize = 0;

/// The core that the switch runs on.
pub const SWITCH_CORE: usize = 1;

/// How a switch is attached to its guests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attach {
    /// TAP interfaces in the guests.
    Tap,
    /// veth pairs, packet sockets on the switch's ends.
    AfPacket,
    /// veth pairs, AF_XDP in the driver's own mode.
    AfXdpNative,
    /// veth pairs, AF_XDP on socket buffers.
    AfXdpGeneric,
    /// veth pairs, in the kernel.
    Kernel,
}

impl Attach {
    /// As it stands in the reports.
    pub const fn name(self) -> &'static str {
        match self {
            Attach::Tap => "tap",
            Attach::AfPacket => "af_packet",
            Attach::AfXdpNative => "af_xdp native",
            Attach::AfXdpGeneric => "af_xdp generic",
            Attach::Kernel => "kernel",
        }
    }
}

/// Which switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// Ours.
    Suiro,
    /// Open vSwitch's userspace datapath, with `userspace-tso-enable` or without.
    Ovs {
        /// Large segments.
        tso: bool,
    },
    /// The Linux bridge; without `offloads` the guests send no large segments.
    Bridge {
        /// Large segments and checksum offload in the guests.
        offloads: bool,
    },
}

/// What can be set beside others: started afresh for each figure, gone with what it returns.
pub trait Contend: Copy {
    /// At work.
    type Running;

    /// As it stands in the reports.
    fn name(self) -> String;

    /// Starts it with guests that reach each other, or says which step failed.
    fn start(self) -> Result<Self::Running>;
}

/// A switch and how it is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contender {
    /// Which switch.
    pub switch: Switch,
    /// How it is attached.
    pub attach: Attach,
}

impl Contend for Contender {
    type Running = Running;

    fn name(self) -> String {
        let attach = self.attach.name();
        match self.switch {
            Switch::Suiro => format!("suiro {attach}"),
            Switch::Ovs { tso: false } => format!("ovs {} {attach}", ovs_version()),
            Switch::Ovs { tso: true } => format!("ovs {} {attach}, tso", ovs_version()),
            Switch::Bridge { offloads: true } => "linux bridge".into(),
            Switch::Bridge { offloads: false } => "linux bridge, offloads off".into(),
        }
    }

    fn start(self) -> Result<Running> {
        let switch = Namespace::create("sw")?;
        let guests = match self.attach {
            Attach::Tap => [Guest::bare(1)?, Guest::bare(2)?],
            _ => [Guest::on_veth(&switch, 1)?, Guest::on_veth(&switch, 2)?],
        };
        let state = match self.switch {
            Switch::Suiro => suiro::start(&switch, &guests, self.attach),
            Switch::Ovs { tso } => ovs::start(&switch, &guests, self.attach, tso),
            Switch::Bridge { offloads } => bridge::start(&switch, &guests, offloads),
        };
        let state = state.with_context(|| format!("{}: starting failed", self.name()))?;
        let running = Running { state, guests, switch };
        wait_until_joined(&running.guests).with_context(|| self.name())?;
        Ok(running)
    }
}

/// What a contender left running; dropped first, so that its ports go before their namespaces.
#[derive(Default)]
pub struct State {
    /// Started processes, the switch itself last.
    processes: Vec<Process>,
    /// Its files.
    _directory: Option<tempfile::TempDir>,
    /// OpenFlow management socket.
    pub management: Option<PathBuf>,
}

/// A contender at work.
pub struct Running {
    /// Processes and files.
    pub state: State,
    /// The two guests.
    pub guests: [Guest; 2],
    switch: Namespace,
}

impl Running {
    /// Resident memory of the switch process in KiB.
    pub fn memory_kib(&self) -> Result<u64> {
        self.state.processes.last().context("this contender is no process")?.memory_kib()
    }

    /// Turns NAPI on at the switch's ends of the veth pairs.
    pub fn accept_live_frames(&self) -> Result<()> {
        self.guests.iter().try_for_each(|guest| accept_live_frames(&self.switch, guest))
    }
}

/// Turns NAPI on at the switch's end of a guest's veth pair: without it (or XDP) it takes no live XDP frames.
fn accept_live_frames(switch: &Namespace, guest: &Guest) -> Result<()> {
    run(switch.command("ethtool").args(["-K", &guest.port, "gro", "on"])).map(drop)
}

fn wait_until_joined([a, b]: &[Guest; 2]) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let answered = run(a.namespace.command("ping").args(["-c1", "-W1", "-q", &b.address]));
        match answered {
            Ok(_) => return Ok(()),
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => {
                return Err(error.context("the guests do not reach each other after 15 s"));
            }
        }
    }
}

/// A child that is told to end, waited for, and killed after five seconds; killed at once when we end without dropping it.
pub struct Process(Child);

impl Process {
    /// Starts it with its output in `log`.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = std::fs::File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        sys::end_with_us(command);
        Ok(Self(command.spawn().with_context(|| format!("{command:?}: cannot be started"))?))
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Resident memory in KiB.
    pub fn memory_kib(&self) -> Result<u64> {
        let status = self.proc("status")?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).context("VmRSS")
    }

    /// Processor time used so far, by all threads, in user and kernel mode (proc(5): fields 14 and 15, in ticks of 10 ms).
    pub fn cpu_time(&self) -> Result<Duration> {
        let stat = self.proc("stat")?;
        let (_, after_name) = stat.rsplit_once(')').context("stat")?;
        let ticks: u64 = after_name
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Ends it the hard way.
    pub fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Stops it where it is, so that it takes no processor time; [`Process::thaw`] lets it go on.
    pub fn freeze(&self) -> Result<()> {
        self.signal(rustix::process::Signal::STOP)
    }

    /// Lets it go on.
    pub fn thaw(&self) -> Result<()> {
        self.signal(rustix::process::Signal::CONT)
    }

    fn signal(&self, signal: rustix::process::Signal) -> Result<()> {
        let pid = rustix::process::Pid::from_raw(self.0.id() as i32).context("process id")?;
        rustix::process::kill_process(pid, signal)
            .with_context(|| format!("process {}: signal {signal:?} failed", self.0.id()))
    }

    fn proc(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.0.id());
        std::fs::read_to_string(&path).with_context(|| format!("{path}: has the process ended?"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.signal(rustix::process::Signal::TERM);
        // One that was frozen learns of it now.
        let _ = self.thaw();
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
