//! Whoever clears up when a run cannot: after Ctrl-C, or a kill.
//!
//! A shell of its own process group waits on a pipe whose other end is ours. It closes when we end, however that happens; then the shell
//! deletes the namespaces of this process ([`crate::netns`]), ends the machines that hang and do not see that we have gone ([`crate::guest`]), and deletes the directory of all its
//! temporary files. What a run clears up itself is gone
//! by then. Its processes are killed with it ([`crate::process::Process`]). Our end may close before the shell has said where that directory is; it goes on then.

use crate::guest::PID_FILE;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The shell; dropping it ends it, and with it what is left.
pub struct Keeper {
    shell: Child,
}

impl Keeper {
    /// Starts it, and makes temporary files of this process go into a directory of its own from now on.
    pub fn start() -> Result<Self> {
        let script = format!(
            "trap '' PIPE; directory=$(mktemp -d) && echo \"$directory\" 2>/dev/null; read -r _; \
             for pid in \"$directory\"/.tmp*/{PID_FILE}; do [ -e \"$pid\" ] && kill -9 \"$(cat \"$pid\")\"; done 2>/dev/null; \
             for space in /run/netns/su-*-{}; do [ -e \"$space\" ] && ip netns del \"${{space##*/}}\"; done; rm -rf \"$directory\"",
            std::process::id()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let shell = command.spawn().context("the keeper of a run cannot be started")?;
        let mut keeper = Self { shell };
        let mut line = String::new();
        let output = keeper.shell.stdout.as_mut().context("the keeper's output")?;
        BufReader::new(output).read_line(&mut line)?;
        let directory = PathBuf::from(line.trim_end());
        anyhow::ensure!(directory.is_dir(), "no directory for temporary files could be made");
        // Only the first one counts; a process runs one benchmark.
        let _ = tempfile::env::override_temp_dir(&directory);
        Ok(keeper)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // `wait` closes the pipe first.
        let _ = self.shell.wait();
    }
}
