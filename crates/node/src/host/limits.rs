//! Open files: queues, sockets and sessions of hundreds of switches are far above the usual soft limit of 1024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many files this process may open.
pub fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the soft limit of open files to the hard one, and the hard one to the kernel's bound where privileges allow. Returns the limit.
pub fn raise_open_files() -> u64 {
    let now = getrlimit(Resource::Nofile);
    let bound = std::fs::read_to_string("/proc/sys/fs/nr_open")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let wanted = [bound, now.maximum].into_iter().flatten();
    for limit in wanted {
        let raised =
            Rlimit { current: Some(limit), maximum: Some(now.maximum.unwrap_or(0).max(limit)) };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            return limit;
        }
    }
    open_files()
}
