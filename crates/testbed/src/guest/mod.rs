//! A virtual machine that does what it is told: Debian's kernel in Debian's QEMU.
//!
//! **Question answered**: does a driver that no one here wrote get on with our ports?
//!
//! * [`GuestSpec`], [`Nic`]: what machine is wanted. Software emulation, so that it runs where there is no KVM; memory that a switch
//!   can map, so that interfaces can be vhost-user.
//! * [`Guest`]: the machine at work. [`Guest::run`] runs a shell command inside and gives its output; processors are slow (emulated),
//!   the system calls and the drivers are real.
//! * `kernel`, `initramfs`, `cpio`: what it boots; `channel`: how it is talked to.
//!
//! **Invariants**: a guest ends with its value (killed by process id), and by itself when the process that holds the value ends in any
//! way: the channel breaks and `init.sh` turns the machine off; one that hangs is ended by the run's [keeper](crate::keeper). Its files are in a directory that goes with it.

mod channel;
mod cpio;
mod initramfs;
mod kernel;
mod spec;

use crate::programs::require;
use anyhow::{Context, Result, ensure};
use channel::Channel;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};
use std::fmt::Write;
use std::fs::File;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub use channel::Said;
pub use spec::{Backend, GuestSpec, Listener, Nic};

/// Longest start. Chosen: ten times what it takes on two busy cores.
const START: Duration = Duration::from_secs(60);

/// Longest command unless the caller gives a limit.
const COMMAND: Duration = Duration::from_secs(30);

/// Where a command inside writes what the host is to see at once, if [`GuestSpec::log`] was wanted.
pub const LOG: &str = "/dev/vport0p2";

/// QEMU's process number, in a machine's directory: for who ends a machine that hangs, and cannot end itself.
pub const PID_FILE: &str = "pid";

/// That machines can be started here: kernel and emulator.
///
/// # Errors
/// What is missing.
pub fn installed() -> Result<()> {
    kernel::Kernel::find()?;
    require(Qemu::PROGRAM, "qemu-system-x86").map(drop)
}

/// A machine at work.
pub struct Guest {
    name: String,
    qemu: Qemu,
    channel: Mutex<Channel>,
    /// Console and log.
    directory: tempfile::TempDir,
    /// What `uname -r` says inside.
    pub release: String,
    /// How long it took from nothing to the first command.
    pub start: Duration,
    /// What commands write to [`LOG`]; ends with the machine. Whoever wants to read it takes it.
    pub log: Option<UnixStream>,
}

impl Guest {
    /// Starts a machine and waits until it takes commands. An interface by vhost-user whose socket is the guest's needs its switch
    /// meanwhile: QEMU waits for it.
    ///
    /// # Errors
    /// What is not installed, or what QEMU and the console said last.
    pub fn boot(spec: &GuestSpec) -> Result<Self> {
        let begin = Instant::now();
        installed()?;
        let kernel = kernel::Kernel::find()?;
        let directory = tempfile::tempdir().context("a directory for a guest cannot be made")?;
        let initramfs = initramfs::prepare(&kernel, spec, directory.path())?;
        let [channel, log] = ["channel", "log"].map(|name| directory.path().join(name));
        let listen = |path: &Path| {
            UnixListener::bind(path).with_context(|| format!("{}: no socket", path.display()))
        };
        let (listener, log_listener) = (listen(&channel)?, listen(&log)?);
        let files = spec::Files {
            kernel: &kernel.image(),
            initramfs: &initramfs,
            console: &directory.path().join("console"),
            channel: &channel,
            log: &log,
            pid: &directory.path().join(PID_FILE),
        };
        let mut qemu = Qemu::start(spec, &files, &directory.path().join("qemu.log"))?;
        let deadline = begin + START;
        let opened = || {
            let stream = accept(&listener, &qemu, deadline)?;
            let log = spec.log.then(|| accept(&log_listener, &qemu, deadline)).transpose()?;
            Ok::<_, anyhow::Error>((Channel::open(stream, deadline)?, log))
        };
        let ((channel, release), log) = opened().with_context(|| {
            let (name, said) = (&spec.name, tail(directory.path()));
            format!("guest {name}: takes no commands; {}{said}", qemu.state())
        })?;
        let (name, channel, start) = (spec.name.clone(), Mutex::new(channel), begin.elapsed());
        Ok(Self { name, qemu, channel, directory, release: release.trim().into(), start, log })
    }

