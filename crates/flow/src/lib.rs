//! # flow: what happens to a packet
//!
//! (essay: to be written by the crate's author)

mod action;
mod action_set;
#[doc(hidden)]
pub mod bench;
mod cache;
mod config;
mod exec;
mod flow_mod;
mod group;
mod idmap;
mod mac;
mod meter;
mod packet;
mod pipeline;
mod ports;
mod process;
mod program;
mod snapshot;
mod stats;
mod store;
mod table;
mod tally;
mod template;
mod time;
mod validate;

pub use action::{Action, Instructions, Output, PortNo};
pub use cache::Cache;
pub use config::{FragMode, Limits, Miss, SwitchConfig};
pub use flow_mod::{FlowCommand, FlowFlags, FlowMod, FlowModError};
pub use group::{
    Bucket, GroupKind, GroupLimits, GroupMod, GroupModError, GroupStats, GroupTable, GroupView,
    MAX_GROUP,
};
pub use mac::{DEFAULT_MAC_AGEING_S, DEFAULT_MAC_ENTRIES, MacEntry, MacTable};
pub use meter::{
    Band, BandKind, CONTROLLER_METER, MAX_METER, MeterConfig, MeterLimits, MeterMod, MeterModError,
    MeterStats, MeterTable, MeterUnit,
};
pub use packet::{Packet, PacketIn, PacketInReason, Sink, Then};
pub use pipeline::{EntryId, Pipeline};
pub use ports::{PortState, PortTable};
pub use process::{BATCH, execute, process};
pub use snapshot::Snapshot;
pub use stats::{Aggregate, FlowFilter, FlowStats, Removed, RemovedReason, TableStats};
pub use tally::{Counted, Tally};
pub use time::Nanos;
pub use validate::{ActionError, MAX_PORT, validate, validate_packet_out};
