//! What a front-end must not do, and what it gets.

use super::*;
use std::os::fd::AsFd;

#[test]
fn every_wrong_value_ends_the_connection_with_its_reason() {
    type Wrong = fn(&mut Rig);
    let cases: [(Wrong, &str); 10] = [
        (|rig| drop(rig.frontend.set_vring_num(0, 0)), "a ring has 1 to 32768 descriptors"),
        (
            |rig| drop(rig.frontend.set_vring_num(5, 256)),
            "ring 5 was set up, the port has 1 queue pairs",
        ),
        (
            |rig| drop(rig.frontend.set_features(1 << 63)),
            "features that were not offered were accepted: bit 63",
        ),
        (
            |rig| rig.send(FrontendReq::SET_VRING_ENABLE, &[0, 0, 0, 0, 7, 0, 0, 0]),
            "enable is neither 0 nor 1",
        ),
        (
            |rig| rig.send(FrontendReq::SET_VRING_ENABLE, &[0; 7]),
            "its body is not a number of 8 bytes",
        ),
        (|rig| rig.send(FrontendReq::SET_STATUS, &[0; 9]), "its body is longer than 8 bytes"),
        (
            |rig| rig.send(FrontendReq::SET_STATUS, &[0; 8]),
            "needs a protocol feature that was not agreed on",
        ),
        (
            |rig| rig.send(FrontendReq::GET_CONFIG, &[0; 12]),
            "needs a feature that was not agreed on",
        ),
        (|rig| rig.send(FrontendReq::SET_VRING_KICK, &[0; 8]), "its content cannot be right"),
        (|rig| rig.send_with(77, 1, &[]), "message 77 is unknown"),
    ];
    for (wrong, reason) in cases {
        let mut rig = Rig::driver();
        rig.start(0);
        let attachment = rig.attachment.clone();
        wrong(&mut rig);
        let told = rig.trouble();
        assert!(told.contains(reason), "{told:?} does not say {reason:?}");
        assert_eq!(attachment.look().slots[0], SlotState::Idle);
    }
}

#[test]
fn rings_outside_the_memory_do_not_start() {
    let mut rig = Rig::driver();
    rig.describe(0);
    let addresses = VringConfigData { desc_table_addr: USER + BYTES, ..addresses(0) };
    rig.frontend.set_vring_addr(0, &addresses).unwrap();
    assert!(rig.frontend.set_vring_enable(0, true).is_err());
    let told = rig.trouble();
    assert!(told.contains("ring 0 cannot start: the ring's descriptor area"), "{told}");
}

#[test]
fn memory_beyond_its_file_is_refused() {
    let rig = Rig::agreed(1, Features::empty(), Protocol::empty());
    assert!(rig.frontend.set_mem_table(&[rig.memory.region_at(0, BYTES + 4096)]).is_err());
    assert!(rig.trouble().contains("which has 1048576"));
}

#[test]
fn a_socket_is_no_memory() {
    let rig = Rig::agreed(1, Features::empty(), Protocol::empty());
    let (socket, _other) = UnixStream::pair().unwrap();
    let region = region_of(0, 4096, socket.as_raw_fd());
    assert!(rig.frontend.set_mem_table(&[region]).is_err());
    assert!(rig.trouble().contains("the guest's memory cannot be shared"));
}

#[test]
fn memory_whose_pages_someone_else_hands_out_is_refused() {
    let rig = Rig::agreed(1, Features::empty(), Protocol::empty());
    // Of a file system that is in every kernel and not on the list.
    let file = std::fs::File::open("/sys/kernel/uevent_seqnum").unwrap();
    assert!(rig.frontend.set_mem_table(&[region_of(0, 4096, file.as_raw_fd())]).is_err());
    let told = rig.trouble();
    assert!(told.contains("whose pages others could withhold"), "{told}");
}

#[test]
fn what_is_no_eventfd_is_no_kick_and_no_call() {
    for request in
        [FrontendReq::SET_VRING_KICK, FrontendReq::SET_VRING_CALL, FrontendReq::SET_VRING_ERR]
    {
        let rig = Rig::driver();
        let (_read, write) = rustix::pipe::pipe().unwrap();
        rig.send_files(request, &[0; 8], &[write.as_fd()]);
        let told = rig.trouble();
        assert!(told.contains("no eventfd"), "{request:?}: {told}");
    }
}

#[test]
fn half_a_message_and_then_silence_ends_the_connection() {
    let mut rig = Rig::with(1, Duration::from_millis(1));
    rig.raw.write_all(&[1, 0, 0, 0, 1]).unwrap();
    assert!(rig.trouble().contains("a message stopped after 5 bytes"));
}

#[test]
fn a_front_end_that_dies_in_the_middle_of_a_message_is_told_from_one_that_leaves() {
    let mut rig = Rig::new();
    rig.raw.write_all(&[1, 0, 0, 0, 1]).unwrap();
    drop((rig.frontend, rig.raw));
    assert!(rig.thread.join().unwrap().unwrap_err().chain().contains("stopped after 5 bytes"));
}

#[test]
fn another_program_is_told_from_a_front_end() {
    let mut rig = Rig::new();
    rig.raw.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    assert!(rig.trouble().contains("no vhost-user message"));
}

#[test]
fn files_that_no_message_asked_for_are_closed() {
    let rig = Rig::new();
    let memory = Memory::new();
    rig.send_files(FrontendReq::GET_FEATURES, &[], &[memory.file.as_fd(); 40]);
    assert!(rig.trouble().contains("GET_FEATURES: more files than any message has"));
    assert_eq!(memory.descriptors(), 1);
}