    /// Starts several at a time, which takes hardly longer than one.
    ///
    /// # Errors
    /// The first that failed; the others have ended then.
    pub fn boot_all<const N: usize>(specs: [GuestSpec; N]) -> Result<[Self; N]> {
        let guests: Vec<Self> = std::thread::scope(|scope| {
            let starts: Vec<_> =
                specs.iter().map(|spec| scope.spawn(|| Self::boot(spec))).collect();
            let join = |start: std::thread::ScopedJoinHandle<'_, _>| {
                start.join().expect("a start ends in a result")
            };
            starts.into_iter().map(join).collect::<Result<_>>()
        })?;
        guests.try_into().ok().context("one guest for each specification")
    }

    /// Runs a shell command (one line) to its end and returns what it wrote to both outputs. A program that is to stay gets `&` and
    /// its outputs redirected.
    ///
    /// # Errors
    /// A status other than 0, with the output; or a guest that does not answer, with the end of its console.
    pub fn run(&self, command: &str) -> Result<String> {
        let said = self.says(command, COMMAND)?;
        let Said { status, output } = said;
        ensure!(
            status == 0,
            "guest {}: `{command}` ended with {status}: {}",
            self.name,
            output.trim()
        );
        Ok(output)
    }

    /// Runs a shell command for at most `limit`, whatever its status.
    ///
    /// # Errors
    /// A guest that does not answer, with the end of its console.
    pub fn says(&self, command: &str, limit: Duration) -> Result<Said> {
        let mut channel = self.channel.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        channel.ask(command, limit).with_context(|| {
            format!("guest {}: `{command}` failed{}", self.name, tail(self.directory.path()))
        })
    }

    /// QEMU's process.
    pub fn pid(&self) -> u32 {
        self.qemu.0.id()
    }

    /// The same, for who ends a machine that another thread waits for.
    pub fn process(&self) -> Pid {
        Pid::from_child(&self.qemu.0)
    }

    /// Ends it as a power cut does.
    pub fn kill(self) {
        drop(self);
    }
}

/// A machine's process, killed when dropped.
struct Qemu(Child);

impl Qemu {
    const PROGRAM: &str = "qemu-system-x86_64";

    fn start(spec: &GuestSpec, files: &spec::Files<'_>, log: &Path) -> Result<Self> {
        let log = File::create(log).context("QEMU's log cannot be made")?;
        let mut command = Self::command(&spec.cores);
        command.args(spec::arguments(spec, files)).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let child = command.spawn();
        let child =
            child.with_context(|| format!("guest {}: QEMU cannot be started", spec.name))?;
        Ok(Self(child))
    }

    /// Whether it runs, in words.
    fn state(&mut self) -> String {
        match self.0.try_wait() {
            Ok(Some(status)) => format!("QEMU has ended: {status}"),
            _ => "QEMU still runs".into(),
        }
    }

    fn command(cores: &[usize]) -> Command {
        if cores.is_empty() {
            return Command::new(Self::PROGRAM);
        }
        let cores: Vec<_> = cores.iter().map(usize::to_string).collect();
        let mut command = Command::new("taskset");
        command.args(["-c", &cores.join(","), Self::PROGRAM]);
        command
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// QEMU connects as its first act, unless it ends before that.
fn accept(listener: &UnixListener, qemu: &Qemu, deadline: Instant) -> Result<UnixStream> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = rustix::time::Timespec::try_from(left).context("a time")?;
    let process = rustix::process::pidfd_open(Pid::from_child(&qemu.0), PidfdFlags::empty())?;
    let mut ready = [PollFd::new(listener, PollFlags::IN), PollFd::new(&process, PollFlags::IN)];
    rustix::event::poll(&mut ready, Some(&left))?;
    ensure!(ready[0].revents().contains(PollFlags::IN), "QEMU ended at once");
    Ok(listener.accept()?.0)
}

/// What QEMU and the console said last, to be put behind an error.
fn tail(directory: &Path) -> String {
    const LINES: usize = 15;
    let mut text = String::new();
    for name in ["qemu.log", "console"] {
        let bytes = std::fs::read(directory.join(name)).unwrap_or_default();
        let said = String::from_utf8_lossy(&bytes);
        let lines: Vec<_> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            let _ = write!(text, "\n  {name}: {line}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
