//! Pages of 2 MiB for DPDK, reserved for one run and given back however it ends.
//!
//! A shell of its own process group reserves them, on top of what others have, and takes as many away again when our end of its pipe
//! closes: by drop, or because we were killed, be it before the shell could say how many it got. It waits for ten seconds at most until so many are idle, for a
//! kernel that is told to have fewer pages just when their user ends may keep them as surplus that nobody uses. Pages still in use after that go
//! back to the system when their user ends.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Bytes of one.
pub const BYTES: usize = 2 << 20;

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
        let keeper = shell(count).spawn().context("the keeper of huge pages cannot be started")?;
        let mut reserved = Self { keeper };
        let got = reserved.told()?;
        ensure!(
            got >= count,
            "only {got} of {count} huge pages could be reserved ({COUNT}); run as root, free memory, or reboot"
        );
        Ok(reserved)
    }

    /// Reserves pages for so many bytes.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn of(bytes: u64) -> Result<Self> {
        Self::new(bytes.div_ceil(BYTES as u64))
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

/// The keeper, to be started. Two may change the number at the same time, ours and another's: one after the other.
fn shell(count: u64) -> Command {
    let script = format!(
        "trap '' PIPE; exec 9<{COUNT}; \
         change() {{ flock 9; before=$(cat {COUNT}); echo $((before + $1)) >{COUNT}; got=$(($(cat {COUNT}) - before)); flock -u 9; }}; \
         idle() {{ awk '/^HugePages_Free:/ {{ free = $2 }} /^HugePages_Rsvd:/ {{ promised = $2 }} END {{ print free - promised }}' /proc/meminfo; }}; \
         change {count}; echo $got 2>/dev/null; read -r _; \
         tries=0; while [ $(idle) -lt $got ] && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done; change -$got"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    command
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::sys::{Memory, Pages};

    fn reserved() -> String {
        std::fs::read_to_string(COUNT).expect("huge pages")
    }

    /// One test, as there is one number.
    #[test]
    fn all_pages_go_back() {
        nobody_hears_how_many_there_are();
        several_at_a_time();
        some_are_in_use_when_we_end();
    }

    fn nobody_hears_how_many_there_are() {
        let before = reserved();
        let (_, nobody_reads) = std::io::pipe().expect("a pipe");
        let status = shell(2).stdin(Stdio::null()).stdout(nobody_reads).status();
        assert!(status.expect("a shell").success());
        assert_eq!(reserved(), before);
    }

    /// The keeper waits for who uses them: it has not taken any away by the time that they are idle.
    fn some_are_in_use_when_we_end() {
        let before = reserved();
        let mut kept = Reserved::new(4).expect("huge pages");
        let used = Memory::new(4 * BYTES, Pages::Huge).expect("memory on them");
        drop(kept.keeper.stdin.take());
        drop(used);
        drop(kept);
        assert_eq!(reserved(), before);
    }

    fn several_at_a_time() {
        let before = reserved();
        let mut keepers: Vec<_> = (0..8).map(|_| Reserved::new(1).expect("a huge page")).collect();
        // All pipes close before any is waited for.
        keepers.iter_mut().for_each(|kept| drop(kept.keeper.stdin.take()));
        drop(keepers);
        assert_eq!(reserved(), before);
    }
}
