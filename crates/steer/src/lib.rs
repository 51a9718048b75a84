//! # steer: on which core is each flow processed, and why
//!
//! **Question answered**: given what the operator asked for, what the cores are doing now and which virtual machines are pinned where,
//! what should the kernel's steering program be told — and afterwards, why is this flow on that core?
//!
//! ```text
//!   rules, machines, policy            cores, QEMU, vhost threads
//!          │  (node: API, OpenFlow)           │  (node: looks around)
//!          ▼                                  ▼
//!   ┌──────────────────────────── Agent ─────────────────────────────┐
//!   │ rules ──claims──▶ entries        meter ──▶ core table ◀── roles │
//!   │ decisions ◀── events             policy (crate place) ──▶ moves │
//!   └───────▲──────────────────────────────┬─────────────────────────┘
//!           │ events, counters, times      │ entries, core table, moves
//!   ┌───────┴──────────────────────────────▼─────────────────────────┐
//!   │ Enforcer: an interface's XDP program (xdp), a switch (datapath) │
//!   └────────────────────────────────────────────────────────────────┘
//! ```
//!
//! ## Types
//!
//! * [`Agent`]: takes requests, is called at every [tick](Agent::tick), tells what is true.
//! * [`Rule`]: which frames, where to; text in, text out. It becomes entries of [`place::steering`], the words of all enforcers.
//! * [`Desired`], [`Journal`]: what a restart brings back. What may be asked for and what is shown is in `api::steer`.
//! * [`Surroundings`]: what the host is like, as the node found it.
//!
//! ## Invariants
//!
//! * No frame waits for the agent. The program has rules, core table and groups in its maps, decides by itself, and goes on with the last
//!   ones when the agent is gone.
//! * Pure: no I/O, clock or thread. Time, cores and guests are arguments; an [`Enforcer`](place::steering::Enforcer) does the rest.
//! * Each decision that is remembered has its reason and what was thought of every core.

mod agent;
mod desired;
mod error;
mod rule;
mod selector;
mod surroundings;

pub use agent::{Agent, CoreReport, HostReport, PlacementReport, Strictness};
pub use desired::{Change, Desired, Discard, Journal};
pub use error::{SteerError, SteerErrorKind};
pub use rule::{Filter, Frag, Own, Placing, Rule, Underlay, parse_filter, parse_rule};
pub use surroundings::{SeenVm, Surroundings};
