//! vhost-user ports as their users meet them: guests played in this process, by the sockets that QEMU would use, and a node that is killed,
//! misled and left alone.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod attacks;
mod examples;
mod guest;
mod idle;
mod ports;
mod restarts;
mod strangers;

use acceptance::{Lab, Ofctl, privileged, until};
use guest::Guests;
