//! Switches under real controllers: os-ken (a learning switch, a pipeline with groups and meters, steering by suiro's own messages), Faucet
//! (VLANs, ACLs, routing) and Debian's ovs-ofctl, with live guests on ports of every kind.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod faucet;
mod learning;
mod local;
mod mininet;
mod ofctl;
mod ofctl10;
mod pipeline;
mod queues;
mod rules;
mod steering;

use acceptance::{Kind, Lab};

const GUESTS: [&str; 3] = ["g1", "g2", "g3"];

/// The three guests on ports 1 to 3 of a switch: a TAP, a veth by packet socket, a veth by XDP.
fn connect_all(lab: &Lab, switch: &str) {
    for (guest, kind) in GUESTS.into_iter().zip(Kind::ALL) {
        lab.connect(switch, guest, kind);
    }
}

/// Every guest with every other.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let others = |from| GUESTS.into_iter().filter(move |&to| to != from).map(move |to| (from, to));
    GUESTS.into_iter().flat_map(others)
}
