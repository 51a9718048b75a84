//! # steering: the words in which an agent and its enforcers speak
//!
//! **Question answered**: which frames go where, as what, by whose choice, and what became of it?
//!
//! An *entry* is a [`Selector`], bits of a [`FlowKey`], and a [`Target`]. Its frames are one *unit*, which has a core and moves as one;
//! frames that no entry selects are in the unit of their flow group, or [stay](Unmatched). The agent (crate `steer`) changes entries by
//! [`Step`]s and has units moved; an [`Enforcer`] carries it out, counts, and tells [`Event`]s. An [`Opener`] makes enforcers.
//!
//! Pure values and two traits. A rule means the same frames, and a word the same thing, wherever it is enforced.

mod enforcer;
mod entry;
mod error;
mod key;
mod options;
mod selector;
mod unit;

pub use enforcer::{Enforcer, Opener};
pub use entry::{Entry, EntryKey, EntryStatus, Step, Target};
pub use error::{EnforceError, OpenError};
pub use key::{FLOW_WORD5, FLOW_WORDS, Field, FlowKey, TUNNEL, VLAN, WORDS};
pub use options::{GROUPS_MAX, MASKS, Options, PolicyKind, Unmatched};
pub use selector::Selector;
pub use unit::{CoreTimes, Event, UnitStatus, Urgency};
