//! Packet buffers (OpenFlow 1.3.5 §6.1.2, §7.3.4.1, §7.3.7, §7.4.1) on frames that really wait and really leave.

use crate::harness::{Bench, Suite, entry, output, plain_frame};
use openflow::{
    Action, ErrorCode, FlowMod, Match, Message, OxmField, PacketInReason, PacketOut, PortNo,
};

/// Bytes of the frames, more than a controller is shown.
const LEN: usize = 1000;
const SHOWN: u16 = 64;

fn frame() -> Vec<u8> {
    let mut frame = plain_frame("buffers");
    frame.resize(LEN, 0xb0);
    frame
}

/// Everything goes to the controller, that many bytes of it.
fn to_controller(max_len: u16) -> FlowMod {
    entry(1, Match::default(), vec![Action::Output { port: PortNo::CONTROLLER, max_len }])
}

/// Sends the frame into port 1; its packet-in's buffer.
fn buffered(bench: &mut Bench) -> u32 {
    bench.add(&to_controller(SHOWN));
    let outcome = bench.send(1, &frame());
    assert!(outcome.frames.is_empty(), "it waits");
    let [found] = &outcome.packet_ins[..] else { panic!("{:?}", outcome.packet_ins) };
    assert_eq!((found.reason, usize::from(found.total_len)), (PacketInReason::Action, LEN));
    assert_eq!(found.data, frame()[..usize::from(SHOWN)]);
    found.buffer_id.expect("a buffer is free")
}

fn packet_out(id: u32, actions: Vec<Action>) -> Message {
    Message::PacketOut(PacketOut {
        buffer_id: Some(id),
        in_port: PortNo(1),
        actions,
        data: Vec::new(),
    })
}

/// What has come out of the ports.
fn out(bench: &mut Bench) -> Vec<(u32, Vec<u8>)> {
    bench.send_all::<Vec<u8>>(1, &[]).frames
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    suite.case("buffers::a_packet_out_sends_the_frame_whole_once", |bench| {
        let id = buffered(bench);
        bench.session.accept(&packet_out(id, vec![output(2), output(3)]));
        assert_eq!(out(bench), [(2, frame()), (3, frame())]);
        let again = packet_out(id, vec![output(2)]);
        bench.session.refuse(&again, ErrorCode::BadRequestBufferEmpty);
        assert!(out(bench).is_empty());
    });
    suite.case("buffers::a_packet_out_may_change_the_frame_on_its_way", |bench| {
        let id = buffered(bench);
        let readdress = Action::SetField(openflow::Oxm::exact(OxmField::EthDst, 0x0200_0000_0077));
        bench.session.accept(&packet_out(id, vec![readdress, output(4)]));
        let mut changed = frame();
        changed[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0x77]);
        assert_eq!(out(bench), [(4, changed)]);
    });
    suite.case("buffers::a_flow_mod_lets_the_first_frame_through", |bench| {
        let id = buffered(bench);
        let source = Match::default().with(OxmField::InPort, 1);
        let rule = entry(9, source, vec![output(3)]);
        bench.add(&FlowMod { buffer_id: Some(id), cookie: 5, ..rule.clone() });
        assert_eq!(out(bench), [(3, frame())]);
        assert_eq!(bench.flow(5).packet_count, 1, "it went through the new entry");
        let again = FlowMod { buffer_id: Some(id), ..rule };
        bench.refuse(&again, ErrorCode::BadRequestBufferEmpty);
        assert!(out(bench).is_empty());
    });
    suite.case("buffers::no_buffer_shows_all_and_an_unknown_id_is_refused", |bench| {
        bench.add(&to_controller(u16::MAX));
        let outcome = bench.send(1, &frame());
        let [found] = &outcome.packet_ins[..] else { panic!("{:?}", outcome.packet_ins) };
        assert_eq!((found.buffer_id, &found.data), (None, &frame()));
        let unknown = packet_out(0x1234_5678, vec![output(2)]);
        bench.session.refuse(&unknown, ErrorCode::BadRequestBufferUnknown);
    });
}
