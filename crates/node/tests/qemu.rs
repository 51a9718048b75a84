//! Is a machine that Debian's QEMU runs found as it is? QEMU itself is asked which of its threads are virtual CPUs.

use node::host::look_around;
use place::{CoreId, Stage};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use steer::SeenVm;

/// A machine with two virtual CPUs, stopped before its first instruction.
struct Qemu {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Qemu {
    fn start(name: &str) -> Self {
        let mut command = Command::new("qemu-system-x86_64");
        command
            .args("-nodefaults -display none -S -machine q35 -accel tcg,thread=multi".split(' '));
        command.args("-smp 2 -m 16 -qmp stdio -name".split(' ')).arg(name);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().expect("QEMU starts (Debian: qemu-system-x86; run 'make setup')");
        let to = child.stdin.take().expect("it is a pipe");
        let from = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut qemu = Self { child, to, from };
        qemu.ask("qmp_capabilities");
        qemu
    }

    /// Sends a command and gives what it returns; answered from QEMU's main loop, so when the machine is complete.
    fn ask(&mut self, command: &str) -> serde_json::Value {
        writeln!(self.to, r#"{{"execute": "{command}"}}"#).expect("QEMU listens");
        loop {
            let mut line = String::new();
            let read = self.from.read_line(&mut line).expect("QEMU answers");
            assert_ne!(read, 0, "QEMU has ended");
            let mut said: serde_json::Value = serde_json::from_str(&line).expect("QEMU says JSON");
            assert!(said.get("error").is_none(), "{line}");
            if let Some(returned) = said.get_mut("return") {
                return returned.take();
            }
        }
    }

    fn vcpu_threads(&mut self) -> Vec<u32> {
        let cpus = self.ask("query-cpus-fast");
        let thread = |cpu: &serde_json::Value| cpu["thread-id"].as_u64().expect("a number") as u32;
        cpus.as_array().expect("a list").iter().map(thread).collect()
    }

    fn seen(&self) -> SeenVm {
        let vms = look_around().vms;
        vms.into_iter().find(|vm| vm.pid == self.child.id()).expect("the machine is found")
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pin(thread: u32, core: CoreId) {
    let mut cores = CpuSet::new();
    cores.set(core.0.into());
    let thread = Pid::from_raw(thread as i32).expect("not 0");
    sched_setaffinity(Some(thread), &cores).expect("a thread of ours may be pinned");
}

#[test]
fn a_machine_is_found_with_its_virtual_cpus_and_where_they_are_pinned() {
    let name = format!("suiro-test-{}", std::process::id());
    let mut qemu = Qemu::start(&format!("guest={name},debug-threads=on"));
    let threads = qemu.vcpu_threads();
    let seen = qemu.seen();
    assert_eq!((seen.name, seen.source), (name, "qemu"));
    let guest: Vec<_> = threads.iter().map(|&thread| (thread, Stage::Guest)).collect();
    assert_eq!(seen.threads, guest);

    let cores: Vec<_> = look_around().cores.iter().map(place::Core::id).collect();
    let [.., last] = cores[..] else { panic!("no cores") };
    if cores.len() == 1 {
        eprintln!("skipped: with one core, nothing shows whether a machine is pinned to it");
        return;
    }
    // On a host that confines us too, every machine of ours is confined.
    assert_eq!(seen.cores, []);
    pin(threads[1], last);
    assert_eq!(qemu.seen().cores, [last]);
}

#[test]
fn a_machine_without_names_of_threads_is_pinned_where_its_process_is() {
    let mut qemu = Qemu::start("suiro-test-plain");
    let cores: Vec<_> = look_around().cores.iter().map(place::Core::id).collect();
    let seen = qemu.seen();
    let guest = |vm: &SeenVm, tid| vm.threads.contains(&(tid, Stage::Guest));
    assert!(qemu.vcpu_threads().into_iter().all(|tid| guest(&seen, tid)), "{seen:?}");
    if let [first, _, ..] = cores[..] {
        seen.threads.iter().for_each(|&(tid, _)| pin(tid, first));
        assert_eq!(qemu.seen().cores, [first]);
    }
}
