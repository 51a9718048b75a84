//! Who may read what a node keeps, and what its threads may do.

use acceptance::{Kind, Lab, privileged};
use rustix::fs::Mode;
use rustix::process::{Signal, umask};
use std::fs::{metadata, read_dir, read_to_string};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A node that was started with this umask, which a shell may have made 0.
fn started_with_umask(mask: Mode, lab: &mut Lab) -> u32 {
    let before = umask(mask);
    let pid = lab.start();
    umask(before);
    pid
}

fn mode(path: &Path) -> u32 {
    metadata(path).unwrap().permissions().mode() & 0o7777
}

/// What lies below a directory, with its mode.
fn below(directory: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        found.push((path.display().to_string(), mode(&path)));
        if path.is_dir() {
            found.extend(below(&path));
        }
    }
    found
}

/// Name, capabilities in force and kind of filter of each thread.
fn threads(pid: u32) -> Vec<(String, u64, u32)> {
    let key = |status: &str, key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap().trim().to_owned()
    };
    let tasks = read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let statuses = tasks.filter_map(|task| read_to_string(task.path().join("status")).ok());
    let thread = |status: String| {
        let capabilities = u64::from_str_radix(&key(&status, "CapEff:"), 16).unwrap();
        (key(&status, "Name:"), capabilities, key(&status, "Seccomp:").parse().unwrap())
    };
    statuses.map(thread).collect()
}

#[test]
fn what_a_node_keeps_is_its_owners_alone_whatever_the_umask_was() {
    if !privileged() {
        return;
    }
    let mut lab = Lab::new(&["g1"]);
    started_with_umask(Mode::empty(), &mut lab);
    lab.suiro(&["switch", "add", "sw0"]);
    lab.connect("sw0", "g1", Kind::Tap);
    let socket = lab.path("run/vm.sock");
    let port = ["port", "add", "sw0", "vm", "--type", "vhost-user", "--server"];
    lab.suiro(&[&port[..], &["--socket", socket.to_str().unwrap()]].concat());
    let state = lab.path("state");
    assert_eq!((mode(&state), mode(&lab.path("run"))), (0o700, 0o755));
    let open: Vec<_> = below(&state).into_iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert_eq!(open, []);
    let for_others: Vec<_> =
        below(&lab.path("run")).into_iter().filter(|(_, mode)| mode & 0o007 != 0).collect();
    assert_eq!(for_others, []);
    // A file of an earlier release, or of a copy, is closed when it is opened.
    lab.end(Signal::TERM);
    let file = state.join("state.redb");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    lab.start();
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn workers_and_all_threads_without_privileges_are_confined() {
    if !privileged() {
        return;
    }
    let mut lab = Lab::new(&[]);
    let pid = lab.start();
    lab.suiro(&["switch", "add", "sw0"]);
    let socket = lab.path("run/vm.sock");
    let port = ["port", "add", "sw0", "vm", "--type", "vhost-user", "--server"];
    lab.suiro(&[&port[..], &["--socket", socket.to_str().unwrap()]].concat());
    // As docs/explanation/threat-model lists them; the scout looks at other users' processes, and ends.
    let privileged = [
        "suiro-ports",
        "suiro-open",
        "suiro-steer",
        "suiro-offload",
        "suiro-guests",
        "suiro-scout",
    ];
    let threads = threads(pid);
    for (name, capabilities, filter) in &threads {
        if privileged.contains(&name.as_str()) {
            continue;
        }
        assert_eq!(*filter, 2, "{name} has a filter");
        assert!(*capabilities == 0 || name.starts_with("vu-"), "{name} has {capabilities:x}");
    }
    for role in ["suiro-worker-0", "vu-vm", "suiro-store", "suiro-events", "suiro-control"] {
        assert!(threads.iter().any(|(name, ..)| name == role), "{role} in {threads:?}");
    }
}
