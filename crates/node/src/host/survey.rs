//! What the configuration must know of the machine.

use crate::config::Host;
use rustix::thread::{CpuSet, sched_getaffinity};

/// Looks at the machine.
pub fn survey() -> Host {
    Host { cores: usable_cores(), node_id: node_id(), copied_from: None }
}

fn usable_cores() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect(),
        Err(_) => vec![0],
    }
}

/// The machine's id (machine-id(5)), or its name where there is none, as in many containers: what ids were derived from before a state
/// directory had an [`Identity`](super::Identity).
fn node_id() -> String {
    let read = |path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let known = |text: &String| !text.is_empty() && text != "uninitialized";
    let found = read("/etc/machine-id").filter(known);
    found
        .or_else(|| read("/proc/sys/kernel/hostname").filter(known))
        .unwrap_or_else(|| "localhost".into())
}
