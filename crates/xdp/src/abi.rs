//! The Rust mirror of `bpf/abi.h`: same names, same order.

use std::mem::offset_of;
use std::sync::atomic::AtomicU32;

/// `SUIRO_QUEUES_MAX`: most rx queues of one interface.
pub const QUEUES_MAX: u32 = 256;

/// `SUIRO_VERDICT_…`: what became of a frame; the key of map `verdicts`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Verdict {
    /// Redirected to the AF_XDP socket of its queue.
    Worker = 0,
    /// No stage took it: left to the kernel.
    Pass = 1,
    /// No socket on its queue: dropped.
    NoSocket = 2,
}

impl Verdict {
    /// Every verdict, in key order.
    pub const ALL: [Verdict; 3] = [Verdict::Worker, Verdict::Pass, Verdict::NoSocket];
}

/// Mirrors `struct verdict_count`, the value of map `verdicts`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct VerdictCount {
    /// Frames.
    pub frames: u64,
    /// Bytes, Ethernet header included.
    pub bytes: u64,
}

const _: () = assert!(size_of::<VerdictCount>() == 16 && offset_of!(VerdictCount, bytes) == 8);

/// `SUIRO_BURST_MAX`: most frames of a burst.
pub const BURST_MAX: usize = 64;
/// `SUIRO_SLOT_BYTES`: longest frame of a burst.
pub const SLOT_BYTES: usize = 2040;
/// `SUIRO_EXITS_MAX`: interfaces that bursts can leave by.
pub const EXITS_MAX: u32 = 4096;

/// Mirrors `struct slot`: a frame of a burst.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Slot {
    /// Key of map `exits`.
    pub exit: u32,
    /// Bytes used.
    pub len: u32,
    /// The frame.
    pub bytes: [u8; SLOT_BYTES],
}

/// Mirrors `struct burst`, the value of map `bursts`. The programs change the numbers while a burst runs.
#[derive(Debug)]
#[repr(C)]
pub struct Burst {
    /// Frames filled so far.
    pub run: AtomicU32,
    /// Frames handed to a driver.
    pub flushed: AtomicU32,
    /// Frames that it took.
    pub sent: AtomicU32,
    /// `errno` of the last refusal.
    pub error: AtomicU32,
    /// Where the burst runs.
    pub cpu: AtomicU32,
    /// Zero.
    pub reserved: u32,
    /// The frames.
    pub slots: [Slot; BURST_MAX],
}
