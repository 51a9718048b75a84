//! # offload: flows past the worker, in the kernel
//!
//! **Question answered**: how does a flow between two ports go on without the worker, and come back, so that no frame is lost or passes
//! another?
//!
//! * [`Flows`]: the maps of a host, pinned: which flows there are, what is done to their frames, what they came to.
//! * [`Limit`]: a token bucket that workers and rungs take from.
//! * [`TcPort`]: an interface with a packet socket. A filter on the socket says which side a frame goes to, a program at the tc hook obeys
//!   (`bpf/offload_tc.bpf.c`).
//! * [`XdpPort`]: an interface with an AF_XDP socket. A stage of its hook says which side a frame goes to (`bpf/offload_xdp.bpf.c`).
//! * [`Tc`], [`Xdp`]: the providers, one [`Rung`] of ports each. [`Past`]: a port of either.
//!
//! ## Invariants
//!
//! * The layout is defined in `bpf/offload.h` alone; `abi` mirrors it, and a test compares them with the object's BTF.
//! * Programs decide nothing. A flow's program is written before its key is, and changes no more; a place is used again only when no program can
//!   hold it.
//! * Side and count of a flow are one word. Frames given to the worker are counted before it gets them.
//! * All is pinned: killed, a node leaves its flows going, counted and limited. Frames for its worker end at the port's own filter.

mod abi;
mod error;
mod flows;
mod key;
#[cfg(test)]
mod layout_tests;
mod limit;
mod passage;
mod past;
mod price;
#[cfg(feature = "testing")]
mod rehearsal;
mod rung;
mod seat;
mod sys;
mod tc;
#[cfg(feature = "testing")]
mod trial;
mod value;
mod xdp;

pub use error::OffloadError;
pub use flows::{Flows, PIN_ROOT};
pub use limit::Limit;
pub use passage::Passage;
pub use past::Past;
pub use price::{Cost, Line};
#[cfg(feature = "testing")]
pub use rehearsal::Way;
pub use rung::Rung;
pub use seat::{Interface, RungPort, Seat};
pub use tc::TcPort;
#[cfg(feature = "testing")]
pub use trial::Trial;
pub use xdp::{XdpParts, XdpPort};

/// Flows that both rungs together have room for: places in the map that they share.
pub const SLOTS: u32 = abi::FLOWS;

/// Flows between packet sockets' ports on veths.
pub type Tc = Rung<TcPort>;
/// Flows between AF_XDP ports.
pub type Xdp = Rung<XdpPort>;
