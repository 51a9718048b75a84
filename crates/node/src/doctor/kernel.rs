//! What the kernel has.

use super::Finding;
use std::path::Path;

const WITHOUT_STEERING: &str =
    "interfaces cannot be steered; switches with tap, af_packet, vlink and vhost-user ports work";

/// A function of the kernel by whose presence a feature is known: every kernel with it lists it.
const FEATURES: &[(&str, &str, &str, &str)] = &[
    (
        "XDP links",
        "bpf_xdp_link_attach",
        WITHOUT_STEERING,
        "use Linux 5.9 or later with CONFIG_BPF_SYSCALL",
    ),
    (
        "cpumap programs",
        "cpu_map_kthread_run",
        WITHOUT_STEERING,
        "use Linux 5.9 or later with CONFIG_BPF_SYSCALL",
    ),
    (
        "tracepoints",
        "__traceiter_sched_switch",
        "loads and moves without reordering need them: interfaces cannot be steered; switches work",
        "use a kernel with CONFIG_TRACEPOINTS and CONFIG_BPF_EVENTS",
    ),
];

/// The first release whose verifier takes the steering programs.
const NEEDED: (u32, u32) = (5, 18);

pub(super) fn examine(root: &Path) -> Vec<Finding> {
    let mut findings = vec![release(root), btf(root)];
    findings.extend(features(root));
    findings.extend([bpffs(root), jit(root)]);
    findings
}

fn release(root: &Path) -> Finding {
    let text = std::fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
    let text = text.trim();
    let mut numbers = text.split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
    let version = numbers.next().zip(numbers.next());
    match version {
        Some(version) if version >= NEEDED => Finding::ok("kernel", format!("Linux {text}")),
        _ => {
            let found = format!("Linux {text}, older than {}.{}", NEEDED.0, NEEDED.1);
            Finding::missing("kernel", found, WITHOUT_STEERING, "use a newer kernel")
        }
    }
}

fn btf(root: &Path) -> Finding {
    if root.join("sys/kernel/btf/vmlinux").exists() {
        return Finding::ok("BTF", "/sys/kernel/btf/vmlinux");
    }
    let remedy = "use a kernel with CONFIG_DEBUG_INFO_BTF; distributions' kernels have it";
    Finding::missing("BTF", "the kernel does not describe its types", WITHOUT_STEERING, remedy)
}

fn features(root: &Path) -> Vec<Finding> {
    let Ok(symbols) = std::fs::read_to_string(root.join("proc/kallsyms")) else {
        let means = "whether XDP links, cpumap programs and tracepoints are there is not known";
        return vec![Finding::limited(
            "kernel symbols",
            "/proc/kallsyms cannot be read",
            means,
            "run as root",
        )];
    };
    let has = |name: &str| symbols.lines().any(|line| line.split(' ').nth(2) == Some(name));
    let finding = |&(thing, symbol, means, remedy): &(&str, &str, &str, &str)| match has(symbol) {
        true => Finding::ok(thing, "yes"),
        false => Finding::missing(thing, format!("{symbol} is not in the kernel"), means, remedy),
    };
    FEATURES.iter().map(finding).collect()
}

fn bpffs(root: &Path) -> Finding {
    let mounts = std::fs::read_to_string(root.join("proc/self/mounts")).unwrap_or_default();
    let mounted = mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        words.next() == Some("/sys/fs/bpf") && words.next() == Some("bpf")
    });
    if mounted {
        return Finding::ok("bpffs", "mounted at /sys/fs/bpf");
    }
    let means = "`suiro steer attach` mounts it, which needs CAP_SYS_ADMIN; in a container of its own the mount ends with it, and steering too";
    Finding::limited("bpffs", "not mounted at /sys/fs/bpf", means, "mount -t bpf bpf /sys/fs/bpf")
}

fn jit(root: &Path) -> Finding {
    let setting = std::fs::read_to_string(root.join("proc/sys/net/core/bpf_jit_enable"));
    match setting.as_deref().map(str::trim) {
        Ok("0") => {
            let means =
                "programs are interpreted: steering and af_xdp ports work, several times slower";
            Finding::limited(
                "eBPF compiler",
                "switched off",
                means,
                "sysctl net.core.bpf_jit_enable=1",
            )
        }
        _ => Finding::ok("eBPF compiler", "on"),
    }
}
