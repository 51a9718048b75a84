//! Which system calls a thread may make, by its role (seccomp(2)).
//!
//! | role | threads | may call |
//! |---|---|---|
//! | [`worker`] | `suiro-worker-N` | [`WORKERS`], on files that are open already, and open files to read; anything else fails (`EPERM`) |
//! | [`unprivileged`] | all that start when privileges are dropped; `vu-*`, one for each guest | what is not in [`NEVER`] |
//!
//! Those that hold capabilities make namespaces, mounts and programs, and are not filtered: `suiro-ports`, `suiro-steer`, `suiro-offload`,
//! `suiro-guests`, and what the ports' thread starts besides (`suiro-open`, `suiro-close`, `suiro-underlay`, `suiro-esp`, `suiro-seal`,
//! `suiro-outer`).
//!
//! Who calls what is in [`NEVER`] is no longer our program: the kernel ends the process by SIGSYS and notes the call in the audit log. The lists
//! are what strace(1) saw of tests, and what the C library calls for memory, panics and the ends of threads.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;
use std::io;

/// What a worker may call: wait, receive, send, and what the C library needs for memory and the ends of threads.
const WORKERS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // A tunnel's path is looked for by a socket that is there.
    libc::SYS_connect,
    libc::SYS_getsockname,
    // Guests are called by the kernel.
    libc::SYS_io_uring_enter,
    libc::SYS_io_submit,
    libc::SYS_ppoll,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_epoll_ctl,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_getrusage,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_membarrier,
    libc::SYS_getrandom,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// Makes, writes or empties a file (openat(2)).
const WRITES: i32 = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;

/// And these where an argument has these bits under that mask. Commands are those of linux/bpf.h, linux/sockios.h and linux/userfaultfd.h.
const WORKERS_WITH: &[(i64, u8, u64, u64)] = &[
    // Memory that nobody can run.
    (libc::SYS_mmap, 2, libc::PROT_EXEC as u64, 0),
    (libc::SYS_mprotect, 2, libc::PROT_EXEC as u64, 0),
    // Counts of a program, `BPF_MAP_LOOKUP_ELEM`, for which the library asks /sys how many processors there are; bursts as XDP frames,
    // `BPF_PROG_TEST_RUN`.
    (libc::SYS_bpf, 0, 0xffff_ffff, 1),
    (libc::SYS_bpf, 0, 0xffff_ffff, 10),
    (libc::SYS_openat, 2, WRITES as u64, 0),
    // How much a socket has still to send, `SIOCOUTQ`; a guest's pages that nobody has touched, `UFFDIO_*`.
    (libc::SYS_ioctl, 1, 0xffff_ffff, 0x5411),
    (libc::SYS_ioctl, 1, 0xff00, 0xaa00),
];

/// What only an intruder calls on a thread without privileges.
const NEVER: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
];

/// Calls, and under which of several conditions; under none: always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Lets this thread make a worker's calls alone, and those that it starts. To be called when it has opened all it needs.
///
/// # Errors
/// The kernel has no filters, or this thread may still gain privileges: nothing is filtered.
pub fn worker() -> io::Result<()> {
    let mut rules: Rules = WORKERS.iter().map(|&call| (call, vec![])).collect();
    for &(call, argument, mask, bits) in WORKERS_WITH {
        let holds = SeccompCmpOp::MaskedEq(mask);
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, holds, bits);
        let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
        rules.entry(call).or_default().push(rule.map_err(io::Error::other)?);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    apply(rules, refused, SeccompAction::Allow)
}

/// Ends the process when this thread, or one that it starts, makes a call that needs privileges or another program.
///
/// # Errors
/// The kernel has no filters, or this thread may still gain privileges: nothing is filtered.
pub fn unprivileged() -> io::Result<()> {
    let rules = NEVER.iter().map(|&call| (call, vec![])).collect();
    apply(rules, SeccompAction::Allow, SeccompAction::KillProcess)
}

/// As [`worker`]; of a kernel without filters the log tells.
pub fn worker_where_possible() {
    tell("a worker", worker());
}

/// As [`unprivileged`], likewise.
pub fn unprivileged_where_possible() {
    tell("a thread without privileges", unprivileged());
}

fn tell(who: &str, confined: io::Result<()>) {
    if let Err(error) = confined {
        let remedy = "use a kernel with CONFIG_SECCOMP_FILTER";
        tracing::warn!(remedy, "{who} may make any system call: {error}");
    }
}

fn apply(rules: Rules, others: SeccompAction, these: SeccompAction) -> io::Result<()> {
    let machine = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, others, these, machine);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space, set_no_new_privs};
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    /// On a thread of its own, which a filter never leaves.
    fn apart(work: impl FnOnce() + Send + 'static) {
        let run = move || {
            set_no_new_privs(true).unwrap();
            work();
        };
        std::thread::spawn(run).join().unwrap();
    }

    #[test]
    fn a_worker_reads_and_writes_what_is_open_and_opens_nothing_to_write() {
        let (mut near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
        apart(move || {
            worker().unwrap();
            near.write_all(b"frame").unwrap();
            let memory = vec![7_u8; 64 << 20];
            assert_eq!(memory.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 7 * (64 << 20));
            let refused = |error: io::Error| assert_eq!(error.raw_os_error(), Some(libc::EPERM));
            refused(File::create("/tmp/suiro-confined").unwrap_err());
            refused(File::options().append(true).open("/dev/null").unwrap_err());
            refused(std::net::UdpSocket::bind("127.0.0.1:0").unwrap_err());
            refused(std::process::Command::new("/bin/true").status().unwrap_err());
            refused(std::fs::remove_file("/nowhere").unwrap_err());
        });
        let mut came = [0; 5];
        far.read_exact(&mut came).unwrap();
        assert_eq!(&came, b"frame");
    }

    #[test]
    fn a_workers_panic_is_caught_as_before() {
        apart(|| {
            worker().unwrap();
            assert!(std::panic::catch_unwind(|| panic!("on purpose")).is_err());
        });
    }

    #[test]
    fn an_unprivileged_thread_opens_files_and_starts_threads() {
        apart(|| {
            unprivileged().unwrap();
            File::open("/etc/passwd").unwrap();
            std::thread::spawn(|| File::open("/etc/passwd").unwrap()).join().unwrap();
        });
    }

    /// The test itself is the process that ends.
    #[test]
    fn a_call_that_needs_privileges_ends_the_process_by_sigsys() {
        const SELF: &str = "SUIRO_TEST_CONFINED";
        if std::env::var_os(SELF).is_some() {
            let netns = File::open("/proc/self/ns/net").unwrap();
            set_no_new_privs(true).unwrap();
            unprivileged().unwrap();
            let _ = move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network));
            return;
        }
        use std::os::unix::process::ExitStatusExt;
        let name = "host::confine::tests::a_call_that_needs_privileges_ends_the_process_by_sigsys";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", name, "--test-threads=1"]).env(SELF, "1").output();
        assert_eq!(child.unwrap().status.signal(), Some(libc::SIGSYS));
    }
}
