//! How much memory this node may use: the machine's, or less where its control group says so.

use std::path::{Path, PathBuf};

/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes that the node may use: the least of the machine's memory and the limits of its control group and those above it.
pub fn limit() -> u64 {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let files = limit_files(&groups, Path::new(GROUPS));
    let limits =
        files.iter().filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    limits.chain(machine()).min().unwrap_or(u64::MAX)
}

/// Bytes that this process has; 0 if the kernel does not say.
pub fn used() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0)
        << 10
}

/// The machine's memory.
fn machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// The files with the limits of these groups (cgroups(7)): of version 2, or of version 1's memory controller.
fn limit_files(groups: &str, root: &Path) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let (base, file) = match controllers {
            "" => (root.to_path_buf(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let ancestors = Path::new(group.trim_start_matches('/')).ancestors();
        Some(ancestors.map(|group| base.join(group).join(file)).collect::<Vec<_>>())
    };
    groups.lines().filter_map(of_line).flatten().collect()
}

/// Who may take how much of the node's memory. The parts are of what is left beyond [`OWN`], and make all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    /// What the node may use: `[node] memory`, if that is less than [`limit`].
    pub all: u64,
    rest: u64,
}

/// What a node takes without any rule or guest: code, its threads, the state file's cache and events. Half of the memory at most, where it has less
/// than twice that. Measured: 45 MiB, and 24 when caches fill.
const OWN: u64 = 72 << 20;

/// Of the rest for each entry that switches may hold. Chosen: half of that is what an entry takes, the journal's and the state file's copies counted,
/// so that entries take half of the rest.
const FOR_ENTRY: u64 = 1024;

impl Shares {
    /// Of the machine, its control group, and what `[node] memory` says.
    pub fn of(key: Option<u64>) -> Self {
        Self::within(limit().min(key.unwrap_or(u64::MAX)))
    }

    fn within(all: u64) -> Self {
        Self { all, rest: all - OWN.min(all / 2) }
    }

    /// Entries of all switches.
    pub fn entries(self) -> u64 {
        self.rest / FOR_ENTRY
    }

    /// Bytes that wait for somebody ([`crate::room`]).
    pub fn waiting(self) -> u64 {
        self.rest / 8
    }

    /// Bytes of long bodies of requests, at all sockets.
    pub fn bodies(self) -> usize {
        usize::try_from(self.rest / 8).unwrap_or(usize::MAX).min(serve::bodies::MOST)
    }

    /// Pages of guests that the node touches first: of one guest, and of all.
    pub fn guest_pages(self) -> [u32; 2] {
        let pages = self.rest / 4096;
        [16, 8].map(|of| u32::try_from(pages / of).unwrap_or(u32::MAX))
    }

    /// Bytes of page tables for what guests share.
    pub fn guest_tables(self) -> u64 {
        self.rest / 8
    }

    /// Says how much it is, and warns where that is little.
    pub fn tell(self) {
        let (mib, entries) = (self.all >> 20, self.entries());
        tracing::info!("memory: {mib} MiB, of which rules may take those of {entries} entries");
        if self.all < 2 * OWN {
            let remedy = "give the service more (MemoryMax=), or the node ([node] memory)";
            tracing::warn!(
                remedy,
                "memory: {mib} MiB are little: guests and rules are refused early"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_groups_limit_and_those_above_it_count_in_both_versions() {
        let root = Path::new("/r");
        let named = |groups: &str| -> Vec<String> {
            let files = limit_files(groups, root);
            files.iter().map(|file| file.display().to_string()).collect()
        };
        assert_eq!(
            named("0::/system.slice/suiro.service\n"),
            [
                "/r/system.slice/suiro.service/memory.max",
                "/r/system.slice/memory.max",
                "/r/memory.max",
            ]
        );
        assert_eq!(
            named("5:cpu,memory:/a\n3:pids:/a\n"),
            ["/r/memory/a/memory.limit_in_bytes", "/r/memory/memory.limit_in_bytes",]
        );
    }

    #[test]
    fn what_all_may_take_together_fits_what_the_node_may_use() {
        for mib in [16, 96, 144, 512, 4096, 1 << 20] {
            let shares = Shares::within(mib << 20);
            let entries = shares.entries() * FOR_ENTRY / 2;
            let pages = u64::from(shares.guest_pages()[1]) * 4096;
            let guests = pages + shares.guest_tables();
            let parts = entries + shares.waiting() + shares.bodies() as u64 + guests;
            assert!(OWN.min(shares.all / 2) + parts <= shares.all, "{shares:?}");
            assert!(shares.entries() > 0 && shares.guest_pages()[0] > 0);
        }
    }

    #[test]
    fn a_key_makes_it_less_and_never_more() {
        assert_eq!(Shares::of(Some(64 << 20)).all, 64 << 20);
        assert_eq!(Shares::of(Some(u64::MAX)), Shares::of(None));
    }

    #[test]
    fn there_is_a_limit_on_every_machine() {
        assert!(limit() > 0 && limit() < u64::MAX);
    }
}
