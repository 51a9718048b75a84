//! Pages of 2 MiB for DPDK, reserved for one run and given back however it ends.
//!
//! A shell of its own process group does the giving back when our end of its pipe closes: by drop, or because we were killed.
//! Pages still in use then go back to the system when their user ends (they become surplus).

use anyhow::{Context, Result, bail};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

const COUNT: &str = "/proc/sys/vm/nr_hugepages";

/// A reservation; dropping it restores the count found.
pub struct Reserved {
    keeper: Child,
}

impl Reserved {
    /// Makes at least `count` pages available.
    ///
    /// # Errors
    /// The kernel has not that much memory in one piece, or we are not root.
    pub fn new(count: u64) -> Result<Self> {
        let before = read()?;
        let reserved = Self::promise_to_restore(before)?;
        if before >= count {
            return Ok(reserved);
        }
        std::fs::write(COUNT, count.to_string())
            .with_context(|| format!("{COUNT}: reserving huge pages failed; run as root"))?;
        let now = read()?;
        if now < count {
            bail!("only {now} of {count} huge pages could be reserved; free memory, or reboot")
        }
        Ok(reserved)
    }

    fn promise_to_restore(before: u64) -> Result<Self> {
        let script = format!("read -r _; echo {before} >{COUNT}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::piped()).process_group(0);
        let keeper = command.spawn().context("the keeper of huge pages cannot be started")?;
        Ok(Self { keeper })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // `wait` closes the pipe first.
        let _ = self.keeper.wait();
    }
}

fn read() -> Result<u64> {
    let text = std::fs::read_to_string(COUNT).context(COUNT)?;
    text.trim().parse().context(COUNT)
}
