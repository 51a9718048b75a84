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
    fn there_is_a_limit_on_every_machine() {
        assert!(limit() > 0 && limit() < u64::MAX);
    }
}
