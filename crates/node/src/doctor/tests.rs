use super::interface;
use super::interface::Xdp;
use super::*;
use netlink::XdpFeatures;
use std::os::unix::fs::symlink;

/// A made-up host with nothing wrong.
fn host() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let symbols =
        "0 T bpf_xdp_link_attach\n0 t cpu_map_kthread_run\n0 T __traceiter_sched_switch\n";
    for (path, text) in [
        ("proc/sys/kernel/osrelease", "6.18.44-x\n"),
        ("proc/kallsyms", symbols),
        ("proc/self/mounts", "bpf /sys/fs/bpf bpf rw 0 0\n"),
        ("proc/sys/net/core/bpf_jit_enable", "1\n"),
        ("proc/self/net/dev", "head\nhead\n  lo: 0\neth0: 0\nveth1: 0\n"),
        ("proc/17/comm", "bash\n"),
        ("sys/kernel/btf/vmlinux", ""),
        ("sys/class/net/eth0/device/uevent", ""),
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000000\n"),
    ] {
        write(root.path(), path, text);
    }
    symlink("../../../drivers/ixgbe", root.path().join("sys/class/net/eth0/device/driver"))
        .unwrap();
    root
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn all(root: &Path) -> Vec<Finding> {
    let known = Xdp::Driver(XdpFeatures::of(XdpFeatures::BASIC | XdpFeatures::REDIRECT));
    [kernel::examine(root), host::examine(root), interface::examine(root, "eth0", known)].concat()
}

#[test]
fn a_host_with_nothing_wrong_needs_no_remedy() {
    let root = host();
    let findings = all(root.path());
    assert!(findings.len() >= 8);
    assert!(
        findings.iter().all(|finding| finding.state == State::Ok && finding.remedy.is_empty()),
        "{findings:?}"
    );
    assert_eq!(findings.last().unwrap().found, "off");
    assert!(findings.iter().any(|finding| finding.found == "native, driver ixgbe"));
}

#[test]
fn each_fault_is_found_with_what_still_works_and_the_fix() {
    for (path, text, thing, state) in [
        ("proc/sys/kernel/osrelease", "5.4.0-1\n", "kernel", State::Missing),
        (
            "proc/kallsyms",
            "0 T bpf_xdp_link_attach\n0 t cpu_map_kthread_run\n",
            "tracepoints",
            State::Missing,
        ),
        ("proc/self/mounts", "sysfs /sys sysfs rw 0 0\n", "bpffs", State::Limited),
        ("proc/sys/net/core/bpf_jit_enable", "0\n", "eBPF compiler", State::Limited),
        ("proc/17/comm", "irqbalance\n", "irqbalance", State::Limited),
        (
            "sys/class/net/eth0/queues/rx-0/rps_cpus",
            "00000000,0000000c\n",
            "eth0: RPS",
            State::Limited,
        ),
    ] {
        let root = host();
        write(root.path(), path, text);
        let findings = all(root.path());
        let wrong: Vec<_> = findings.iter().filter(|finding| finding.state != State::Ok).collect();
        assert_eq!(wrong.len(), 1, "{path}: {wrong:?}");
        assert_eq!((wrong[0].thing.as_str(), wrong[0].state), (thing, state));
        assert!(!wrong[0].means.is_empty() && !wrong[0].remedy.is_empty(), "{thing}");
    }
    let root = host();
    std::fs::remove_file(root.path().join("sys/kernel/btf/vmlinux")).unwrap();
    assert!(
        all(root.path())
            .iter()
            .any(|finding| finding.thing == "BTF" && finding.state == State::Missing)
    );
}

#[test]
fn a_driver_without_xdp_is_no_obstacle_and_says_what_it_costs() {
    let root = host();
    for (features, state) in [
        (Xdp::Driver(XdpFeatures::of(XdpFeatures::BASIC)), State::Limited),
        (Xdp::Driver(XdpFeatures::of(0)), State::Limited),
        (Xdp::Unknown, State::Limited),
        (Xdp::NoInterface, State::Missing),
    ] {
        let finding = interface::examine(root.path(), "eth0", features).remove(0);
        assert_eq!(finding.state, state, "{features:?}");
    }
}

#[test]
fn interfaces_with_hardware_are_looked_at_and_virtual_ones_only_where_there_are_no_others() {
    let root = host();
    assert_eq!(interface::usual(root.path()), ["eth0"]);
    std::fs::remove_dir_all(root.path().join("sys/class/net/eth0")).unwrap();
    assert_eq!(interface::usual(root.path()), ["eth0", "veth1"]);
}
