//! The holder: the process between node and command. It outlives the node, and its end is the command's.
//!
//! Two stages, each the node's own program again ([`WORD`]): the first joins the control groups, enters the network namespace, leaves all
//! others and builds the root. The second is the first process of the new process namespace: it mounts `/proc`, becomes nobody with
//! three capabilities over its own network, starts the command, buries orphans, and ends as the command does.
//!
//! To run something in a guest that runs, the first stage enters that guest's namespaces instead.

use crate::order::Order;
use crate::root;
use crate::sys::{Namespaces, leave};
use caps::{CapSet, Capability, CapsHashSet};
use rustix::fs::Mode;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{
    Gid, Pid, PidfdFlags, Signal, Uid, WaitOptions, ioctl_tiocsctty, pidfd_open,
    set_parent_process_death_signal, setsid, umask,
};
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

/// The program's first argument, by which it becomes a holder.
pub const WORD: &str = "guest-holder";
/// The second stage's second argument.
const SECOND: &str = "second";
/// What the second stage is to do.
const TASK: &str = "SUIRO_TASK";
/// `nobody` (Debian's and the kernel's overflow id).
const NOBODY: u32 = 65534;
/// What a command may do in its own network namespace; it has no other.
const KEPT: [Capability; 3] =
    [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_NET_BIND_SERVICE];
/// As shells have it: a command that cannot be started.
const CANNOT: u8 = 126;
const NOT_FOUND: u8 = 127;

#[derive(Serialize, Deserialize)]
struct Task {
    command: Vec<String>,
    name: String,
    is_first: bool,
    terminal: bool,
    beside: bool,
}

/// Runs as a holder if these arguments (without the program's name) say so: the status to end with.
pub fn run(mut arguments: impl Iterator<Item = String>) -> Option<u8> {
    if arguments.next()? != WORD {
        return None;
    }
    let outcome = match arguments.next().as_deref() {
        Some(SECOND) => second(),
        Some(order) => first(&PathBuf::from(order)),
        None => Err(io::Error::other("it is started by a node")),
    };
    Some(outcome.unwrap_or_else(|error| {
        eprintln!("suiro: guest: {error}");
        CANNOT
    }))
}

fn first(file: &PathBuf) -> io::Result<u8> {
    // The node's own files are private; nobody is to read the guest's.
    umask(Mode::WGRP | Mode::WOTH);
    let order: Order = serde_json::from_slice(&fs::read(file)?)?;
    let _ = fs::remove_file(file);
    for group in &order.groups {
        fs::write(group, "0").map_err(|error| said(error, "joining its control group"))?;
    }
    match order.inside {
        Some(first) => enter(first).map_err(|error| said(error, "entering the guest"))?,
        None => {
            let netns = File::open(&order.netns)?;
            move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| said(error.into(), "entering its network"))?;
            leave(Namespaces::Rest)
                .map_err(|error| said(error, "leaving the host's namespaces"))?;
            let with_cause = |error: crate::GuestError| io::Error::other(api::chain(&error));
            root::enter(&order).map_err(with_cause)?;
        }
    }
    let is_first = order.inside.is_none();
    let Order { command, name, terminal, beside, .. } = order;
    let task = Task { command, name, is_first, terminal, beside };
    let mut command = Command::new("/proc/self/exe");
    command.args([WORD, SECOND]).env_clear().env(TASK, serde_json::to_string(&task)?);
    let status = command.status().map_err(|error| said(error, "starting its first process"))?;
    Ok(code(status))
}

/// Into all namespaces of a process; the next child is in its process namespace.
fn enter(process: u32) -> io::Result<()> {
    let pid = Pid::from_raw(process as i32).ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let all = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION;
    rustix::thread::move_into_thread_name_spaces(process.as_fd(), all)?;
    std::env::set_current_dir("/")
}

fn second() -> io::Result<u8> {
    let task: Task = serde_json::from_str(&std::env::var(TASK).map_err(io::Error::other)?)?;
    if task.is_first {
        unmount("/proc", UnmountFlags::DETACH)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", "/proc", "proc", flags, None)?;
        // A kernel without host names of namespaces has guests of the host's name.
        let _ = fs::write("/proc/sys/kernel/hostname", &task.name);
    }
    if task.terminal {
        setsid().map_err(|error| said(error.into(), "beginning a session"))?;
        ioctl_tiocsctty(io::stdin()).map_err(|error| said(error.into(), "taking its terminal"))?;
    }
    become_nobody().map_err(|error| said(error, "giving privileges up"))?;
    if task.beside {
        // Behind the change of user, which takes this back (prctl(2)).
        set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    let [program, arguments @ ..] = &task.command[..] else {
        return Err(io::Error::other("its command is empty"));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/tmp").env_clear();
    for (name, value) in [("PATH", PATH), ("HOME", "/tmp"), ("TERM", "xterm"), ("LANG", "C.UTF-8")]
    {
        command.env(name, value);
    }
    let failed = |error: io::Error| {
        eprintln!("suiro: guest: {program}: {error}");
        if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT }
    };
    if !task.is_first {
        return Ok(failed(command.exec()));
    }
    match command.spawn() {
        Ok(child) => bury_until(child.id()),
        Err(error) => Ok(failed(error)),
    }
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Waits for the command, and for whoever loses his parent meanwhile.
fn bury_until(command: u32) -> io::Result<u8> {
    loop {
        let waited = rustix::process::wait(WaitOptions::empty());
        match waited {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == command => {
                return Ok(code(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// As shells have it: 128 and the signal.
fn code(status: ExitStatus) -> u8 {
    status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255) as u8
}

/// Nobody, with what a network of one's own needs, for ever.
fn become_nobody() -> io::Result<()> {
    let kept: CapsHashSet = KEPT.into_iter().collect();
    let refused = |error: caps::errors::CapsError| io::Error::other(error.to_string());
    rustix::thread::set_no_new_privs(true)?;
    for capability in caps::read(None, CapSet::Bounding).map_err(refused)?.difference(&kept) {
        caps::drop(None, CapSet::Bounding, *capability).map_err(refused)?;
    }
    rustix::thread::set_keep_capabilities(true)?;
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)?;
    // What is in effect first: that of who is not root outlives the change of user, and must not be more than what is permitted.
    for set in [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable, CapSet::Ambient] {
        let held = caps::read(None, CapSet::Permitted).map_err(refused)?;
        let kept = kept.intersection(&held).copied().collect();
        caps::set(None, set, &kept).map_err(refused)?;
    }
    Ok(())
}

fn said(error: io::Error, step: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{step}: {error}"))
}
