//! # Virtual machines of this host
//!
//! **Question answered**: which machines run here, which cores are their virtual CPUs pinned to, and which threads work for them?
//!
//! From `/proc` (proc(5)), by what QEMU and the kernel call their threads:
//!
//! | thread | name |
//! |---|---|
//! | QEMU's process | `qemu-system-…`, `qemu-kvm` (Red Hat), `kvm` (Proxmox) |
//! | virtual CPU *n* | `CPU n/KVM`, `CPU n/TCG`: with `-name …,debug-threads=on`, which libvirt sets |
//! | virtual CPU, unnamed | has spent time as a guest (field 43 of `stat`): KVM, and not on every kernel |
//! | vhost worker | `vhost-PID` of its owner: a thread of that process since Linux 6.4, before that a kernel thread |
//!
//! Of a machine whose virtual CPUs cannot be told, all threads that QEMU gave no name count as such: right for `taskset -c 2 qemu-system-x86_64 …`.
//!
//! *Pinned* is a virtual CPU that may not run everywhere: `Cpus_allowed_list` of `status` lacks a core that is online. The kernel keeps that list within
//! the cgroup's cpuset, so `taskset`, libvirt's `<vcpupin>` and a cpuset of the machine's or of the whole slice all show there.
//!
//! libvirt's machines are told by their cgroup, `machine-qemu…` or a directory `libvirt`.
//!
//! What this cannot know: who started a process. Anyone who can start one here can name it like a machine, pin it, and so have a core
//! avoided; he could as well keep that core busy.

mod process;
mod qemu;

use place::{CoreId, Stage};
use process::{Process, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use steer::SeenVm;

/// The machines that run, by process id. `online` are the host's cores, by rising number.
///
/// # Errors
/// There is no `/proc`. A process that ends while we look, or that we may not look at, is left out.
pub(crate) fn running(proc: &Path, online: &[CoreId]) -> io::Result<Vec<SeenVm>> {
    let mut machines = Vec::new();
    let mut kernel_workers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in process::all(proc)? {
        let Some(name) = process.name() else { continue };
        if qemu::is_program(&name) {
            machines.extend(machine(&process, online));
        } else if let Some(owner) = vhost_owner(&name) {
            kernel_workers.entry(owner).or_default().push(process.pid);
        }
    }
    machines.sort_by_key(|machine| machine.pid);
    for machine in &mut machines {
        let workers = kernel_workers.remove(&machine.pid).unwrap_or_default();
        machine.threads.extend(workers.into_iter().map(|tid| (tid, Stage::Vhost)));
    }
    Ok(with_names_of_their_own(machines))
}

fn machine(process: &Process, online: &[CoreId]) -> Option<SeenVm> {
    let (program, arguments) = (process.name()?, process.arguments()?);
    let threads = process.threads()?;
    let (workers, others): (Vec<_>, Vec<_>) =
        threads.iter().partition(|thread| vhost_owner(&thread.name) == Some(process.pid));
    let vcpus = vcpus(&others, &program);
    let cores = vcpus.iter().flat_map(|thread| pinned_to(&thread.allowed, online));
    let cores: BTreeSet<CoreId> = cores.collect();
    let guest = vcpus.iter().map(|thread| (thread.tid, Stage::Guest));
    let vhost = workers.iter().map(|thread| (thread.tid, Stage::Vhost));
    Some(SeenVm {
        name: qemu::name(&arguments).unwrap_or_else(|| format!("qemu-{}", process.pid)),
        pid: process.pid,
        source: if process.is_of_libvirt() { "libvirt" } else { "qemu" },
        cores: cores.into_iter().collect(),
        threads: guest.chain(vhost).collect(),
    })
}

/// The virtual CPUs among a machine's threads: by name, else by what they did, else all without a name of their own.
fn vcpus<'a>(threads: &[&'a Thread], program: &str) -> Vec<&'a Thread> {
    let is_vcpu: [&dyn Fn(&Thread) -> bool; 3] =
        [&|thread| qemu::is_vcpu(&thread.name), &|thread| thread.guest_ticks > 0, &|thread| {
            thread.name == program
        }];
    let those = |is_one: &dyn Fn(&Thread) -> bool| -> Vec<&'a Thread> {
        threads.iter().copied().filter(|thread| is_one(thread)).collect()
    };
    is_vcpu.into_iter().map(those).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The process that a vhost worker serves, by the worker's name.
fn vhost_owner(thread: &str) -> Option<u32> {
    thread.strip_prefix("vhost-")?.parse().ok()
}

/// The cores that a thread is confined to; none if it may run on every core there is.
fn pinned_to(allowed: &[CoreId], online: &[CoreId]) -> Vec<CoreId> {
    let here: Vec<_> = online.iter().copied().filter(|core| allowed.contains(core)).collect();
    if here.len() == online.len() { Vec::new() } else { here }
}

/// Two machines may call themselves the same; the later one gets its process's number too.
fn with_names_of_their_own(mut machines: Vec<SeenVm>) -> Vec<SeenVm> {
    let mut taken = BTreeSet::new();
    for machine in &mut machines {
        if !taken.insert(machine.name.clone()) {
            machine.name = format!("{}@{}", machine.name, machine.pid);
            taken.insert(machine.name.clone());
        }
    }
    machines
}

#[cfg(test)]
mod tests;
