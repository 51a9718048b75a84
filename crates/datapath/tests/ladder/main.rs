//! One verdict, whatever rung takes a frame: the same switches and the same batches give the same frames, counters and losses.
//!
//! Each case makes two switches that a vlink joins: random tables, groups, meters, port states and settings. It sends them random
//! batches, once with all rungs, once with `pass` alone, and once without each of the others. A worker's rungs may differ in cost only.
//! In every third case, guests' rings are between, so that frames may go from one to another unread.

#![expect(clippy::unwrap_used, reason = "tests")]

mod case;
mod host;
#[path = "../datapath/line.rs"]
#[expect(dead_code, reason = "shared with the other tests of the datapath")]
mod line;
mod random;
mod ring;
#[path = "../datapath/tap.rs"]
mod tap;

use case::Case;
use datapath::{Rung, Rungs};
use host::{Host, Outcome};
use std::collections::BTreeMap;
use wire::DropReason;

/// Cases of one run.
const CASES: u64 = 600;

/// All rungs, the last alone, and all but each of the others.
fn variants() -> Vec<Rungs> {
    let without = Rung::ALL.into_iter().filter(|&rung| rung != Rung::Pass);
    [Rungs::ALL, Rungs::PASS]
        .into_iter()
        .chain(without.map(|rung| Rungs::ALL.without(rung)))
        .collect()
}

#[test]
fn whatever_rung_takes_a_frame_becomes_of_it_what_the_pass_makes_of_it() {
    let hosts: Vec<_> = variants().into_iter().map(Host::new).collect();
    let mut reasons = BTreeMap::<DropReason, u64>::new();
    let (mut frames, mut punts) = (0, 0);
    for seed in 1..=CASES {
        let case = Case::new(seed);
        let mut outcomes = hosts.iter().map(|host| host.run(&case));
        let expected = outcomes.next().unwrap();
        for (host, outcome) in hosts[1..].iter().zip(outcomes) {
            compare(seed, host, &expected, &outcome);
        }
        frames += case.frames();
        punts += expected.punts.len();
        expected.losses.iter().for_each(|loss| *reasons.entry(loss.1).or_default() += 1);
    }
    eprintln!("{CASES} cases, {frames} frames, {} sets of rungs, {punts} packet-ins", hosts.len());
    for host in &hosts {
        let [port, pattern] = host.unread();
        eprintln!("  {}; unread: port {port}, pattern {pattern}", host.summary());
    }
    eprintln!("  lost: {reasons:?}");
    // What the cases do not reach proves nothing.
    assert!(hosts[0].taken().iter().all(|&frames| frames > 1000), "{}", hosts[0].summary());
    let [port, pattern] = hosts[0].unread();
    assert!(port > 500 && (pattern > 500 || !vhost::Vring::compares()), "{port} {pattern}");
    assert!(punts > 100 && reasons.len() > 12, "{reasons:?}");
}

/// Fails with the first part that differs.
fn compare(seed: u64, host: &Host, expected: &Outcome, outcome: &Outcome) {
    let of = |what: &str| format!("seed {seed}, {}, against all rungs: {what}", host.name());
    for (at, sent) in &expected.sent {
        let (one, other) = (&sent.0, &outcome.sent[at].0);
        let first = one.iter().zip(other).position(|(one, other)| one != other);
        let lens = (one.len(), other.len());
        assert_eq!((first, lens.0), (None, lens.1), "{}", of(&format!("frames sent by {at}")));
        assert_eq!(sent.1, outcome.sent[at].1, "{}", of(&format!("tunnels told by {at}")));
    }
    assert_eq!(outcome.losses, expected.losses, "{}", of("frames lost"));
    assert_eq!(outcome.ports, expected.ports, "{}", of("counters of ports"));
    assert_eq!(outcome.queues, expected.queues, "{}", of("counters of queues"));
    assert_eq!(outcome.switches, expected.switches, "{}", of("counters of switches"));
    assert_eq!(outcome.entries, expected.entries, "{}", of("counters of entries"));
    assert_eq!(outcome.tables, expected.tables, "{}", of("counters of tables"));
    assert_eq!(outcome.groups, expected.groups, "{}", of("counters of groups"));
    assert_eq!(outcome.meters, expected.meters, "{}", of("counters of meters"));
    assert_eq!(outcome.macs, expected.macs, "{}", of("learned addresses"));
    assert_eq!(outcome.punts, expected.punts, "{}", of("packet-ins"));
}
