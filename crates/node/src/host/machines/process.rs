//! Processes and their threads, as `/proc` tells of them.
//!
//! A process may end between any two reads. Everything about one is therefore an `Option`: gone is gone.

use crate::host::cores::parse_list;
use place::CoreId;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// `guest_time`, counted from the field behind the name, which is the third (proc(5)).
const GUEST_TIME: usize = 43 - 3;

/// A process.
pub(super) struct Process {
    pub(super) pid: u32,
    directory: PathBuf,
}

/// One of its threads.
pub(super) struct Thread {
    pub(super) tid: u32,
    pub(super) name: String,
    /// Cores that it may run on, online or not.
    pub(super) allowed: Vec<CoreId>,
    /// Clock ticks that it spent as a guest's virtual CPU.
    pub(super) guest_ticks: u64,
}

/// All that there are now, in no order.
pub(super) fn all(proc: &Path) -> io::Result<impl Iterator<Item = Process> + use<>> {
    let process = |(pid, directory)| Process { pid, directory };
    Ok(numbered(proc)?.map(process))
}

/// The directories whose names are numbers.
fn numbered(directory: &Path) -> io::Result<impl Iterator<Item = (u32, PathBuf)> + use<>> {
    let number = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))
    };
    Ok(fs::read_dir(directory)?.filter_map(number))
}

/// A file of names that others choose: whatever bytes they like.
fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
}

impl Process {
    /// What it calls itself, at most 15 bytes of it.
    pub(super) fn name(&self) -> Option<String> {
        Some(text(&self.directory.join("comm"))?.trim_end_matches('\n').to_owned())
    }

    /// What it was started with; a kernel thread has nothing and is `None`.
    pub(super) fn arguments(&self) -> Option<Vec<String>> {
        let line = text(&self.directory.join("cmdline"))?;
        let arguments: Vec<String> = line.split_terminator('\0').map(str::to_owned).collect();
        (!arguments.is_empty()).then_some(arguments)
    }

    /// By rising number.
    pub(super) fn threads(&self) -> Option<Vec<Thread>> {
        let tasks = numbered(&self.directory.join("task")).ok()?;
        let mut threads: Vec<_> =
            tasks.filter_map(|(tid, directory)| Thread::read(tid, &directory)).collect();
        threads.sort_by_key(|thread| thread.tid);
        Some(threads)
    }

    /// Whether its control group is one that libvirt or systemd-machined makes for libvirt.
    pub(super) fn is_of_libvirt(&self) -> bool {
        let groups = text(&self.directory.join("cgroup")).unwrap_or_default();
        let is_libvirts = |part: &str| {
            part == "libvirt" || part.starts_with("machine-qemu") || part.ends_with(".libvirt-qemu")
        };
        groups.lines().any(|line| line.split('/').any(is_libvirts))
    }
}

impl Thread {
    fn read(tid: u32, directory: &Path) -> Option<Self> {
        let status = text(&directory.join("status"))?;
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Some(Self {
            tid,
            name: field("Name")?.trim().to_owned(),
            allowed: parse_list(field("Cpus_allowed_list")?).ok()?,
            guest_ticks: text(&directory.join("stat"))
                .as_deref()
                .and_then(guest_ticks)
                .unwrap_or(0),
        })
    }
}

/// The name stands in parentheses and may contain anything, also parentheses and spaces.
fn guest_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(GUEST_TIME)?.parse().ok()
}
