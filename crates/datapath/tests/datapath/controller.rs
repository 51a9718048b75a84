//! Frames to and from the controller.

use crate::line::Wired;
use crate::rig::{Rig, at, controller, from, output, set, udp};
use datapath::{Config, Event, PacketOut, PacketOutError, Punt, SwitchId};
use flow::{Action, Output, PacketInReason};
use wire::build::{Frame, Ipv4, Tcp};
use wire::{DropReason, Field, Gso, Offload};

/// Data, total length, ingress port of a packet-in.
fn packet_in(event: Event) -> (Vec<u8>, u32, u32) {
    match event {
        Event::PacketIn(Punt { frame, total_len, in_port, .. }) => {
            (frame.bytes().to_vec(), total_len, in_port)
        }
        other => panic!("{other:?} is not a packet-in"),
    }
}

#[test]
fn a_packet_in_has_the_frame_as_it_is_then_cut_at_max_len() {
    let mut rig = Rig::new(1);
    let actions = vec![
        set(Field::EthDst, 1),
        controller(100),
        set(Field::EthDst, 2),
        controller(0xffff),
        output(2),
    ];
    rig.switch(1, &[1, 2], &[from(1, actions)]);
    let frame = udp(0, 9, 700);
    rig.line(1, 1).pass([frame.clone()]);
    let readdressed = |last: u8| [&[0, 0, 0, 0, 0, last], &frame[6..]].concat();
    assert_eq!(packet_in(rig.event()), (readdressed(1)[..100].to_vec(), frame.len() as u32, 1));
    let Event::PacketIn(Punt { switch, frame, why, .. }) = rig.event() else {
        panic!("not a packet-in")
    };
    let data = frame.bytes().to_vec();
    assert_eq!(
        (switch, data, why.reason, why.table),
        (SwitchId(1), readdressed(2), PacketInReason::Action, 0)
    );
    assert_eq!(rig.line(1, 2).take_bytes(), [readdressed(2)]);
    assert_eq!(rig.datapath.switch_counters(SwitchId(1)).unwrap().packet_ins, 2);
}

#[test]
fn a_packet_in_has_its_checksum_completed() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1], &[from(1, vec![controller(0xffff)])]);
    let frame = Frame::ethernet([2; 6], [4; 6])
        .ipv4(Ipv4::default())
        .tcp(Tcp::default())
        .payload(&[7; 999]);
    let (bytes, partial) = frame.clone().finish_partial().unwrap();
    let offload =
        |gso| Offload { checksum: Some(partial), gso, gso_size: 500, ..Offload::default() };
    rig.line(1, 1).pass([Wired { bytes: bytes.clone(), offload: offload(Gso::None) }]);
    assert_eq!(packet_in(rig.event()).0, frame.finish());
    rig.line(1, 1).pass([Wired { bytes, offload: offload(Gso::TcpV4) }]);
    let segments = [packet_in(rig.event()).0, packet_in(rig.event()).0];
    assert_eq!(segments.map(|segment| segment.len()), [54 + 500, 54 + 499]);
}

#[test]
fn a_large_frame_that_waited_leaves_as_it_came() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![controller(64)])]);
    rig.publisher(1).set_keeps_frames(true);
    let frame = Frame::ethernet([2; 6], [4; 6])
        .ipv4(Ipv4::default())
        .tcp(Tcp::default())
        .payload(&[7; 9000]);
    let (bytes, partial) = frame.clone().finish_partial().unwrap();
    let offload =
        Offload { checksum: Some(partial), gso: Gso::TcpV4, gso_size: 1000, ..Offload::default() };
    rig.line(1, 1).pass([Wired { bytes: bytes.clone(), offload }]);
    let Event::PacketIn(punt) = rig.event() else { panic!("not a packet-in") };
    assert!(punt.frame.is_whole());
    assert_eq!(punt.frame.bytes(), frame.finish());
    let (frame, offload) = punt.frame.into_sendable();
    let out = PacketOut { offload, ..packet_out(1, vec![output(2)], frame) };
    rig.datapath.packet_out(out).unwrap();
    rig.datapath.barrier();
    let sent = rig.line(1, 2).take();
    assert_eq!(sent.len(), 1, "a port that takes segments gets one frame");
    assert_eq!((&sent[0].bytes, sent[0].offload.gso_size), (&bytes, 1000));
}

