//! # domain: from a tenant's file to what each node holds
//!
//! **Question answered**: may this slice be, and if so, what is on which node?
//!
//! Two files come in. [`Slice`] is a tenant's: switches at sites, guests, links. [`Domain`] is the operator's: sites, underlays, nodes,
//! tenants. [`World`] is the domain with everything that has been admitted. From there it goes by functions of values:
//!
//! ```text
//! text ── parse ──▶ Slice ── admit(World) ──▶ Decision ── compile ──▶ { node: Part }
//!          all faults of a stage       what goes where, by             what PUT /v1/parts/{uid}
//!          at once, with lines         which way, with which ids       of that node takes
//! ```
//!
//! [`diff`](diff()) says what a new version of a slice changes, and what of it interrupts traffic. [`underlay`](compile::underlay) is the
//! part that every node has beside those of slices: the switch `K` with a tunnel to each node that it reaches. [`calendar`](calendar()) tells when
//! slices are, and each is promised what it has from its `from` to its `until` alone.
//!
//! ## Invariants
//!
//! * No I/O, clock, thread or chance. What is random (a slice's uid) and what time it is come in as values.
//! * The same world, slice and uid give the same decision and the same bytes. Any controller derives the same parts.
//! * Admitted is guaranteed: no node or segment is promised more than it has. What is refused says what would fit, and that is admitted.
//! * A link reaches its two ends and nothing else. Tunnel ids are even, one for each path; the odd one above is its probes'. An id is
//!   free, used or quarantined.
//! * What is not built yet is refused by a [`Fault`] that says so, never ignored.
//!
//! ## Source
//!
//! The words are those of the design: a U-switch is a user's, the K-switch is the node's own (RISE: user land and K-land).
//! Documents: `docs/reference/slice.md`, made from the grammar in [`mod@file`]; `docs/decisions/0029-slices.md`.

mod admit;
mod calendar;
pub mod compile;
mod decision;
mod diff;
mod fault;
pub mod file;
pub mod grammar;
mod ids;
mod names;
mod parse;
mod part;
mod path;
mod place;
#[cfg(test)]
mod reference;
mod room;
pub mod schema;
mod wire;
mod words;
mod world;
mod yaml;

pub use admit::admit;
pub use calendar::{Span, calendar};
pub use compile::compile;
pub use decision::{Circuit, Control, Decision, Door, Hop};
pub use diff::{Change, Plan, diff};
pub use fault::{Fault, Place};
pub use ids::Quarantine;
pub use names::{Names, door as door_port};
pub use parse::{Domain, Slice};
pub use part::{Part, PartSwitch, UNDERLAY};
pub use room::sites;
pub use wire::{OUTSIDE, Wire, wires};
pub use words::{Address, Cpu, Delay, End, EndPort, Moment, Name, Size, SliceKey, Uid};
pub use world::{Admitted, NodeFacts, World};
