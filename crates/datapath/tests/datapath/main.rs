//! The datapath as the node uses it, with ports in memory.

#![expect(clippy::unwrap_used, reason = "tests")]

mod captures;
mod conservation;
mod controller;
mod drops;
mod faults;
mod forwarding;
mod lifecycle;
mod line;
mod losses;
mod many;
mod queues;
mod rig;
mod rungs;
mod steering;
mod storms;
mod tap;
mod time;
mod tunnels;
mod vlinks;
mod why;