#[test]
fn long_frames_that_wait_are_bounded_by_their_bytes() {
    let config = Config { packet_in_ring: 400, ..Config::default() };
    let mut rig = Rig::with(config);
    rig.switch(1, &[1], &[from(1, vec![controller(0xffff)])]);
    rig.line(1, 1).pass((0..100).map(|i| udp(i, 0, 9 * 1024)));
    assert_eq!(rig.drops(1, DropReason::PacketInFull), 90, "a hundred places, ten for each");
}

#[test]
fn a_storm_of_one_switch_leaves_room_for_another() {
    let config = Config { packet_in_ring: 400, ..Config::default() };
    let mut rig = Rig::with(config);
    for switch in [1, 2] {
        rig.switch(switch, &[1], &[from(1, vec![controller(64)])]);
    }
    rig.line(1, 1).pass((0..1000).map(|i| udp(i, 0, 0)));
    rig.line(2, 1).pass((0..50).map(|i| udp(i, 0, 0)));
    assert_eq!(
        (rig.drops(1, DropReason::PacketInFull), rig.drops(2, DropReason::PacketInFull)),
        (900, 0)
    );
    rig.events.acknowledge();
    let events: Vec<_> = std::iter::from_fn(|| rig.events.pop()).collect();
    assert_eq!(events.len(), 150);
    rig.line(1, 1).pass((0..10).map(|i| udp(i, 0, 0)));
    assert_eq!(rig.drops(1, DropReason::PacketInFull), 900, "what was taken makes room");
}

#[test]
fn a_switch_may_be_denied_packet_ins() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![controller(64), output(2)])]);
    rig.publisher(1).set_packet_in_rate(0, 0);
    rig.line(1, 1).pass([udp(0, 0, 0)]);
    assert_eq!((rig.drops(1, DropReason::PacketInFull), rig.line(1, 2).take().len()), (1, 1));
}

fn packet_out(switch: u32, actions: Vec<Action>, frame: Vec<u8>) -> PacketOut {
    let (switch, offload) = (SwitchId(switch), Default::default());
    PacketOut { switch, in_port: 0xffff_fffd, frame, offload, actions }
}

#[test]
fn a_packet_out_leaves_by_its_actions() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[(1, vec![(Field::InPort, 0xffff_fffd)], vec![output(2)])]);
    let frame = udp(0, 3, 1000);
    rig.datapath.packet_out(packet_out(1, vec![output(1)], frame.clone())).unwrap();
    rig.datapath
        .packet_out(packet_out(1, vec![Action::Output(Output::Table)], frame.clone()))
        .unwrap();
    rig.datapath
        .packet_out(packet_out(1, vec![Action::Output(Output::Flood)], frame.clone()))
        .unwrap();
    rig.datapath.packet_out(packet_out(1, vec![output(1)], vec![0; 5])).unwrap();
    rig.datapath.barrier();
    assert_eq!(rig.line(1, 1).take_bytes(), [&frame[..], &frame].map(<[u8]>::to_vec));
    assert_eq!(rig.line(1, 2).take_bytes(), [&frame[..], &frame].map(<[u8]>::to_vec));
    assert_eq!(rig.drops(1, DropReason::Runt), 1);
    assert_eq!(rig.datapath.switch_counters(SwitchId(1)).unwrap().packet_outs, 4);
}

#[test]
fn a_packet_out_crosses_vlinks() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[], &[]);
    rig.switch(2, &[10], &[from(1, vec![output(10)])]);
    rig.vlink(at(1, 2), at(2, 1));
    rig.datapath.packet_out(packet_out(1, vec![output(2)], udp(0, 0, 1000))).unwrap();
    rig.datapath.barrier();
    assert_eq!(rig.line(2, 10).take_bytes(), [udp(0, 0, 1000)]);
}

#[test]
fn a_packet_out_for_no_switch_is_refused() {
    let rig = Rig::new(1);
    let refused = rig.datapath.packet_out(packet_out(9, vec![], udp(0, 0, 0)));
    assert_eq!(refused, Err(PacketOutError::NoSwitch(SwitchId(9))));
}
