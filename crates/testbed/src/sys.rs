//! The system calls that no safe crate offers: `bpf(2)` for two-instruction XDP programs, a TAP, packet sockets, and pinning.
#![expect(unsafe_code, reason = "bpf(2), ioctl(2) and packet sockets take raw blocks")]

mod packet;

use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

pub use packet::PacketSocket;

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_ENABLE_STATS: libc::c_long = 32;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 2;
const XDP_FLAGS_DRV_MODE: u32 = 4;

/// `r0 = XDP_DROP; exit`: the interface has counted the frame already, so this is the cheapest receiver.
pub const RECEIVER: &[u64] = &[instruction(0xb7, 0, 0, 0, 1), instruction(0x95, 0, 0, 0, 0)];

/// Sends every frame out of its interface, with six random bits in the UDP source port: 64 flows.
pub const GENERATOR: &[u64] = &generator(34);

/// The same, of frames in VXLAN over IPv4: the source port inside.
pub const GENERATOR_INSIDE: &[u64] = &generator(50 + 34);

/// Of frames with a UDP header there.
const fn generator(udp: u64) -> [u64; 11] {
    [
        instruction(0xbf, 6, 1, 0, 0),       // r6 = context
        instruction(0x85, 0, 0, 0, 7),       // r0 = bpf_get_prandom_u32()
        instruction(0x57, 0, 0, 0, 63),      // r0 &= 63
        instruction(0x61, 2, 6, 0, 0),       // r2 = data
        instruction(0x61, 3, 6, 4, 0),       // r3 = data_end
        instruction(0xbf, 4, 2, 0, 0),       // r4 = r2
        instruction(0x07, 4, 0, 0, udp + 8), // r4 += all headers
        instruction(0x2d, 4, 3, 1, 0),       // shorter than that: leave it alone
        instruction(0x73, 2, 0, udp + 1, 0), // low byte of the source port = r0
        instruction(0xb7, 0, 0, 0, 3),       // r0 = XDP_TX
        instruction(0x95, 0, 0, 0, 0),       // exit
    ]
}

/// `struct bpf_insn`: opcode, registers, offset, immediate.
const fn instruction(
    opcode: u8,
    destination: u64,
    source: u64,
    offset: u64,
    immediate: u64,
) -> u64 {
    opcode as u64 | destination << 8 | source << 12 | offset << 16 | immediate << 32
}

/// Runs the calling thread on one core only; a core that does not exist leaves it as it is.
pub fn pin(core: usize) {
    keep_to([core]);
}

/// Lets the calling thread run everywhere again.
pub fn unpin() {
    keep_to(0..rustix::thread::CpuSet::MAX_CPU);
}

/// Runs the calling thread on these cores only; if none of them exists it stays as it is.
pub fn keep_to(cores: impl IntoIterator<Item = usize>) {
    let mut set = rustix::thread::CpuSet::new();
    cores.into_iter().for_each(|core| set.set(core));
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Makes a TAP in the calling thread's namespace: what the host sends out of it is read from the file, a whole frame a time, without waiting. It goes with
/// the file.
pub fn open_tap(name: &str) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
        .context("/dev/net/tun: cannot be opened (needs the module tun)")?;
    let mut ifr_name = [0; libc::IFNAMSIZ];
    // The last byte stays the string's end.
    let places = ifr_name[..libc::IFNAMSIZ - 1].iter_mut();
    places.zip(name.bytes()).for_each(|(place, byte)| *place = byte as libc::c_char);
    let ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    let request = libc::ifreq { ifr_name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags } };
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which `request` is for the whole call; the kernel writes the name's bytes and flags only.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw const request) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return Err(error).with_context(|| format!("TAP {name}: cannot be made"));
    }
    Ok(file)
}

/// Makes the command's process be killed (SIGKILL, which ends a stopped one too) when the thread that starts it ends, however that happens:
/// prctl(2), `PR_SET_PDEATHSIG`. What it executes keeps that.
pub fn end_with_us(command: &mut Command) {
    let ask = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec only async-signal-safe functions may be called: this is one system call, without allocation or lock.
    unsafe { command.pre_exec(ask) };
}

/// Runs the calling thread before all ordinary ones (SCHED_FIFO), for as long as it lives; without the privilege it stays as it is.
pub fn be_urgent() {
    let parameter = libc::sched_param { sched_priority: 10 };
    // SAFETY: `parameter` outlives the call; 0 is the calling thread.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) };
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Default)]
struct XdpMd {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    reserved: [u64; 4],
}

