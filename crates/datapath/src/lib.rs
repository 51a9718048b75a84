//! (essay to come)

mod clock;
mod collect;
mod command;
mod config;
mod counters;
mod crossing;
mod datapath;
mod engine;
mod event;
mod frames;
mod heads;
mod id;
mod local;
mod packet_in;
mod pass;
mod pending;
mod placement;
mod poller;
mod queues;
mod quota;
mod stats;
mod switch;
mod sys;
mod touch;
mod transmit;
mod worker;

pub use clock::{Clock, MonotonicClock};
pub use config::{Config, StartError};
pub use datapath::{AttachError, Datapath, PacketOut, PacketOutError, Queues};
pub use event::{Event, Events};
pub use id::{PortAt, SwitchId};
pub use stats::{Assignment, PortCounters, PortLoad, StageCycles, SwitchCounters, WorkerStats};
pub use switch::Publisher;
