//! # flow: what happens to a packet
//!
//! (essay: to be written by the crate's author)

mod action;
mod packet;

pub use action::{Action, Instructions, Output, PortNo};
pub use packet::{Packet, PacketIn, PacketInReason, Sink, Then};
