//! # control: the domain's controller
//!
//! **Question answered**: how does what tenants declare get to the nodes, and how is it known that it works?
//!
//! ```text
//! users ── HTTP ──▶ Controller ── commit ──▶ Store        crate `domain` decides: admit, compile, diff
//!                       ▲  what a node shall have
//! nodes ── report ──────┘  (the answer to what it has)
//! ```
//!
//! * [`run`]: a controller from start to end. [`http`]: its API, of which the command line is a client.
//! * [`controller`]: the one owner of what is wanted, and of what nodes have said, which is its [`state`]. [`record`]: what of a slice is kept; [`kept`]: under
//!   which key. [`declared`]: files as users send them. [`show`]: what is told of it.
//! * [`doors`]: how callers come in, [`crowd`]: how many of one address; [`caller`], [`people`]: who they are; [`access`]: what each may; [`authority`]: what signs certificates.
//! * [`sessions`]: browsers that users signed in at, by [`password`], as often as [`attempts`] lets them.
//! * [`streams`]: how a node is asked although nobody can call it. [`ways`]: what it says of packets, in the slice's words.
//! * [`store`]: the trait of stores, and the embedded one.
//!
//! ## Invariants
//!
//! * What was answered as done is on disk. A controller holds nothing that it cannot read again: it may be killed at any time.
//! * Controllers never call nodes. A node says what it has and hears what it shall have; no step depends on an earlier answer having arrived.
//! * Parts are computed from spec and decision, never stored. Equal versions are not sent.
//! * A part goes only where a record says that it shall go, never because a controller does not know it.
//! * Each take-over of the store has a greater epoch than the one before; nodes obey no earlier one.
//! * Two locks: whom the controller knows, then its state. Nothing waits for a node under them.
//!
//! ## Source
//!
//! Reconciliation by level, not by event, as Kubernetes has made it usual. The decision: `docs/decisions/0030-nodes-call-out.md`.

pub mod access;
mod attempts;
pub mod authority;
pub mod caller;
pub mod controller;
mod crowd;
mod declared;
pub mod doors;
mod fault;
pub mod http;
mod kept;
mod links;
mod password;
pub mod people;
pub mod record;
pub mod run;
mod sessions;
mod shelf;
mod show;
pub mod state;
pub mod store;
mod streams;
mod ways;
