//! The Rust mirror of `bpf/abi.h`: same names, same order.

use std::mem::offset_of;

/// `SUIRO_QUEUES_MAX`: most rx queues of one interface.
pub const QUEUES_MAX: u32 = 256;

/// `SUIRO_VERDICT_…`: what became of a frame; the key of map `verdicts`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Verdict {
    /// Redirected to the AF_XDP socket of its queue.
    Worker = 0,
    /// No socket on its queue: left to the kernel.
    Pass = 1,
}

impl Verdict {
    /// Every verdict, in key order.
    pub const ALL: [Verdict; 2] = [Verdict::Worker, Verdict::Pass];
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
