//! What a lab uses: processor time and memory of its nodes, its controller and all that those started, as proc(5) tells it.

use super::layout::Layout;
use super::running::inside;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// Ticks a second in `/proc`: `USER_HZ`, which Linux's own interface has fixed on the processors that we run on.
const TICKS: u64 = 100;

/// What was used.
#[derive(Clone, Copy, Default)]
pub struct Used {
    /// Processor time so far, that of ended children and of typed commands included.
    pub processor: Duration,
    /// KiB in memory now; of pages that several processes share, each has its share.
    pub memory_kib: u64,
}

/// A process: its parent, and ticks of it and of the children that it has waited for.
struct Process {
    parent: u32,
    ticks: u64,
}

impl Used {
    /// By that lab, and by the commands that this process ran.
    pub fn of(lab: &Layout) -> Self {
        let all = processes();
        let mut ours: BTreeSet<u32> =
            lab.hosts().flat_map(|host| inside(&host.namespace).unwrap_or_default()).collect();
        loop {
            let is_new =
                |(pid, it): &(&u32, &Process)| ours.contains(&it.parent) && !ours.contains(pid);
            let more: Vec<u32> = all.iter().filter(is_new).map(|(pid, _)| *pid).collect();
            if more.is_empty() {
                break;
            }
            ours.extend(more);
        }
        let ticks: u64 = ours.iter().filter_map(|pid| Some(all.get(pid)?.ticks)).sum();
        Self {
            processor: time(ticks) + typed(),
            memory_kib: ours.iter().filter_map(|&pid| memory_kib(pid)).sum(),
        }
    }
}

/// Processor time of this process, and of the commands that it ran and that have ended.
pub fn typed() -> Duration {
    time(read(std::process::id()).map_or(0, |own| own.ticks))
}

fn time(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1000 / TICKS)
}

fn processes() -> BTreeMap<u32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, read(pid)?))).collect()
}

/// Fields 4 and 14 to 17 of its `stat`.
fn read(pid: u32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second is its name in brackets, which may have blanks.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ticks = (14..=17).filter_map(number).sum();
    Some(Process { parent: number(4)? as u32, ticks })
}

/// `Pss` of its `smaps_rollup`.
fn memory_kib(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_whitespace().next()?.parse().ok()
}
