//! # place: on which core a flow's packets are processed
//!
//! **Question answered**: given what is known of a host's cores and of one flow, which core takes the flow, and why that one?
//!
//! Pure: no I/O, clock, thread, `unsafe` or global state. The agent (`steer`) fills the [`CoreTable`] and carries decisions out; the kernel
//! program makes the same ones for flows that nobody decided yet; the switch's workers and a simulator call the same trait.
//!
//! ## Types
//!
//! * [`CoreTable`], [`Core`]: the paper's Core Table. Each core's [`StageLoads`], guests [`Pinned`] to it, [`Role`].
//! * [`Smoothed`]: a core's load for the table, which knows of moves before they show in measurements. [`Arrivals`]: the units that it does not show yet.
//! * [`Facts`] of a unit (a flow group, or the flows of one entry) go into a [`Policy`], a [`Decision`] comes out: a core and a [`Reason`].
//!   [`Policy::candidates`] tells what was thought of every core, [`Policy::repair`] which units should move.
//! * [`struct@Hash`]: what RSS and RPS do. [`Vse`]: the paper's algorithm.
//! * [`steering`]: the words in which the agent and its enforcers speak.
//! * [`sealing_core`]: which core encrypts a tunnel's packets when none that forwards shall.
//! * [`StageModel`]: which cores run the driver, the packet processing, vhost and the guest of a flow; [`Stages`] is the answer.
//!
//! ## Invariants
//!
//! * A policy is a function of its arguments. The same table and facts give the same decision, in Rust and in the kernel.
//! * A decision's core is one of the table's, or the unit's own `rx_core`.
//! * Placing allocates nothing and costs one walk over at most [`CORES_MAX`] cores.
//!
//! Sources: "the paper" is VS-extend (Muramatsu, Kawashima, Saito, Matsuo: Priority-based Load Distribution Method for Tunneling Processes in
//! Virtual Switches); the stage models are in the same authors' slides on VSE and light processing (2015). `docs/explanation/placement.md` says, rule by
//! rule, what the paper says and what is our reading.

mod arrivals;
mod decision;
mod hash;
mod ids;
mod load;
mod policy;
mod repair;
mod sealing;
mod smoothed;
mod stages;
pub mod steering;
mod table;
mod vse;

pub use arrivals::Arrivals;
pub use decision::{Candidate, Decision, Facts, Hold, Move, Reason, UnitLoad, Verdict, WhyNot};
pub use hash::Hash;
pub use ids::{CoreId, NumaNode, TenantId, UnitId, VmId};
pub use load::{Load, Stage, StageLoads};
pub use policy::Policy;
pub use sealing::{NoFreeCore, sealing_core};
pub use smoothed::Smoothed;
pub use stages::{BadModel, NoStages, StageModel, Stages};
pub use table::{BadCores, CORES_MAX, Core, CoreTable, PINNED_MAX, Pinned, Role};
pub use vse::{Moves, Vse};
