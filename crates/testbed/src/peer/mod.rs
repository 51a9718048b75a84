//! The contenders: each joins two guests with one switch, in the same namespaces and on the same core.

mod bridge;
pub mod mininet;
mod ovs;
mod suiro;
pub mod tunnel;
pub mod vhost;

use crate::netns::{Guest, Namespace, run};
use crate::process::Process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
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
    /// A TAP interface in the first guest, a veth pair and a packet socket for the second.
    TapAndAfPacket,
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
            Attach::TapAndAfPacket => "tap and af_packet",
            Attach::AfXdpNative => "af_xdp native",
            Attach::AfXdpGeneric => "af_xdp generic",
            Attach::Kernel => "kernel",
        }
    }

    /// How the guest at this index is attached.
    const fn of(self, index: usize) -> Self {
        match (self, index) {
            (Attach::TapAndAfPacket, 0) => Attach::Tap,
            (Attach::TapAndAfPacket, _) => Attach::AfPacket,
            (alike, _) => alike,
        }
    }
}

/// Which switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// Ours.
    Suiro,
    /// Ours, with a worker on the generators' core, too.
    SuiroOnBoth,
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
            Switch::SuiroOnBoth => format!("suiro {attach}, two workers"),
            Switch::Ovs { tso: false } => format!("ovs {} {attach}", ovs_version()),
            Switch::Ovs { tso: true } => format!("ovs {} {attach}, tso", ovs_version()),
            Switch::Bridge { offloads: true } => "linux bridge".into(),
            Switch::Bridge { offloads: false } => "linux bridge, offloads off".into(),
        }
    }

    fn start(self) -> Result<Running> {
        let switch = Namespace::create("sw")?;
        let guest = |index: usize| match self.attach.of(index) {
            Attach::Tap => Guest::bare(index as u8 + 1),
            _ => Guest::on_veth(&switch, index as u8 + 1),
        };
        let guests = [guest(0)?, guest(1)?];
        let state = match self.switch {
            Switch::Suiro => suiro::start(&switch, &guests, self.attach, &[SWITCH_CORE]),
            Switch::SuiroOnBoth => {
                suiro::start(&switch, &guests, self.attach, &[GENERATORS_CORE, SWITCH_CORE])
            }
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

impl State {
    /// Its processes, the switch itself last.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }
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
    /// The switch's process.
    ///
    /// # Errors
    /// The contender is none.
    pub fn process(&self) -> Result<&Process> {
        self.state.processes.last().context("this contender is no process")
    }

    /// Resident memory of the switch process in KiB.
    pub fn memory_kib(&self) -> Result<u64> {
        self.process()?.memory_kib()
    }

    /// A command for Open vSwitch's programs, which find this contender's instance.
    ///
    /// # Errors
    /// The contender has no management socket.
    pub fn ovs_command(&self, program: &str) -> Result<Command> {
        let directory = self.directory()?;
        let mut command = ovs::command(&self.switch, directory, program);
        if program == "ovs-vsctl" {
            command.arg(format!("--db={}", ovs::database(directory))).arg("--timeout=20");
        }
        Ok(command)
    }

    /// Where a switch keeps its sockets.
    ///
    /// # Errors
    /// The contender has none.
    pub fn directory(&self) -> Result<&Path> {
        let management = self.state.management.as_deref();
        management.and_then(Path::parent).context("this contender has no sockets")
    }

    /// Where the switch is.
    pub fn switch(&self) -> &Namespace {
        &self.switch
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
