use super::*;
use std::fs;
use std::path::PathBuf;

const ONLINE: [CoreId; 4] = [CoreId(0), CoreId(1), CoreId(2), CoreId(3)];

/// A made-up `/proc`.
struct Proc(tempfile::TempDir);

impl Proc {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// `arguments` separated by spaces.
    fn process(&self, pid: u32, name: &str, arguments: &str) -> &Self {
        self.write(&format!("{pid}/comm"), &format!("{name}\n"));
        let ended: String = arguments.split_whitespace().map(|part| format!("{part}\0")).collect();
        self.write(&format!("{pid}/cmdline"), &ended);
        self
    }

    fn thread(&self, pid: u32, tid: u32, name: &str, allowed: &str) -> &Self {
        self.thread_of(pid, tid, name, allowed, 0)
    }

    fn thread_of(&self, pid: u32, tid: u32, name: &str, allowed: &str, guest_ticks: u32) -> &Self {
        let status = format!(
            "Name:\t{name}\nPid:\t{tid}\nCpus_allowed:\tf\nCpus_allowed_list:\t{allowed}\n"
        );
        self.write(&format!("{pid}/task/{tid}/status"), &status);
        let zeros = "0 ".repeat(39);
        let stat = format!("{tid} ({name}) S {zeros}{guest_ticks} 0 0\n");
        self.write(&format!("{pid}/task/{tid}/stat"), &stat);
        self
    }

    fn machines(&self) -> Vec<SeenVm> {
        running(self.0.path(), &ONLINE).unwrap()
    }

    fn only(&self) -> SeenVm {
        let mut machines = self.machines();
        assert_eq!(machines.len(), 1, "{machines:?}");
        machines.remove(0)
    }
}

fn numbers(cores: &[CoreId]) -> Vec<u16> {
    cores.iter().map(|core| core.0).collect()
}

#[test]
fn a_libvirt_machine_has_its_name_its_pinned_cores_and_its_threads() {
    let proc = Proc::new();
    proc.process(
        40,
        "qemu-system-x86",
        "/usr/bin/qemu-system-x86_64 -name guest=web,debug-threads=on",
    )
    .thread(40, 40, "qemu-system-x86", "0-1")
    .thread(40, 41, "CPU 0/KVM", "2")
    .thread(40, 42, "CPU 1/KVM", "3")
    .thread(40, 43, "vhost-40", "0-1")
    .thread(40, 44, "IO mon_iothread", "0-1");
    proc.write(
        "40/cgroup",
        "0::/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/emulator\n",
    );
    let vm = proc.only();
    assert_eq!((vm.name.as_str(), vm.pid, vm.source), ("web", 40, "libvirt"));
    assert_eq!(numbers(&vm.cores), [2, 3]);
    assert_eq!(vm.threads, [(41, Stage::Guest), (42, Stage::Guest), (43, Stage::Vhost)]);
}

#[test]
fn a_vhost_worker_that_is_a_kernel_thread_belongs_to_the_process_in_its_name() {
    let proc = Proc::new();
    proc.process(40, "qemu-system-x86", "qemu -name a").thread(40, 41, "CPU 0/KVM", "0-3");
    proc.process(90, "vhost-40", "").process(91, "vhost-77", "").process(92, "vhost-x", "");
    assert_eq!(proc.only().threads, [(41, Stage::Guest), (90, Stage::Vhost)]);
}

#[test]
fn a_machine_that_may_run_on_every_core_is_pinned_to_none() {
    let proc = Proc::new();
    proc.process(40, "qemu-kvm", "qemu -name a")
        .thread(40, 40, "qemu-kvm", "1")
        .thread(40, 41, "CPU 0/KVM", "0-3")
        .thread(40, 42, "CPU 1/KVM", "0-63");
    assert!(proc.only().cores.is_empty());
}

#[test]
fn only_pinned_virtual_cpus_count_and_only_cores_that_are_online() {
    let proc = Proc::new();
    proc.process(40, "kvm", "/usr/bin/kvm -name a").thread(40, 41, "CPU 0/KVM", "0-3").thread(
        40,
        42,
        "CPU 1/KVM",
        "3,8",
    );
    assert_eq!(numbers(&proc.only().cores), [3]);
}

#[test]
fn unnamed_virtual_cpus_of_kvm_are_told_by_the_time_they_were_guests() {
    let proc = Proc::new();
    proc.process(40, "qemu-system-x86", "qemu -name a")
        .thread(40, 40, "qemu-system-x86", "0-3")
        .thread_of(40, 41, "qemu-system-x86", "2", 7);
    let vm = proc.only();
    assert_eq!(numbers(&vm.cores), [2]);
    assert_eq!(vm.threads, [(41, Stage::Guest)]);
}

#[test]
fn a_machine_pinned_as_a_whole_is_pinned_though_its_threads_have_no_names() {
    let proc = Proc::new();
    proc.process(40, "qemu-system-x86", "qemu -uuid 12-34")
        .thread(40, 40, "qemu-system-x86", "2")
        .thread(40, 41, "qemu-system-x86", "2")
        .thread(40, 42, "vhost-40", "0-3")
        .thread(40, 43, "kvm-nx-lpage-re", "0-3");
    let vm = proc.only();
    assert_eq!((vm.name.as_str(), vm.source, numbers(&vm.cores)), ("12-34", "qemu", vec![2]));
    assert_eq!(vm.threads, [(40, Stage::Guest), (41, Stage::Guest), (42, Stage::Vhost)]);
}

#[test]
fn a_thread_may_call_itself_what_it_likes() {
    let proc = Proc::new();
    proc.process(40, "qemu-system-x86", "qemu -name a")
        .thread_of(40, 41, ") S 1 2 (3", "1", 5)
        .thread(40, 42, "\u{fffd}", "0-3");
    assert_eq!(proc.only().threads, [(41, Stage::Guest)]);
}

#[test]
fn processes_that_are_no_machines_or_have_gone_are_left_out() {
    let proc = Proc::new();
    proc.process(7, "bash", "bash -name a").thread(7, 7, "CPU 0/KVM", "1");
    proc.process(8, "kvm", "").thread(8, 8, "kvm", "1");
    proc.process(9, "qemu-system-x86", "qemu -name b");
    proc.write("uptime", "1 1\n");
    fs::create_dir(proc.0.path().join("10")).unwrap();
    assert_eq!(proc.machines(), []);
}

#[test]
fn two_machines_of_one_name_are_told_apart() {
    let proc = Proc::new();
    for pid in [9, 30] {
        proc.process(pid, "qemu-kvm", "qemu -name a").thread(pid, pid, "CPU 0/KVM", "0-3");
    }
    let names: Vec<_> = proc.machines().into_iter().map(|vm| vm.name).collect();
    assert_eq!(names, ["a", "a@30"]);
}

#[test]
fn without_a_proc_that_is_said() {
    assert!(running(Path::new("/nowhere"), &ONLINE).is_err());
}
