//! # steer: on which core is each flow processed, and why
//!
//! **Question answered**: given what the operator asked for, what the cores are doing now and which virtual machines are pinned where,
//! what should the kernel's steering program be told — and afterwards, why is this flow on that core?
//!
//! ```text
//!   rules, machines, policy            cores, QEMU, vhost threads
//!          │  (node: API, OpenFlow)           │  look_around
//!          ▼                                  ▼
//!   ┌──────────────────────────── Agent ─────────────────────────────┐
//!   │ rules ──claims──▶ entries        meter ──▶ core table ◀── roles │
//!   │ decisions ◀── events             policy (crate place) ──▶ moves │
//!   └───────▲──────────────────────────────┬─────────────────────────┘
//!           │ events, counters, times      │ entries, core table, moves
//!   ┌───────┴──────────────────────────────▼─────────────────────────┐
//!   │ Enforcer: the XDP program of one interface (crate xdp)          │
//!   └────────────────────────────────────────────────────────────────┘
//! ```
//!
//! ## Types
//!
//! * [`Agent`]: takes requests, is called at every [tick](Agent::tick), tells what is true.
//! * [`Rule`]: which frames, where to; text in, text out. [`Selector`]: the same as bits.
//! * [`Enforcer`], [`Opener`]: what an enforcement point must do. [`Kernel`] opens the kernel's.
//! * [`Desired`], [`Journal`]: what a restart brings back. What may be asked for and what is shown is in `api::steer`.
//! * [`Surroundings`]: what [`look_around`] found on the host.
//!
//! ## Invariants
//!
//! * No frame waits for the agent. The program has rules, core table and groups in its maps, decides by itself, and goes on with the last
//!   ones when the agent is gone.
//! * The agent has no clock and no thread: time is an argument.
//! * Each decision that is remembered has its reason and what was thought of every core.

mod agent;
mod cores;
mod desired;
mod enforcer;
mod error;
mod kernel;
mod look;
mod rule;
mod selector;
mod surroundings;
mod vms;
mod workers;

pub use agent::{Agent, CoreReport, HostReport, PlacementReport, Strictness};
pub use desired::{Change, Desired, Discard, Journal};
pub use enforcer::{
    CoreTimes, EnforceError, Enforcer, Entry, EntryKey, EntryStatus, Event, OpenError, Opener,
    Step, UnitStatus, Urgency,
};
pub use error::{SteerError, SteerErrorKind};
pub use kernel::Kernel;
pub use look::{Roots, look_around};
pub use rule::{Filter, Frag, Own, Placing, Rule, Target, Underlay, parse_filter, parse_rule};
pub use selector::Selector;
pub use surroundings::{SeenVm, Surroundings};
pub use workers::{Rungs, Workers};
pub use xdp::steer::set_prompt;
