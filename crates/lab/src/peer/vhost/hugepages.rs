//! Pages of 2 MiB for DPDK, reserved for one run and given back.

use anyhow::{Context, Result, bail};

const COUNT: &str = "/proc/sys/vm/nr_hugepages";

/// A reservation; dropping it restores the count found.
pub struct Reserved {
    before: u64,
}

impl Reserved {
    /// Makes at least `count` pages available.
    ///
    /// # Errors
    /// The kernel has not that much memory in one piece, or we are not root.
    pub fn new(count: u64) -> Result<Self> {
        let before = read()?;
        let reserved = Self { before };
        if before >= count {
            return Ok(reserved);
        }
        write(count)?;
        let now = read()?;
        if now < count {
            bail!("only {now} of {count} huge pages could be reserved; free memory, or reboot")
        }
        Ok(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let _ = write(self.before);
    }
}

fn read() -> Result<u64> {
    let text = std::fs::read_to_string(COUNT).context(COUNT)?;
    text.trim().parse().context(COUNT)
}

fn write(count: u64) -> Result<()> {
    std::fs::write(COUNT, count.to_string())
        .with_context(|| format!("{COUNT}: reserving huge pages failed; run as root"))
}
