//! # xdp: the program that sees a frame first
//!
//! **Question answered**: how does a frame on a kernel interface get to suiro before the kernel's own stack, and how does the
//! interface get back to normal whatever happens to us?
//!
//! ## Types
//!
//! * [`Loaded`] → [`Ingress`]: the program `suiro_ingress` (`bpf/suiro.bpf.c`), loaded, then attached to one interface. One copy of
//!   program and maps for each interface: a tenant's counters and sockets are never in another tenant's map.
//! * [`Hook`]: native (in the driver) or generic (after it).
//! * [`Verdict`], [`VerdictCount`]: what became of the frames, counted per CPU.
//!
//! ## Invariants
//!
//! * The shared layout is defined in `bpf/abi.h` alone; [`Verdict`] and [`VerdictCount`] mirror it, and a test compares them with the object's BTF.
//! * Attached by `bpf_link`: when the process dies, the kernel detaches. An interface that has another program is refused, never overwritten.
//! * A frame that no stage takes passes to the kernel.
//!
//! Needs `CAP_BPF` and `CAP_NET_ADMIN`; to build: clang, libbpf-dev (`bpf_helpers.h`), linux-libc-dev.

mod abi;
mod error;
mod ingress;
mod sys;

pub use abi::{QUEUES_MAX, Verdict, VerdictCount};
pub use error::{AttachError, MapError};
pub use ingress::{Hook, Ingress, Loaded, program_name};

/// The compiled object, for the test that compares its BTF with the Rust mirror.
pub static OBJECT: &[u8] = ingress::OBJECT;
