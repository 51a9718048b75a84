//! Privileges: one thread keeps the few that adding ports needs, every other thread has none.
//!
//! Linux holds capabilities per thread, and a thread begins with those of its maker. So: the main thread reduces itself to [`NEEDED`],
//! starts the ports' thread, drops the rest, and only then starts workers, runtime and store.

use caps::{CapSet, Capability, CapsHashSet};
use rustix::fs::Mode;

/// What the ports' thread keeps, and why.
const NEEDED: &[(Capability, &str)] = &[
    (Capability::CAP_NET_ADMIN, "make TAPs, attach XDP programs, set links up"),
    (Capability::CAP_NET_RAW, "open packet and AF_XDP sockets"),
    (Capability::CAP_SYS_ADMIN, "enter network namespaces"),
    (Capability::CAP_SYS_PTRACE, "open /proc/PID/ns/net of a guest that runs as another user"),
    (Capability::CAP_DAC_OVERRIDE, "open vhost-user sockets that belong to a guest's user"),
    (Capability::CAP_CHOWN, "give a vhost-user socket to a guest's user"),
    (Capability::CAP_FOWNER, "set the mode of a vhost-user socket that a guest's user owns"),
    (Capability::CAP_BPF, "load XDP programs and maps"),
    (Capability::CAP_PERFMON, "load XDP programs with pointer arithmetic"),
    (Capability::CAP_IPC_LOCK, "lock AF_XDP memory beyond the limit"),
    (Capability::CAP_SYS_NICE, "steer in time when every core is busy"),
];

/// What the guests' thread keeps, and why. Its guests get three of them, over their own networks ([`guest::holder`]).
const NEEDED_BY_GUESTS: &[(Capability, &str)] = &[
    (Capability::CAP_SYS_ADMIN, "make namespaces and mounts"),
    (Capability::CAP_NET_ADMIN, "configure guests' interfaces"),
    (Capability::CAP_NET_RAW, "let guests ping"),
    (Capability::CAP_NET_BIND_SERVICE, "let guests serve ports below 1024"),
    (Capability::CAP_SETUID, "run guests as nobody"),
    (Capability::CAP_SETGID, "run guests as nobody"),
    (Capability::CAP_SETPCAP, "take privileges from guests for ever"),
    (Capability::CAP_KILL, "end guests"),
    (Capability::CAP_SYS_PTRACE, "enter guests"),
    (Capability::CAP_SYS_CHROOT, "enter guests' mounts"),
    (Capability::CAP_DAC_OVERRIDE, "write control groups"),
];

/// The system refused to drop something: nothing is kept that was not there, so this is for the log.
#[derive(Debug, thiserror::Error)]
#[error("privileges: {step} failed")]
pub struct PrivilegeError {
    step: &'static str,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

fn failed<E: std::error::Error + Send + Sync + 'static>(
    step: &'static str,
) -> impl FnOnce(E) -> PrivilegeError {
    move |source| PrivilegeError { step, source: Box::new(source) }
}

/// Keeps, on this thread and on those it starts, only what ports need, and forbids any later gain (`no_new_privs`).
///
/// # Errors
/// The system refuses; what was dropped so far stays dropped.
pub fn keep_what_ports_need() -> Result<(), PrivilegeError> {
    rustix::thread::set_no_new_privs(true).map_err(failed("no_new_privs"))?;
    let held = caps::read(None, CapSet::Permitted).map_err(failed("reading them"))?;
    let kept: CapsHashSet =
        NEEDED.iter().map(|&(cap, _)| cap).filter(|cap| held.contains(cap)).collect();
    limit_bounding_set(&held, &kept)?;
    set(&kept)
}

/// Keeps, on this thread and what it starts, only what guests need, also where that is not root's.
///
/// # Errors
/// The system refuses; what was dropped so far stays dropped.
pub fn keep_what_guests_need() -> Result<(), PrivilegeError> {
    rustix::thread::set_no_new_privs(true).map_err(failed("no_new_privs"))?;
    let held = caps::read(None, CapSet::Permitted).map_err(failed("reading them"))?;
    let needed = NEEDED_BY_GUESTS.iter().map(|&(cap, _)| cap);
    let kept: CapsHashSet = needed.filter(|cap| held.contains(cap)).collect();
    limit_bounding_set(&held, &kept)?;
    set(&kept)?;
    caps::set(None, CapSet::Inheritable, &kept).map_err(failed("handing them down"))?;
    caps::set(None, CapSet::Ambient, &kept).map_err(failed("handing them down"))
}

/// Has what this process makes from now on be its owner's alone, whatever it was started with: state tells all tenants' rules. What others may
/// open says so itself.
pub fn keep_files_private() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Drops everything, on this thread and on those it starts from now on.
///
/// # Errors
/// The system refuses.
pub fn drop_all() -> Result<(), PrivilegeError> {
    set(&CapsHashSet::new())
}

/// Whether a capability that [`NEEDED`] names is missing, with what it is for: for one warning at the start.
pub fn missing() -> Vec<(Capability, &'static str)> {
    let held = caps::read(None, CapSet::Effective).unwrap_or_default();
    NEEDED.iter().copied().filter(|(cap, _)| !held.contains(cap)).collect()
}

/// Whether there can be no port but those between switches and to guests' sockets.
pub fn has_no_interfaces() -> bool {
    missing().iter().any(|(cap, _)| *cap == Capability::CAP_NET_ADMIN)
}

fn limit_bounding_set(held: &CapsHashSet, kept: &CapsHashSet) -> Result<(), PrivilegeError> {
    if !held.contains(&Capability::CAP_SETPCAP) {
        return Ok(());
    }
    let bounding =
        caps::read(None, CapSet::Bounding).map_err(failed("reading the bounding set"))?;
    for cap in bounding.difference(kept) {
        caps::drop(None, CapSet::Bounding, *cap).map_err(failed("reducing the bounding set"))?;
    }
    Ok(())
}

fn set(kept: &CapsHashSet) -> Result<(), PrivilegeError> {
    caps::clear(None, CapSet::Ambient).map_err(failed("clearing the ambient set"))?;
    caps::clear(None, CapSet::Inheritable).map_err(failed("clearing the inheritable set"))?;
    caps::set(None, CapSet::Effective, kept).map_err(failed("reducing the effective set"))?;
    caps::set(None, CapSet::Permitted, kept).map_err(failed("reducing the permitted set"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted() -> usize {
        caps::read(None, CapSet::Permitted).unwrap().len()
    }

    #[test]
    fn a_thread_that_dropped_all_has_none_and_its_children_neither() {
        let outside = permitted();
        std::thread::spawn(|| {
            keep_what_ports_need().unwrap();
            assert!(permitted() <= NEEDED.len());
            drop_all().unwrap();
            assert_eq!(permitted(), 0);
            std::thread::spawn(|| assert_eq!(permitted(), 0)).join().unwrap();
        })
        .join()
        .unwrap();
        assert_eq!(permitted(), outside, "the thread that started it keeps its own");
    }
}
