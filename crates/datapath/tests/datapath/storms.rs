//! Storm control of a bridge's ports.

use crate::rig::{Rig, udp};
use crate::time::Manual;
use datapath::Config;
use wire::DropReason;

const SECOND: u64 = 1_000_000_000;

/// A bridge of three ports, floods of each of which may cause 1000 copies a second.
fn bridge() -> (Rig, Manual) {
    let clock = Manual::default();
    clock.pass(SECOND);
    let mut rig =
        Rig::with_clock(Config { cache_entries: 4096, ..Config::default() }, clock.clone());
    rig.switch(1, &[1, 2, 3], &[]);
    rig.bridge(1, 1000);
    (rig, clock)
}

/// A frame between these stations.
fn frame(from: u8, to: [u8; 6]) -> Vec<u8> {
    [&to[..], &[2, 0, 0, 0, 0, from], &udp(0, 0, 0)[12..]].concat()
}

const EVERYBODY: [u8; 6] = [0xff; 6];
const NOBODY: [u8; 6] = [2, 9, 9, 9, 9, 9];

fn station(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

#[test]
fn a_storm_of_a_port_is_damped_to_its_rate_and_no_other_ports_floods_are() {
    let (rig, clock) = bridge();
    rig.line(1, 1).pass((0..1000).map(|_| frame(1, EVERYBODY)));
    // One copy beyond the frame itself each; a tenth of a second is saved.
    assert_eq!(rig.traffic(1, 3).1, 100);
    assert_eq!(rig.drops(1, DropReason::Storm), 900);
    rig.line(1, 2).pass([frame(2, EVERYBODY)]);
    assert_eq!(rig.traffic(1, 3).1, 101, "another port has its own");
    clock.pass(SECOND / 20);
    rig.line(1, 1).pass((0..1000).map(|_| frame(1, EVERYBODY)));
    assert_eq!(rig.traffic(1, 3).1, 151);
}

#[test]
fn a_stream_that_floods_leaves_its_guest_broadcasts_and_known_stations() {
    let (rig, _clock) = bridge();
    rig.line(1, 3).pass([frame(3, EVERYBODY)]);
    rig.line(1, 1).pass((0..1000).map(|_| frame(1, NOBODY)));
    assert_eq!((rig.traffic(1, 2).1, rig.drops(1, DropReason::Storm)), (101, 900));
    rig.line(1, 1).pass([frame(1, EVERYBODY)]);
    assert_eq!(rig.traffic(1, 2).1, 102, "it can still ask who is there");
    rig.line(1, 1).pass((0..1000).map(|_| frame(1, station(3))));
    assert_eq!(rig.traffic(1, 3).1, 100 + 1 + 1000, "what is not flooded is no flood");
}

#[test]
fn a_bridge_of_two_ports_and_one_without_a_rate_damp_nothing() {
    let (mut rig, _clock) = bridge();
    rig.switch(2, &[1, 2], &[]);
    rig.bridge(2, 0);
    rig.line(2, 1).pass((0..10_000).map(|_| frame(1, NOBODY)));
    assert_eq!(rig.traffic(2, 2).1, 10_000, "no frame is multiplied");
    rig.on_miss(1, flow::Miss::Normal);
    rig.line(1, 1).pass((0..10_000).map(|_| frame(1, EVERYBODY)));
    assert_eq!(rig.traffic(1, 2).1, 10_000);
}

#[test]
fn what_a_port_has_left_outlives_changes_of_the_ports() {
    let (mut rig, _clock) = bridge();
    rig.line(1, 1).pass((0..1000).map(|_| frame(1, EVERYBODY)));
    rig.tunnel(1, 4);
    rig.line(1, 1).pass((0..10).map(|_| frame(1, EVERYBODY)));
    assert_eq!((rig.traffic(1, 4).1, rig.drops(1, DropReason::Storm)), (0, 910));
}
