//! What a datapath is started with, and what it can refuse.

use crate::rung::Rungs;
use port::{Bells, LossTap};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How to run the workers.
#[derive(Clone, Debug)]
pub struct Config {
    /// One worker thread is pinned to each of these cores.
    pub cores: Vec<usize>,
    /// A queue is polled for this long after its last frame, and for longer if it had frames for long, before it is left to the kernel to watch; a
    /// worker without such a queue sleeps.
    pub spin: Duration,
    /// Whether each queue's time in vain follows from the gaps between its frames: `spin`, which is what a wake-up costs then, where they are
    /// usually shorter, else next to nothing.
    pub learns: bool,
    /// Entries of each worker's exact-match cache.
    pub cache_entries: usize,
    /// Packet-ins that may wait for the control thread, over all switches; one switch gets at most a quarter of them. One of a long frame
    /// counts once for each KiB.
    pub packet_in_ring: usize,
    /// Packet-ins per second that one switch may cause, until [`crate::Publisher::set_packet_in_rate`] says otherwise.
    pub packet_in_per_s: u32,
    /// Bells of the ports' mailboxes; who opens ports for these workers has them too ([`port::Opener::with_bells`]).
    pub bells: Bells,
    /// Rungs of the ladder that are switched on, until [`crate::Datapath::set_rungs`] says otherwise.
    pub rungs: Rungs,
    /// Sees every frame that is lost, on the worker that loses it.
    pub tap: Option<Arc<dyn LossTap>>,
    /// What each worker does first, on its thread: it gives up what it does not need.
    pub confine: fn(),
}

impl Default for Config {
    /// One worker on core 0. `spin` covers the gap between two wake-ups of a kernel port (a sleep and a wake-up cost ~10 µs);
    /// the cache holds the flows of performance.md's 100k case in about 16 MiB; the packet-in rate is what one
    /// controller session digests on one core. A switch's quarter of the ring covers the time slice (3 ms) for which a busy core keeps
    /// the control thread waiting.
    fn default() -> Self {
        Self {
            cores: vec![0],
            spin: Duration::from_micros(30),
            learns: false,
            cache_entries: 1 << 17,
            packet_in_ring: 16_384,
            packet_in_per_s: 100_000,
            bells: Bells::default(),
            rungs: Rungs::ALL,
            tap: None,
            confine: || {},
        }
    }
}

/// Why the workers did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `cores` is empty.
    #[error("datapath: no core is given to it")]
    NoCores,
    /// Two workers on one core would only take turns.
    #[error("datapath: core {0} is given twice")]
    SameCore(usize),
    /// More workers than can be told apart.
    #[error("datapath: {cores} cores are given to it, and {most} is the most it can use")]
    TooMany {
        /// Cores given.
        cores: usize,
        /// Most that can be used.
        most: usize,
    },
    /// The operating system refused.
    #[error("datapath worker on core {core}: {step} failed")]
    Worker {
        /// Core of the worker.
        core: usize,
        /// What was tried.
        step: &'static str,
        /// Why not.
        source: io::Error,
    },
}
