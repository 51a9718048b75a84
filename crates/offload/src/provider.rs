//! Who takes flows: one rung, seen from the engine.

use crate::{Counts, Declined, FlowProgram, LimitId, MAX_LIMITS, MAX_SHAPES, Outside, Patch};
use arrayvec::ArrayVec;
use flow::PortAt;
use std::fmt;
use std::time::Duration;
use wire::Key;

/// A rung past the worker, nearest to the wire last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ProviderName {
    /// BPF at the kernel's tc hook.
    Tc,
    /// The XDP program.
    Xdp,
    /// A card's own table.
    Nic,
}

impl ProviderName {
    /// As users write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tc => "tc",
            Self::Xdp => "xdp",
            Self::Nic => "nic",
        }
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An installed program, as its provider names it. Not reused before it was removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Handle(pub u32);

/// Where a flow's frames go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// By the rung.
    Rung,
    /// To the worker.
    Worker,
}

/// How a provider keeps a flow's frames in order when it moves up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Frames are counted in and out: it moves when none is under way.
    Counted,
    /// It may move once no frame has come for so long.
    Pause(Duration),
    /// Nobody knows.
    Unknown,
}

/// What a flow costs on a rung.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Price {
    /// Slots that it takes.
    pub slots: u16,
    /// Time that its installation takes.
    pub insert: Duration,
    /// Nanoseconds a frame.
    pub per_frame_ns: f32,
    /// Nanoseconds a byte.
    pub per_byte_ns: f32,
    /// Whether the two were measured on this host.
    pub is_measured: bool,
}

/// A tunnel's headers around a flow's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Around {
    /// They are put on, and leave the host so.
    On(Outside),
    /// They come off.
    Off {
        /// But for TTL and identification.
        outside: Outside,
        /// The tunnel's identifier.
        vni: u32,
    },
}

/// A flow that a dead node left on a rung.
#[derive(Clone, PartialEq, Debug)]
pub struct Orphan {
    /// Its name from now on.
    pub handle: Handle,
    /// Where its frames come in.
    pub from: PortAt,
    /// Its bits that are [`told_apart`](crate::told_apart()).
    pub key: Key,
    /// Where they leave; `None` if that port is gone.
    pub exit: Option<PortAt>,
    /// What is done to them.
    pub patch: Patch,
    /// A tunnel's headers that are put around them, or taken off.
    pub around: Option<Around>,
    /// Limits that they pass.
    pub limits: ArrayVec<LimitId, MAX_LIMITS>,
    /// Greatest rates that they keep.
    pub shapes: ArrayVec<LimitId, MAX_SHAPES>,
    /// Where they go now.
    pub side: Side,
    /// What they came to so far.
    pub counts: Counts,
}

/// Frames may still run by an older state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the rung did not come to rest within {0:?}")]
pub struct NotSettled(pub Duration);

/// One rung: installs flow programs, moves flows between it and the worker, counts.
///
/// One thread owns it. No call waits for traffic; [`Provider::settle`] and what needs it wait for the kernel, milliseconds at most.
pub trait Provider: Send {
    /// Which rung.
    fn name(&self) -> ProviderName;

    /// What the flow would cost there. Changes nothing: whoever asks why is answered by it, too.
    ///
    /// # Errors
    /// Why the rung cannot take it.
    fn check(&self, flow: &FlowProgram) -> Result<Price, Declined>;

    /// Puts a program in place, at [`Side::Worker`], counts at 0: no frame takes it yet, but those that pass are known from here on.
    ///
    /// # Errors
    /// Why it cannot; nothing is in place then.
    fn install(&mut self, flow: &FlowProgram) -> Result<Handle, Declined>;

    /// Says where the flow's frames shall go. Returns at once.
    ///
    /// Down is at once and in order. Up is when no frame of the flow is under way in the worker; until then the wish stands, and
    /// the opposite wish takes it back.
    ///
    /// # Errors
    /// Why the flow cannot move.
    fn want(&mut self, handle: Handle, side: Side) -> Result<(), Declined>;

    /// Where the flow's frames go now. A rung gives a frame to the worker that must wait for a greatest rate, and those behind it; they come back
    /// when none waits any more, without being asked.
    fn side(&mut self, handle: Handle) -> Side;

    /// How order is kept at a move up.
    fn order(&self) -> Order;

    /// Takes the program away, once no frame runs by it, and returns its last count. Only from [`Side::Worker`].
    fn remove(&mut self, handle: Handle) -> Counts;

    /// Appends counts of at most `budget` flows, the next ones in turn.
    fn read(&mut self, out: &mut Vec<(Handle, Counts)>, budget: usize);

    /// Returns when no frame runs by a state older than this call: for barriers, and for exact counts.
    ///
    /// # Errors
    /// Frames may still do.
    fn settle(&mut self, within: Duration) -> Result<(), NotSettled>;

    /// Takes up what a dead node left. Asked once, when the ports are there. What is not wanted is removed one by one.
    fn adopt(&mut self) -> Vec<Orphan>;

    /// One of those is taken up: the tables still say what is done to it.
    fn keep(&mut self, handle: Handle, flow: &FlowProgram);
}
