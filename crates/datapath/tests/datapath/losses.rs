//! Every lost frame arrives at the tap, with its reason, its port and its bytes.

use crate::line::Fault;
use crate::rig::{Rig, at, controller, from, output, udp};
use crate::tap::{Loss, Seen};
use datapath::{BitRate, Config, PortAt, PortQueues, QueueRates};
use flow::Action;
use std::collections::BTreeMap;
use wire::{DropReason, Field};

fn rig() -> (Rig, Seen) {
    let seen = Seen::default();
    let config = Config { cache_entries: 4096, tap: seen.tap(), ..Config::default() };
    (Rig::with(config), seen)
}

/// Losses of these frames, all alike.
fn all(at: PortAt, reason: DropReason, frames: &[Vec<u8>]) -> Vec<Loss> {
    let mut losses: Vec<_> = frames.iter().map(|bytes| (at, reason, Some(bytes.clone()))).collect();
    losses.sort();
    losses
}

/// Frames that differ, each longer than a head.
fn frames(count: u16, len: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| udp(n, n as u8, len - 42)).collect()
}

#[test]
fn what_a_switch_drops_arrives_with_its_ingress_port() {
    let (mut rig, seen) = rig();
    let expires = [Action::SetNwTtl(1), Action::DecNwTtl, output(1)];
    let rules = [
        from(1, vec![]),
        (10, vec![(Field::InPort, 2), (Field::EthType, 0x800)], expires.to_vec()),
        from(3, vec![output(9)]),
        from(5, vec![output(5)]),
        (20, vec![(Field::InPort, 6), (Field::TpSrc, 1)], vec![output(1)]),
    ];
    rig.switch(1, &[1, 2, 3, 4, 5, 6], &rules);
    let reasons = [
        (1, DropReason::ByRule),
        (3, DropReason::NoPort),
        (4, DropReason::NoMatch),
        (5, DropReason::NoDestination),
        (6, DropReason::NoMatch),
    ];
    for (port, reason) in reasons {
        let frames = frames(100, 600);
        rig.line(1, port).pass(frames.clone());
        assert_eq!(seen.take(), all(at(1, port), reason, &frames), "port {port}");
    }
    let runts = vec![vec![7; 13]; 3];
    rig.line(1, 1).pass(runts.clone());
    assert_eq!(seen.take(), all(at(1, 1), DropReason::Runt, &runts));
    // Lost as it was when its TTL ran out.
    rig.line(1, 2).pass(frames(1, 600));
    let expired = seen.take();
    let [(place, DropReason::TtlExpired, Some(bytes))] = &expired[..] else {
        panic!("{expired:?}")
    };
    assert_eq!((*place, bytes[22], bytes.len()), (at(1, 2), 1, 600));
}

#[test]
fn what_a_port_loses_arrives_with_that_port() {
    let (mut rig, seen) = rig();
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let frames = frames(100, 1000);
    let lost = |reason, at: PortAt| {
        rig.line(1, 1).pass(frames.clone());
        assert_eq!(seen.take(), all(at, reason, &frames), "{reason:?}");
    };
    rig.line(1, 2).set_fault(Some(Fault::TxFull));
    lost(DropReason::TxFull, at(1, 2));
    rig.line(1, 2).set_fault(None);
    rig.datapath.set_mtu(at(1, 2), 900);
    lost(DropReason::TooBig, at(1, 2));
    rig.datapath.set_up(at(1, 2), false);
    lost(DropReason::PortDown, at(1, 2));
    rig.datapath.set_up(at(1, 1), false);
    lost(DropReason::PortDown, at(1, 1));
}

#[test]
fn what_a_port_may_not_receive_what_a_vlink_does_not_take_and_what_a_queue_does_not_hold_arrive() {
    let (mut rig, seen) = rig();
    rig.switch(1, &[1, 2, 3], &[from(1, vec![output(3)]), from(3, vec![output(2)])]);
    rig.switch(2, &[1], &[]);
    rig.vlink(at(1, 9), at(2, 9));
    rig.rules(1, &[from(2, vec![output(9)])]);
    let frames = frames(100, 1000);
    rig.datapath.set_mtu(at(1, 9), 900);
    rig.line(1, 2).pass(frames.clone());
    assert_eq!(seen.take(), all(at(1, 9), DropReason::TooBig, &frames));
    let queue = QueueRates { id: 0, min: None, max: BitRate::new(8_000) };
    rig.datapath.set_queues(at(1, 3), &PortQueues { rate: None, queues: vec![queue] }).unwrap();
    // The queue holds 128 KiB.
    let many: Vec<_> = (0..10).flat_map(|_| frames.clone()).collect();
    rig.line(1, 1).pass(many.clone());
    let lost = seen.take();
    assert!(lost.len() > 800 && lost.iter().all(|loss| loss.0 == at(1, 3)), "{}", lost.len());
    assert!(lost.iter().all(|loss| loss.1 == DropReason::QueueFull));
    assert!(lost.iter().all(|loss| frames.contains(loss.2.as_ref().unwrap())));
    rig.set_no_recv(at(1, 1));
    rig.line(1, 1).pass(frames.clone());
    assert_eq!(seen.take(), all(at(1, 1), DropReason::PortNoReceive, &frames));
}

#[test]
fn every_count_of_every_counter_is_a_loss_that_arrived() {
    let (mut rig, seen) = rig();
    rig.switch(
        1,
        &[1, 2],
        &[
            (9, vec![(Field::EthType, 0x800), (Field::TpSrc, 1000)], vec![controller(60)]),
            (9, vec![(Field::EthType, 0x800), (Field::TpSrc, 1001)], vec![output(2), output(9)]),
            (9, vec![(Field::EthType, 0x800), (Field::TpSrc, 1002)], vec![output(3)]),
        ],
    );
    rig.switch(2, &[1], &[from(2, vec![output(3)])]);
    rig.vlink(at(1, 3), at(2, 2));
    rig.publisher(1).set_packet_in_rate(1, 1);
    let frames: Vec<_> = (0..400u16).map(|n| udp(n % 5, n as u8, usize::from(n) * 5)).collect();
    rig.line(1, 1).pass(frames.clone());
    let lost = seen.take();
    let mut arrived = BTreeMap::<_, u64>::new();
    lost.iter().for_each(|&(at, reason, _)| *arrived.entry((at.switch, reason)).or_default() += 1);
    let counted: BTreeMap<_, u64> = [1, 2]
        .into_iter()
        .flat_map(|switch| {
            let id = datapath::SwitchId(switch);
            let drops = rig.datapath.switch_counters(id).unwrap().drops;
            drops.into_iter().map(move |(reason, count)| ((id, reason), count))
        })
        .collect();
    assert_eq!(arrived, counted);
    assert!(counted.len() > 4, "{counted:?}");
    assert!(lost.iter().all(|loss| frames.contains(loss.2.as_ref().unwrap())));
}
