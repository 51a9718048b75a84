//! # xdp: the program that sees a frame first
//!
//! **Question answered**: how does a frame on a kernel interface get to suiro before the kernel's own stack, how does a burst of frames
//! leave without a socket buffer for each, and how does the interface get back to normal whatever happens to us?
//!
//! ## Types
//!
//! * [`hook`]: the one program that suiro puts on an interface, `suiro_hook` (`bpf/hook.bpf.c`), and the stages behind it: [`Hook`],
//!   [`Stage`], [`Lease`]. Native (in the driver) or generic (after it): [`Mode`].
//! * [`WorkerStage`] → [`Worker`]: the last stage, `suiro_worker` (`bpf/worker.bpf.c`), loaded, then on one interface. One copy of program
//!   and maps for each interface: a tenant's counters and sockets are never in another tenant's map.
//! * [`Verdict`], [`VerdictCount`]: what became of the frames, counted per CPU.
//!
//! * [`Transmitter`]: the program `suiro_transmit` (`bpf/transmit.bpf.c`) and the memory of one worker's burst: frames are put there for
//!   an [`Exit`], and leave together in one system call; [`Outcome`] tells how many the drivers took. On no interface: one anonymous
//!   namespace each keeps it known to the kernel.
//!
//! * [`steer`]: the programs that put each flow's packets on the core that a policy picks, in front of the kernel's own stack or any switch.
//!   A module with an essay of its own.
//!
//! * [`TunnelDemux`]: the program `suiro_tunnel` (`bpf/tunnel.bpf.c`) that gives each VXLAN datagram to the socket of the port that owns it.
//!
//! * [`SpiDemux`]: the program `suiro_spi` (`bpf/spi.bpf.c`) that gives each ESP packet behind a UDP header to the socket that owns its SPI.
//!
//! * [`outer`]: the program `suiro_outer` (`bpf/outer.bpf.c`) that tells the kernel of a frame on its way out what a packet socket cannot.
//!
//! ## Invariants
//!
//! * The shared layout is defined in `bpf/abi.h` alone; [`Verdict`], [`VerdictCount`], [`Slot`] and [`Burst`] mirror it, and a test compares
//!   them with the objects' BTF.
//! * Attached by `bpf_link`: when the last process that holds it dies, the kernel detaches, unless steering has pinned it. An interface
//!   that has another program is refused, never overwritten.
//! * A frame that no stage takes passes to the kernel. A frame that the worker stage cannot hand over is dropped, counted.
//! * A burst is sent whole before the call returns, or not at all: nothing of it is left to leave later.
//!
//! Needs `CAP_BPF` and `CAP_NET_ADMIN`, the transmitter `CAP_SYS_ADMIN` and `CAP_PERFMON` and Linux 5.18; to build: clang, libbpf-dev (`bpf_helpers.h`), linux-libc-dev.

mod abi;
mod bpffs;
#[cfg(test)]
#[path = "../tests/btf/mod.rs"]
mod btf;
mod error;
pub mod hook;
mod mirror;
mod object;
pub mod offload;
pub mod outer;
mod spi;
pub mod steer;
mod sys;
mod transmit;
mod tunnel;
mod verified;
mod worker;

pub use abi::{BURST_MAX, Burst, EXITS_MAX, QUEUES_MAX, SLOT_BYTES, Slot, Verdict, VerdictCount};
pub use error::{AttachError, MapError};
pub use hook::{Hook, HookError, Lease, Life, Mode, Stage, program_name};
pub use spi::SpiDemux;
pub use transmit::{Exit, Outcome, Transmitter};
pub use tunnel::TunnelDemux;
pub use worker::{Worker, WorkerStage};

/// The compiled object, for the test that compares its BTF with the Rust mirror.
pub static OBJECT: &[u8] = worker::OBJECT;
/// The transmitter's, likewise.
pub static TRANSMIT_OBJECT: &[u8] = transmit::OBJECT;
