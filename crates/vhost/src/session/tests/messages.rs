//! What else a front-end says.

use super::*;

#[test]
fn the_driver_is_offered_what_we_can_do() {
    let mut rig = Rig::with(3, PATIENCE);
    let offered = Features::from_bits_retain(rig.frontend.get_features().unwrap());
    assert_eq!(offered, super::super::OFFERED);
    rig.frontend.set_features(Features::PROTOCOL_FEATURES.bits()).unwrap();
    let protocol = rig.frontend.get_protocol_features().unwrap();
    rig.frontend.set_protocol_features(protocol).unwrap();
    assert_eq!(rig.frontend.get_queue_num().unwrap(), 6);
    until(&rig.attachment, "the protocol features are shown", |attachment| {
        attachment.look().report.protocol == protocol
    });
}

#[test]
fn an_mtu_beyond_the_ports_is_refused_and_the_connection_stays() {
    let mut rig = Rig::agreed(1, Features::MTU, Protocol::MTU);
    rig.attachment.set_mtu(2000);
    assert_eq!(rig.ask(FrontendReq::NET_SET_MTU, 9, &9000_u64.to_ne_bytes()), 1);
    assert_eq!(rig.attachment.mtu(), 2000);
    assert_eq!(rig.ask(FrontendReq::NET_SET_MTU, 9, &1500_u64.to_ne_bytes()), 0);
    assert_eq!(rig.attachment.mtu(), 1500);
    let (attachment, _) = rig.part();
    assert_eq!(attachment.mtu(), 2000);
}

#[test]
fn a_guest_that_moved_here_is_announced_once() {
    let mut rig = Rig::agreed(1, Features::empty(), Protocol::RARP);
    assert_eq!(rig.ask(FrontendReq::SEND_RARP, 9, &[2, 0, 0, 0, 0, 9, 0, 0]), 0);
    assert_eq!(rig.attachment.take_announcement(), Some([2, 0, 0, 0, 0, 9]));
    assert_eq!(rig.attachment.take_announcement(), None);
}

#[test]
fn a_message_in_pieces_is_as_good_as_one_in_one_piece() {
    let mut rig = Rig::agreed(1, Features::empty(), Protocol::empty());
    let header = [FrontendReq::SET_VRING_NUM as u32, 9, 8].map(u32::to_ne_bytes).concat();
    let body = [0_u32, 512].map(u32::to_ne_bytes).concat();
    for byte in [header, body].concat() {
        rig.raw.write_all(&[byte]).unwrap();
    }
    let mut reply = [0; 20];
    rig.raw.read_exact(&mut reply).unwrap();
    assert_eq!(reply[12..], [0; 8]);
    assert_eq!(rig.attachment.look().report.rings[0].size, 512);
}

#[test]
fn a_session_that_is_told_to_stop_ends_in_the_middle_of_a_conversation() {
    let mut rig = Rig::driver();
    rig.start(0);
    rig.attachment.ring_to_stop();
    assert_eq!(rig.thread.join().unwrap().unwrap(), End::Stopped);
    assert_eq!(rig.memory.mappings(), 0);
}

#[test]
fn a_region_that_is_added_for_every_queue_pair_is_there_until_it_was_removed_as_often() {
    let mut rig = Rig::agreed(2, Features::empty(), Protocol::CONFIGURE_MEM_SLOTS);
    let region = rig.memory.region();
    for _ in 0..2 {
        rig.frontend.add_mem_region(&region).unwrap();
    }
    rig.frontend.remove_mem_region(&region).unwrap();
    until(&rig.attachment, "one region is there", |attachment| {
        attachment.look().report.memory.len() == 1
    });
    rig.frontend.remove_mem_region(&region).unwrap();
    until(&rig.attachment, "it is gone", |attachment| attachment.look().report.memory.is_empty());
}
