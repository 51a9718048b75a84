//! # flow: what happens to a packet
//!
//! **Question answered**: given a packet's key and a switch's tables, groups, meters and ports, what becomes of the packet
//! (OpenFlow 1.3.5 §5), and what does the switch tell of it afterwards?
//!
//! Pure: no I/O, clock, thread, `unsafe` or global state. Time is handed in ([`Nanos`]), verdicts are handed out ([`Sink`]).
//!
//! ## Two sides
//!
//! * [`Pipeline`] is the control thread's: flow-mods, group-mods, meter-mods, ports, expiry, statistics.
//! * [`Snapshot`] is what workers see: [`Pipeline::snapshot`] makes one in about a microsecond, however many entries there
//!   are; [`process()`] and [`execute`] work on it with the worker's own [`Workspace`].
//!
//! ## How entries are kept (`store`, `table`)
//!
//! An entry is a *record*: packed key, program, lifetime and counters in one cache line, at a place that never
//! moves. All snapshots share it. Records and hash indexes are atomics, changed in place; a record carries the generations
//! that see it, so a snapshot is a generation number and a few pointers. What an old snapshot still sees is
//! freed when the pipeline finds that nobody holds that snapshot: on the control thread, never on a worker.
//! A million five-tuples take about 120 bytes each, everything included.
//!
//! ## How packets are looked up (`template`)
//!
//! Each table takes the cheapest of six forms: empty, one entry, exact hash, longest prefix, a list of hashed masks, and bit
//! vectors for whatever is left (there is a table in `template.rs`). Batches go through in passes, so that the cache
//! misses of 32 packets overlap.
//!
//! **Bound.** With K masks allowed ([`Limits::masks`], default 32), one table costs a packet at most
//! K + 48 probes, whatever entries and packets are sent: K hashed masks, and 16 blocks of 1024 entries, each compared
//! once and read in two strips. A hash probe looks at no more than 8 cache lines (one, in all but a few cases). A
//! pipeline's own bound is [`Snapshot::probe_bound`]; each table's is in its [`TableStats`], beside the probes spent.
//! A table in which more than 8192 entries lie outside its K largest masks refuses entries with
//! [`FlowModError::TableFull`]: the bound is kept by refusing, never by slowing down.
//!
//! A packet need not be parsed deeper than the tables and programs of its switch look: [`Snapshot::depth`] says how deep that is. Where a batch goes one
//! way as it is, its packets need not be looked at one by one ([`Snapshot::decide_batch`]); where it goes one way after the same edits, nothing is kept of each but its key
//! ([`Snapshot::decide_uniform`]).
//!
//! In front of the tables, each worker has a cache of finished traces in its [`Workspace`], used while it pays and passed by when not.
//!
//! ## What becomes of a frame (`resolve`)
//!
//! [`Snapshot::resolve`] answers for all frames with some bits in common, and says until when ([`Snapshot::holds`]). It counts and changes nothing.
//!
//! ## How packets are changed and sent (`exec`)
//!
//! Programs, action sets, groups and meters: see `exec.rs`, `group.rs` and `meter.rs`. A program that is edits and then one
//! output, as most are, is also kept in a short form that needs none of their accounts: `exec/linear.rs`.

mod action;
mod action_set;
mod at;
#[doc(hidden)]
#[cfg(feature = "bench")]
pub mod bench;
mod cache;
mod config;
mod credit;
mod exec;
mod flow_mod;
mod group;
mod idmap;
mod limits;
mod mac;
mod meter;
mod near;
mod packet;
mod pipeline;
mod ports;
mod process;
mod program;
mod resolve;
mod serials;
mod snapshot;
mod stats;
mod store;
mod storm;
mod table;
mod table_set;
mod tally;
mod template;
mod time;
mod validate;
mod versions;

pub use action::{Action, ActionError, Instructions, Output, PortNo, Transport, Wording};
pub use at::{PortAt, SwitchId};
pub use cache::CacheCounts;
pub use config::{FragMode, Limits, Miss, SwitchConfig};
pub use credit::Credits;
pub use flow_mod::{FlowCommand, FlowFlags, FlowMod, FlowModError};
pub use group::{
    Bucket, GroupKind, GroupLimits, GroupMod, GroupModError, GroupStats, GroupTable, GroupView,
};
pub use limits::{MAX_GROUP, MAX_PORT};
pub use mac::{DEFAULT_MAC_AGEING_S, DEFAULT_MAC_ENTRIES, MacEntry, MacTable};
pub use meter::{
    Band, BandKind, BucketShape, CONTROLLER_METER, MAX_METER, MeterConfig, MeterLimits, MeterMod,
    MeterModError, MeterStats, MeterTable, MeterUnit, MeterVerdict, RateUnit, Refused,
    SharedBucket, Taken, UNITS, Word, ahead, units,
};
pub use near::{Near, NearMiss, open_field};
pub use packet::{Packet, PacketIn, PacketInReason, Sink, Then};
pub use pipeline::{Chosen, EntryId, Pipeline, Portion};
pub use ports::{PortState, PortTable};
pub use process::{PortDecision, UniformDecision, Workspace, execute, process};
pub use resolve::{Asked, Exit, Hit, Leaving, Memory, Metered, Resolved, Stamp, Stop, To, Visitor};
pub use serials::Serials;
pub use snapshot::Snapshot;
pub use stats::{Aggregate, FlowFilter, FlowStats, Removed, RemovedReason, TableStats};
pub use table_set::TableSet;
pub use tally::{Counted, Tally};
pub use time::Nanos;
pub use validate::{validate, validate_packet_out};
