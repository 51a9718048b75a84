//! Tunnel ids: what rules see of the tunnel that a frame came by, and which one they choose.

use crate::line::sender;
use crate::rig::{Rig, at, from, output, set, udp};
use crate::time::{Manual, wait};
use datapath::{BitRate, Config, PortQueues, QueueRates};
use flow::{Action, Output};
use wire::Field;

/// Switch 1 with ordinary ports 1 and 2 and the tunnel 9.
fn rig() -> Rig {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[]);
    rig.tunnel(1, 9);
    rig
}

#[test]
fn rules_match_the_id_that_a_frame_came_with_and_that_of_other_ports_is_0() {
    let mut rig = rig();
    let with = |id, port| (10, vec![(Field::TunnelId, id)], vec![output(port)]);
    rig.rules(1, &[with(7, 1), with(8, 2), with(0, 9)]);
    for id in [7, 8, 7, 9] {
        rig.line(1, 9).put_by(id, udp(0, id as u8, 20));
    }
    rig.line(1, 9).settle();
    assert_eq!(rig.line(1, 1).take_bytes(), [udp(0, 7, 20), udp(0, 7, 20)]);
    assert_eq!(rig.line(1, 2).take_bytes(), [udp(0, 8, 20)]);
    // The slots that had the tunnel's frames have these now.
    rig.line(1, 1).pass((0..64).map(|flow| udp(flow, 1, 20)));
    assert_eq!(rig.line(1, 9).take_tunnel_ids(), [0; 64]);
}

#[test]
fn rules_match_who_sent_a_frame_and_choose_where_it_goes() {
    let mut rig = rig();
    let by = |id: u32| vec![(Field::TunSrc, sender(id).into())];
    let back = vec![set(Field::TunDst, 5), Action::Output(Output::InPort)];
    rig.rules(1, &[(10, by(7), vec![output(1)]), (10, by(8), back)]);
    for id in [7, 8, 9] {
        rig.line(1, 9).put_by(id, udp(0, id as u8, 20));
    }
    rig.line(1, 9).settle();
    assert_eq!(rig.line(1, 1).take_bytes(), [udp(0, 7, 20)]);
    assert_eq!(rig.line(1, 9).take_tunnels(), [(8, 5)]);
    let ends = [1, 2, u16::MAX].map(|end| [set(Field::TunDst, end.into()), output(9)]);
    rig.rules(1, &[from(1, ends.concat()), from(2, vec![output(9)])]);
    rig.line(1, 1).pass((0..40).map(|flow| udp(flow, 1, 300)));
    let sent = rig.line(1, 9).take_tunnels();
    let to = |end| sent.iter().filter(|&&other| other == (0, end)).count();
    assert_eq!((to(1), to(2), to(u16::MAX)), (40, 40, 40));
    rig.line(1, 2).pass([udp(1, 1, 20)]);
    assert_eq!(rig.line(1, 9).take_tunnels(), [(0, 0)], "nobody chose");
}

#[test]
fn runts_take_no_other_frames_id() {
    let mut rig = rig();
    rig.rules(1, &[(10, vec![(Field::TunnelId, 7)], vec![output(1)])]);
    for (id, frame) in [(8, udp(0, 8, 20)), (8, vec![0; 13]), (7, udp(0, 7, 20)), (8, vec![])] {
        rig.line(1, 9).put_by(id, frame);
    }
    rig.line(1, 9).settle();
    assert_eq!(rig.line(1, 1).take_bytes(), [udp(0, 7, 20)]);
}

#[test]
fn each_copy_leaves_with_the_id_that_was_set_before_it_and_an_id_that_came_stays() {
    let mut rig = rig();
    let id = |id| set(Field::TunnelId, id);
    let twice = vec![id(7), output(9), id(0x1_0000_0000), output(9), id(8), output(9)];
    rig.rules(1, &[from(1, twice), from(9, vec![Action::Output(Output::InPort)])]);
    rig.line(1, 1).pass((0..40).map(|flow| udp(flow, 1, 300)));
    let ids = rig.line(1, 9).take_tunnel_ids();
    let of = |id| ids.iter().filter(|&&other| other == id).count();
    assert_eq!((of(7), of(8), of(u32::MAX)), (40, 40, 40), "one too long is no other's");
    rig.line(1, 9).put_by(77, udp(0, 7, 20));
    rig.line(1, 9).settle();
    assert_eq!(rig.line(1, 9).take_tunnel_ids(), [77]);
}

#[test]
fn an_id_leaves_by_the_tunnel_and_stays_behind_on_a_vlink() {
    let mut rig = rig();
    let both = vec![set(Field::TunnelId, 7), set(Field::TunDst, 3), output(9), output(3)];
    rig.rules(1, &[from(1, both.clone()), from(2, both.into_iter().rev().collect())]);
    let nothing = [Field::TunnelId, Field::TunSrc, Field::TunDst].map(|field| (field, 0)).to_vec();
    rig.switch(2, &[1], &[(10, nothing, vec![output(1)])]);
    rig.tunnel(2, 9);
    rig.vlink(at(1, 3), at(2, 3));
    rig.line(1, 1).pass((0..40).map(|flow| udp(flow, 1, 20)));
    assert_eq!(rig.line(1, 9).take_tunnel_ids(), [7; 40]);
    assert_eq!(rig.line(2, 1).take().len(), 40);
    rig.line(1, 2).pass([udp(1, 1, 20)]);
    assert_eq!(rig.line(1, 9).take_tunnel_ids(), [0], "set after the output");
}

#[test]
fn frames_that_wait_in_a_queue_leave_with_their_ids() {
    let clock = Manual::default();
    clock.pass(1_000_000_000);
    let mut rig =
        Rig::with_clock(Config { cache_entries: 4096, ..Config::default() }, clock.clone());
    let to = vec![set(Field::TunnelId, 7), set(Field::TunDst, 3), output(9)];
    rig.switch(1, &[1], &[from(1, to)]);
    rig.tunnel(1, 9);
    // 1000 bytes a millisecond, and ten frames of them at once.
    let queue = QueueRates { id: 0, min: None, max: BitRate::new(8_000_000) };
    rig.datapath.set_queues(at(1, 9), &PortQueues { rate: None, queues: vec![queue] }).unwrap();
    rig.line(1, 1).pass((0..12).map(|flow| udp(flow, 1, 1000 - 42)));
    assert_eq!(rig.line(1, 9).take_tunnels(), [(7, 3); 10]);
    for sent in [11, 12] {
        clock.pass(1_000_000);
        wait(|| rig.traffic(1, 9).1 == sent);
    }
    assert_eq!(rig.line(1, 9).take_tunnels(), [(7, 3); 2]);
}