fn bpf<T>(command: libc::c_long, attribute: &mut T) -> io::Result<i32> {
    // SAFETY: `attribute` is a live, exclusively borrowed `repr(C)` block whose size is passed along; the pointers in it
    // are set by this module's functions to buffers that outlive the call.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attribute), size_of::<T>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the kernel has just returned this descriptor to us and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// A loaded XDP program.
pub struct XdpProgram(OwnedFd);

impl XdpProgram {
    /// Loads [`RECEIVER`], [`GENERATOR`] or [`GENERATOR_INSIDE`].
    pub fn load(instructions: &[u64]) -> Result<Self> {
        let mut attribute = ProgLoad {
            prog_type: BPF_PROG_TYPE_XDP,
            insn_cnt: instructions.len() as u32,
            insns: instructions.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
            ..Default::default()
        };
        let descriptor = bpf(BPF_PROG_LOAD, &mut attribute)
            .context("loading an XDP program failed; run as root")?;
        Ok(Self(owned(descriptor)))
    }

    /// Attaches to an interface of the calling thread's namespace until the link is dropped.
    pub fn attach(&self, interface: u32) -> Result<OwnedFd> {
        let mut attribute = LinkCreate {
            prog_fd: self.0.as_raw_fd() as u32,
            target_ifindex: interface,
            attach_type: BPF_XDP,
            flags: XDP_FLAGS_DRV_MODE,
            ..Default::default()
        };
        let descriptor =
            bpf(BPF_LINK_CREATE, &mut attribute).context("attaching an XDP program failed")?;
        Ok(owned(descriptor))
    }

    /// Sends `repeat` copies of `frame` out of an interface of the calling thread's namespace.
    pub fn send(&self, interface: u32, frame: &[u8], repeat: u32) -> Result<()> {
        let context = XdpMd {
            data_end: frame.len() as u32,
            ingress_ifindex: interface,
            ..Default::default()
        };
        let mut attribute = TestRun {
            prog_fd: self.0.as_raw_fd() as u32,
            data_size_in: frame.len() as u32,
            data_in: frame.as_ptr() as u64,
            repeat,
            ctx_size_in: size_of::<XdpMd>() as u32,
            ctx_in: std::ptr::from_ref(&context) as u64,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            batch_size: 64,
            ..Default::default()
        };
        match bpf(BPF_PROG_TEST_RUN, &mut attribute) {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
            Err(error) => bail!("sending live XDP frames failed: {error}"),
        }
    }
}

/// What the kernel knows of a program; `struct bpf_prog_info` up to the fields that are wanted (byte offsets by the kernel's ABI, which only grows).
#[repr(C)]
struct ProgInfo {
    before: [u8; 192],
    run_time_ns: u64,
    run_cnt: u64,
}

impl Default for ProgInfo {
    fn default() -> Self {
        Self { before: [0; 192], run_time_ns: 0, run_cnt: 0 }
    }
}

#[repr(C)]
#[derive(Default)]
struct InfoByFd {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

/// Time and number of a program's runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Runs {
    /// Time of all of them, in ns.
    pub ns: u64,
    /// How many.
    pub count: u64,
}

impl Runs {
    /// Those since `before`, in ns each.
    pub fn ns_each_since(self, before: Self) -> f64 {
        self.ns.saturating_sub(before.ns) as f64
            / self.count.saturating_sub(before.count).max(1) as f64
    }
}

/// Makes the kernel measure all BPF programs for as long as the result lives.
pub fn measure_programs() -> Result<OwnedFd> {
    // The only kind of statistics, BPF_STATS_RUN_TIME, is 0.
    let mut attribute = 0u32;
    let descriptor = bpf(BPF_ENABLE_STATS, &mut attribute);
    Ok(owned(descriptor.context("measuring BPF programs (needs Linux 5.8)")?))
}

/// What has been measured of the program with this number.
pub fn runs_of(program: u32) -> Result<Runs> {
    // `{ prog_id, next_id, open_flags }`
    let mut by_id = [program, 0, 0];
    let descriptor = bpf(BPF_PROG_GET_FD_BY_ID, &mut by_id);
    let descriptor = owned(descriptor.with_context(|| format!("BPF program {program}"))?);
    let mut info = ProgInfo::default();
    let mut attribute = InfoByFd {
        bpf_fd: descriptor.as_raw_fd() as u32,
        info_len: size_of::<ProgInfo>() as u32,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attribute)
        .with_context(|| format!("BPF program {program}: what the kernel knows"))?;
    Ok(Runs { ns: info.run_time_ns, count: info.run_cnt })
}

/// Nanoseconds of one run of a program over a frame, on average over `repeat` runs in one system call.
pub fn run_time(program: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> Result<f64> {
    let mut attribute = TestRun {
        prog_fd: program.as_raw_fd() as u32,
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat,
        ..Default::default()
    };
    bpf(BPF_PROG_TEST_RUN, &mut attribute).context("running a BPF program for a test failed")?;
    Ok(f64::from(attribute.duration))
}

/// Index of an interface in the calling thread's namespace.
pub fn interface_index(name: &str) -> Result<u32> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: `name` is a live C string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error())
            .with_context(|| format!("interface {name:?}: not found"));
    }
    Ok(index)
}

/// Cycles of the timestamp counter.
#[cfg(target_arch = "x86_64")]
pub fn cycles() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds, where no timestamp counter is known.
#[cfg(not(target_arch = "x86_64"))]
pub fn cycles() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
