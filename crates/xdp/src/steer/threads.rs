//! The kernel's threads behind the queues.
//!
//! What a core receives, its soft interrupt processes before any thread; what is sent to it waits for the queue's thread, which the kernel makes an
//! ordinary one. Among guests' threads that never rest it would get its turn with them, milliseconds later, and the queue would be full by
//! then. So it goes before ordinary threads, but not before all: beside one that never rests it leaves about a tenth of the core, as a soft
//! interrupt that is flooded leaves its core to others in the end.

use place::CoreId;
use rustix::process::{Pid, setpriority_process};
use std::fs;

/// Weighs nine times an ordinary thread (`sched(7)`, "The nice value": 1.25 for each step).
const NICE: i32 = -10;

/// Lets the thread of this core's queue in the map of this id go first. Without the privilege, or where the kernel's threads are not to be seen (in a container's
/// own PID namespace), it stays as it is.
pub(super) fn favour(queues: u32, core: CoreId) {
    let name = format!("cpumap/{}/map:{queues}", core.0);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_its = |entry: &fs::DirEntry| {
        let comm = fs::read_to_string(entry.path().join("comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    };
    let pid = processes.filter(is_its).find_map(|entry| {
        entry.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?))
    });
    if let Some(pid) = pid {
        let _ = setpriority_process(Some(pid), NICE);
    }
}
