//! Pages of 2 MiB for DPDK, reserved for one run and given back however it ends.
//!
//! A shell of its own process group reserves them, on top of what others have, and takes as many away again when our end of its pipe
//! closes: by drop, or because we were killed. Pages still in use then go back to the system when their user ends (they become surplus).

use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

const COUNT: &str = "/proc/sys/vm/nr_hugepages";

/// A reservation; dropping it gives the pages back.
pub struct Reserved {
    keeper: Child,
}

impl Reserved {
    /// Reserves `count` pages.
    ///
    /// # Errors
    /// The kernel has not that much memory in one piece, or we are not root.
    pub fn new(count: u64) -> Result<Self> {
        let script = format!(
            "before=$(cat {COUNT}); echo $((before + {count})) >{COUNT}; got=$(($(cat {COUNT}) - before)); echo $got; \
             read -r _; echo $(($(cat {COUNT}) - got)) >{COUNT}"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let keeper = command.spawn().context("the keeper of huge pages cannot be started")?;
        let mut reserved = Self { keeper };
        let got = reserved.told()?;
        ensure!(
            got >= count,
            "only {got} of {count} huge pages could be reserved ({COUNT}); run as root, free memory, or reboot"
        );
        Ok(reserved)
    }

    /// How many the keeper got.
    fn told(&mut self) -> Result<u64> {
        let output = self.keeper.stdout.as_mut().context("the keeper's output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        line.trim().parse().context("the keeper of huge pages said no number")
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // `wait` closes the pipe first.
        let _ = self.keeper.wait();
    }
}

/// Huge pages that nobody uses now, from `HugePages_Free` of `/proc/meminfo`.
///
/// # Errors
/// The kernel has none.
pub fn free() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    line.context("HugePages_Free")?.trim().parse().context("HugePages_Free")
}
