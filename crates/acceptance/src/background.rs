//! A program that runs beside the test, its output in a file that can be read meanwhile.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::process::{Child, Command, Stdio};
use tempfile::NamedTempFile;

/// A running program; killed when dropped.
pub struct Background {
    child: Child,
    output: NamedTempFile,
}

impl Background {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let output = NamedTempFile::new().unwrap();
        let append = || OpenOptions::new().append(true).open(output.path()).unwrap();
        let child = command.stdin(Stdio::null()).stdout(append()).stderr(append()).spawn();
        Self { child: child.unwrap_or_else(|error| panic!("{command:?}: {error}")), output }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.output.path()).unwrap()).into_owned()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends it a signal and waits for its end; returns what it wrote.
    pub fn end(mut self, signal: Signal) -> String {
        // Gone already is ended too.
        let _ = kill_process(Pid::from_child(&self.child), signal);
        self.child.wait().unwrap();
        self.output()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
