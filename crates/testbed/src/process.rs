//! Child processes that end with their owner.

use crate::sys;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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

    /// Ends it as Ctrl-C does, and waits for that as dropping does.
    pub fn interrupt(mut self) -> Result<()> {
        self.signal(rustix::process::Signal::INT)?;
        self.wait();
        Ok(())
    }

    /// Gives it five seconds to end.
    fn wait(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
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
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = self.signal(rustix::process::Signal::TERM);
        // One that was frozen learns of it now.
        let _ = self.thaw();
        self.wait();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
