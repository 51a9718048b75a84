//! Steering as its user meets it: no node runs, an interface is attached, flows go where they were asked to, the node is killed and comes
//! back, and in the end nothing is left.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod beside;
mod captures;
mod flows;
mod host;
mod kills;
mod refusals;
mod traces;
mod tunnels;
mod workers;

use acceptance::{Kind, Lab, privileged, until};
use host::Host;
