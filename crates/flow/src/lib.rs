//! # flow: what happens to a packet
//!
//! (essay: to be written by the crate's author)

mod action;
mod cache;
mod config;
mod flow_mod;
mod packet;
mod pipeline;
mod process;
mod snapshot;
mod stats;
mod time;

pub use action::{Action, Instructions, Output, PortNo};
pub use cache::Cache;
pub use config::{FragMode, Limits, Miss, SwitchConfig};
pub use flow_mod::{FlowCommand, FlowFlags, FlowMod, FlowModError};
pub use packet::{Packet, PacketIn, PacketInReason, Sink, Then};
pub use pipeline::Pipeline;
pub use process::{BATCH, execute, process};
pub use snapshot::Snapshot;
pub use stats::{Aggregate, FlowFilter, FlowStats, Removed, RemovedReason, TableStats};
pub use time::Nanos;
