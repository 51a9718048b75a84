//! How often the host switches from one thread to another.

use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Context switches of the whole host since its start (proc(5): `ctxt` in `/proc/stat`).
///
/// # Errors
/// There is no `/proc`.
pub fn of_host() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let value = text.lines().find_map(|line| line.strip_prefix("ctxt "));
    value.context("/proc/stat: no ctxt")?.trim().parse().context("/proc/stat: ctxt")
}

/// Context switches of each thread of a process, voluntary or not, since the thread's start.
#[derive(Clone, Debug, Default)]
pub struct Switches(BTreeMap<String, u64>);

impl Switches {
    /// Those since `before`, by threads that still live; threads that are new count from their start.
    pub fn since(&self, before: &Self) -> u64 {
        let of = |(thread, count): (&String, &u64)| {
            count.saturating_sub(before.0.get(thread).copied().unwrap_or(0))
        };
        self.0.iter().map(of).sum()
    }
}

/// Reads them from `/proc/<pid>/task/*/status` (proc(5)).
///
/// # Errors
/// The process has ended.
pub fn of_process(pid: u32) -> Result<Switches> {
    let path = format!("/proc/{pid}/task");
    let mut switches = Switches::default();
    for thread in std::fs::read_dir(&path).with_context(|| path.clone())? {
        let name = thread?.file_name().to_string_lossy().into_owned();
        // A thread may end between the listing and the reading.
        let status = std::fs::read_to_string(format!("{path}/{name}/status")).unwrap_or_default();
        switches.0.insert(name, in_status(&status));
    }
    Ok(switches)
}

/// Context switches of the calling thread, voluntary or not, since its start.
///
/// # Errors
/// There is no `/proc`.
pub fn of_this_thread() -> Result<u64> {
    const PATH: &str = "/proc/thread-self/status";
    Ok(in_status(&std::fs::read_to_string(PATH).context(PATH)?))
}

/// Both lines of a thread's status: "voluntary_…" and "nonvoluntary_…".
fn in_status(status: &str) -> u64 {
    let counts = status.lines().filter(|line| line.contains("voluntary_ctxt_switches:"));
    counts.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_is_counted() {
        let before = of_process(std::process::id()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(std::thread::yield_now).join().unwrap();
        });
        let host = of_host().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = of_process(std::process::id()).unwrap();
        assert!(after.since(&before) >= 1);
        assert!(of_this_thread().unwrap() >= 1, "this thread has just slept");
        assert!(of_host().unwrap() > host);
    }
}
