//! What a switch tells whoever keeps its state: every rule, group and meter that came, changed or went.
//!
//! A switch calls its [`Journal`] right after a change took effect, while it still holds its own lock, so that the order of changes
//! is the order of calls. [`Journal::record`] never waits and never fails: it notes the latest state of each thing, and
//! the store writes it behind (see [`crate::store`]). Two rules keep that bounded and honest:
//!
//! * Before a session reads its next request it awaits [`Journal::room`]: a controller that changes rules faster than the disk takes
//!   them is slowed by its own TCP connection, and no one else's.
//! * A change made through the local API is answered only after [`Journal::flushed`].
//!
//! While a switch is being restored it has no journal, or [`Discard`].

use flow::{Counted, Instructions};
use openflow::{FixedText, GroupDesc, MeterConfig};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use wire::Key;

/// Which rule: no two rules of a table share priority, mask and masked key (OpenFlow 1.3.5 §5.2).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowId {
    /// Table.
    pub table: u8,
    /// Priority.
    pub priority: u16,
    /// What to match, masked.
    pub key: Key,
    /// Which bits to match.
    pub mask: Key,
}

/// The rest of a rule: everything that a restart must bring back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowEntry {
    /// Cookie.
    pub cookie: u64,
    /// Seconds without a packet after which it goes; 0 = never.
    pub idle_timeout_s: u16,
    /// Seconds after which it goes; 0 = never.
    pub hard_timeout_s: u16,
    /// `OFPFF_*` bits (OpenFlow 1.3.5 §7.3.4.1).
    pub flags: u16,
    /// How long ago it was added.
    pub age_ns: u64,
    /// For how long of that it has gone unused, as far as is known. Kept apart, by [`Change::Used`].
    pub idle_ns: u64,
    /// What it had counted when the node ended in order. Kept apart, by [`Change::Counted`].
    pub counted: Counted,
    /// What its sender said that neither match nor instructions hold ([`flow::FlowMod::note`]).
    pub note: u32,
    /// What it does.
    pub instructions: Instructions,
}

/// The tables of a pipeline, by number, with their names.
pub type TableNames = BTreeMap<u8, FixedText<32>>;

/// One change that took effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A rule is there, new or replaced.
    FlowSet(FlowId, FlowEntry),
    /// A rule is gone: deleted, expired or pushed out.
    FlowGone(FlowId),
    /// For how long rules have gone unused: all rules of a switch whose idle timeouts are of one class (see `switch::uses`).
    Used {
        /// The class.
        class: u8,
        /// Of each rule, in nanoseconds.
        idle_ns: Vec<(FlowId, u64)>,
    },
    /// What the rules have counted that have counted anything, at the end.
    Counted(Vec<(FlowId, Counted)>),
    /// A group is there, added so many nanoseconds ago.
    GroupSet(GroupDesc, u64),
    /// A group is gone.
    GroupGone(u32),
    /// A meter is there, added so many nanoseconds ago.
    MeterSet(MeterConfig, u64),
    /// A meter is gone.
    MeterGone(u32),
    /// The pipeline has these tables; `None` means all that there are, with the names that suiro gives them (OpenFlow 1.3.5 §7.3.5.5).
    Tables(Option<TableNames>),
    /// A port's `OFPPC_*` bits were set (OpenFlow 1.3.5 §7.2.1).
    PortConfig {
        /// The port's number.
        port: u32,
        /// The bits.
        bits: u32,
    },
}

/// Something to wait for, boxed so that [`Journal`] stays usable as a trait object.
pub type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Keeps one switch's state.
pub trait Journal: Send + Sync {
    /// Notes a change. Never waits.
    fn record(&self, change: Change);

    /// Ready when few enough changes of this switch wait to be written.
    fn room(&self) -> Wait<'_>;

    /// Ready when everything recorded before is on disk, or is known not to get there (the store logs that and says so in the API).
    fn flushed(&self) -> Wait<'_>;
}

/// A journal that keeps nothing: for tests, and for switches that live no longer than their process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Journal for Discard {
    fn record(&self, _: Change) {}

    fn room(&self) -> Wait<'_> {
        Box::pin(std::future::ready(()))
    }

    fn flushed(&self) -> Wait<'_> {
        Box::pin(std::future::ready(()))
    }
}
