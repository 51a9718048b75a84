//! # offload: who leaves the worker, and who takes it
//!
//! **Question answered**: which flow is processed past the worker, on which rung (`tc`, `xdp`, `nic`), since when and why; and
//! what keeps the others on the worker?
//!
//! Pure: no I/O, clock, thread, `unsafe` or global state. Time is handed in ([`flow::Nanos`]), orders are handed out.
//!
//! ## From tables to a rung
//!
//! [`flow::Snapshot::resolve`] says what becomes of a frame. If it leaves by one port after edits that are constants for one flow,
//! that is a [`FlowProgram`]. Its [`Patch`] is all that a rung must do to the frame's bytes: no field names, no interpreter. What
//! cannot be said so stays on the worker, with the reason: [`Declined`].
//!
//! ## Who takes it
//!
//! A [`Provider`] owns one rung: it installs programs, moves a flow's frames from one side to the other ([`Side`]), counts them, and
//! says how sure their order is at a move ([`Order`]). It decides nothing: who moves, and when, is decided here.
//!
//! ## Invariants
//!
//! * **One verdict.** A rung takes a frame only if it does to it what the worker would do. What it is not sure of goes to the worker.
//! * **Make before break.** A program is in place before any frame takes it, and goes after the last frame that took it.
//! * **Counts never go back.** A flow's count is the worker's and all rungs' together, over all its moves ([`Counts`]).

mod apply;
mod compile;
mod cost;
mod counts;
mod declined;
mod engine;
mod headers;
mod heavy;
mod ledger;
mod patch;
mod policy;
mod program;
mod provider;
mod remedy;
mod tunnel;

pub use apply::{Frame, apply};
pub use compile::Facts;
pub use cost::{PerFrame, Work};
pub use counts::Counts;
pub use declined::{
    CardReason, Declined, EditKind, FlowReason, MoveReason, PolicyReason, PortReason,
};
pub use engine::{
    Engine, Explained, FlowLine, FlowName, Moved, Refusal, RungLine, Stage, TakenUp, World,
    first_taker,
};
pub use headers::{OUTSIDE, Outside, Tag};
pub use patch::{PATCHED, Patch};
pub use policy::{BadCondition, Condition, Policy, RESIDENCE, Rule};
pub use program::{
    Approach, Edit, FlowProgram, LimitId, MAX_LIMITS, MAX_SHAPES, Underlay, known, told_apart,
};
pub use provider::{
    Around, Handle, NotSettled, Order, Orphan, Price, Provider, ProviderName, Side,
};
