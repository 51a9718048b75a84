//! Which rings run.

use super::*;
use crate::{Chains, Records};

#[test]
fn a_ring_runs_once_everything_is_said_and_not_before() {
    let mut rig = Rig::driver();
    rig.describe(0);
    assert!(!rig.is_running(0));
    assert_eq!(rig.attachment.look().report.rings[0].waits_for, Some("to be enabled"));
    rig.frontend.set_vring_enable(0, true).unwrap();
    assert!(rig.is_running(0));
    assert!(!rig.attachment.is_ready(), "a guest that can only receive is not ready");
    rig.start(1);
    assert!(rig.attachment.is_ready());
}

#[test]
fn a_driver_with_status_is_served_from_driver_ok_until_its_reset() {
    let mut rig = Rig::agreed(1, Features::empty(), Protocol::STATUS);
    rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
    rig.start(0);
    assert!(!rig.is_running(0));
    assert_eq!(rig.ask(FrontendReq::SET_STATUS, 9, &7_u64.to_ne_bytes()), 0);
    assert!(rig.is_running(0));
    assert_eq!(rig.ask(FrontendReq::GET_STATUS, 1, &[]), 7);
    assert_eq!(rig.ask(FrontendReq::SET_STATUS, 9, &0_u64.to_ne_bytes()), 0);
    assert!(!rig.is_running(0));
}

#[test]
fn a_front_end_without_protocol_features_enables_by_kicking() {
    let rig = Rig::with(1, PATIENCE);
    rig.frontend.set_features(Features::VERSION_1.bits()).unwrap();
    rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
    rig.describe(1);
    until(&rig.attachment, "ring 1 runs", |attachment| {
        matches!(attachment.look().slots[1], SlotState::Running { .. })
    });
}

#[test]
fn a_legacy_driver_is_told_from_one_that_is_not_ready() {
    let rig = Rig::with(1, PATIENCE);
    rig.frontend.set_features(0).unwrap();
    rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
    rig.describe(1);
    let waits = |attachment: &Attachment| attachment.look().report.rings.get(1)?.waits_for;
    until(&rig.attachment, "a legacy driver is told", |attachment| {
        waits(attachment).is_some_and(|why| why.contains("VERSION_1"))
    });
}

#[test]
fn qemu_enables_rings_before_it_sets_features() {
    let mut rig = Rig::with(1, PATIENCE);
    let body = [0_u32, 1].map(u32::to_ne_bytes).concat();
    rig.send(FrontendReq::SET_VRING_ENABLE, &body);
    rig.frontend.get_features().unwrap();
    assert!(rig.attachment.look().report.rings[0].enabled);
}

#[test]
fn asking_for_the_base_stops_a_ring_until_the_next_kick() {
    let mut rig = Rig::driver();
    rig.start(0);
    rig.frontend.set_vring_enable(0, false).unwrap();
    rig.frontend.set_vring_base(0, 77).unwrap();
    rig.frontend.set_vring_enable(0, true).unwrap();
    assert_eq!(rig.frontend.get_vring_base(0).unwrap(), 77);
    assert!(!rig.is_running(0));
    rig.frontend.set_vring_enable(0, true).unwrap();
    assert_eq!(
        rig.attachment.look().report.rings[0].waits_for,
        Some("a kick (the driver to start it)")
    );
    rig.frontend.set_vring_kick(0, &event()).unwrap();
    assert!(rig.is_running(0), "the call is the one from before");
}

#[test]
fn a_packed_ring_begins_with_its_wrap_counters_set() {
    let mut rig = Rig::agreed(1, Features::RING_PACKED, Protocol::empty());
    rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
    rig.frontend.set_vring_num(0, 100).unwrap();
    rig.frontend.set_vring_addr(0, &addresses(0)).unwrap();
    rig.frontend.set_vring_call(0, &event()).unwrap();
    rig.frontend.set_vring_kick(0, &event()).unwrap();
    rig.frontend.set_vring_enable(0, true).unwrap();
    assert!(rig.is_running(0));
    assert_eq!(rig.frontend.get_vring_base(0).unwrap(), 0x8000_8000);
}

#[test]
fn a_running_ring_takes_a_new_memory_table_and_lets_go_of_the_old_one() {
    let mut rig = Rig::driver();
    rig.start(0);
    assert_eq!((rig.memory.mappings(), rig.memory.descriptors()), (1, 1));
    let other = Memory::new();
    rig.frontend.set_mem_table(&[other.region()]).unwrap();
    assert!(rig.is_running(0));
    assert_eq!((rig.memory.mappings(), other.mappings()), (0, 1));
    let look = rig.attachment.look();
    assert_eq!(look.report.memory.iter().map(|region| region.size).collect::<Vec<_>>(), [BYTES]);
}

#[test]
fn a_ring_whose_memory_went_stops_and_the_front_end_is_told() {
    let mut rig = Rig::driver();
    let broken = event();
    rig.frontend.set_vring_err(0, &broken).unwrap();
    rig.start(0);
    rig.frontend.set_mem_table(&[rig.memory.region_at(0x80000, 0x80000)]).unwrap();
    assert!(matches!(rig.attachment.look().slots[0], SlotState::Faulted(_)));
    assert_eq!(broken.read().unwrap(), 1);
}

#[test]
fn regions_come_and_go_one_by_one() {
    let mut rig = Rig::agreed(1, Features::empty(), Protocol::CONFIGURE_MEM_SLOTS);
    assert_eq!(rig.frontend.get_max_mem_slots().unwrap(), 509);
    let (low, high) = (rig.memory.region_at(0, 0x40000), rig.memory.region_at(0x40000, 0x40000));
    rig.frontend.add_mem_region(&low).unwrap();
    rig.frontend.add_mem_region(&high).unwrap();
    rig.start(0);
    rig.frontend.remove_mem_region(&high).unwrap();
    assert!(rig.is_running(0));
    assert_eq!(rig.memory.mappings(), 1);
    assert!(rig.frontend.remove_mem_region(&high).is_err());
    assert!(rig.trouble().contains("no region at guest address 0x40000"));
}

#[test]
fn a_reset_forgets_rings_and_keeps_memory() {
    let mut rig = Rig::agreed(1, Features::empty(), Protocol::RESET_DEVICE);
    rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
    rig.start(0);
    rig.frontend.reset_device().unwrap();
    assert!(!rig.is_running(0));
    assert_eq!(rig.attachment.look().report.rings[0].waits_for, Some("its size"));
    rig.start(0);
    assert!(rig.is_running(0));
}

#[test]
fn the_end_of_a_connection_frees_all_that_came_by_it() {
    let mut rig = Rig::driver();
    let (kick, call, error) = (event(), event(), event());
    for index in 0..2 {
        rig.start(index);
        rig.frontend.set_vring_kick(index, &kick).unwrap();
        rig.frontend.set_vring_call(index, &call).unwrap();
        rig.frontend.set_vring_err(index, &error).unwrap();
    }
    assert!(rig.attachment.is_ready());
    // What we signal the kernel holds for us, without a descriptor.
    assert_eq!([&kick, &call, &error].map(descriptors_of), [3, 1, 1]);
    let (attachment, memory) = rig.part();
    assert!(!attachment.is_ready());
    assert!(attachment.look().report.memory.is_empty());
    assert_eq!((memory.mappings(), memory.descriptors()), (0, 1));
    assert_eq!([&kick, &call, &error].map(descriptors_of), [1, 1, 1]);
}

#[test]
fn a_dirty_log_is_taken_while_rings_run() {
    let mut rig = Rig::agreed(1, Features::LOG_ALL, Protocol::LOG_SHMFD);
    rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
    rig.start(0);
    let log = Memory::new();
    let region = vhost_protocol::VhostUserDirtyLogRegion {
        mmap_size: 4096,
        mmap_offset: 0,
        mmap_handle: log.file.as_raw_fd(),
    };
    rig.frontend.set_log_base(0, Some(region)).unwrap();
    assert!(rig.is_running(0));
    assert_eq!(log.mappings(), 1);
    rig.frontend.set_log_fd(event().as_raw_fd()).unwrap();
    let (_, _) = rig.part();
    assert_eq!(log.mappings(), 0);
}

#[test]
fn an_inflight_region_is_made_kept_and_taken_back() {
    use vhost_protocol::vhost_user::message::VhostUserInflight;
    let mut rig = Rig::agreed(1, Features::empty(), Protocol::INFLIGHT_SHMFD);
    rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
    let wanted =
        VhostUserInflight { num_queues: 2, queue_size: 256, ..VhostUserInflight::default() };
    let (region, file) = rig.frontend.get_inflight_fd(&wanted).unwrap();
    assert!(region.mmap_size >= 2 * (16 + 256 * 16));
    rig.frontend.set_inflight_fd(&region, file.as_raw_fd()).unwrap();
    rig.start(0);
    assert!(rig.is_running(0));
    let short = VhostUserInflight { num_queues: 200, ..region };
    assert!(rig.frontend.set_inflight_fd(&short, file.as_raw_fd()).is_err());
    assert!(rig.trouble().contains("inflight region has"));
}

/// Starts packed ring 1 from the base that a front-end says that keeps no count, on a port that may have served it before.
fn start_packed(attachment: &Arc<Attachment>, memory: Memory) -> Rig {
    let rig = Rig::on(attachment.clone(), PATIENCE).agree(Features::RING_PACKED, Protocol::STATUS);
    let mut rig = Rig { memory, ..rig };
    rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
    rig.ask(FrontendReq::SET_STATUS, 9, &7_u64.to_ne_bytes());
    start_again(&mut rig);
    rig
}

fn start_again(rig: &mut Rig) {
    rig.describe_at(1, 0x8000);
    rig.frontend.set_vring_enable(1, true).unwrap();
}

/// The driver sends a frame at place 0, and the worker takes it and gives it back.
fn send_one(rig: &Rig) {
    let descriptor = [&0x100_u64.to_le_bytes()[..], &[64, 0, 0, 0], &[0, 0], &[1 << 7, 0]].concat();
    rustix::io::pwrite(&rig.memory.file, &descriptor, 0x10000).unwrap();
    let mut guard = rig.attachment.slot(1).lock();
    let ring = guard.ring().unwrap();
    assert_eq!(ring.take(8, &mut Chains::default()).unwrap(), 1);
    ring.give_back();
}

fn port_with_records(home: &tempfile::TempDir) -> Arc<Attachment> {
    let records = Records::open(&home.path().join("vm1"), 2).unwrap();
    Attachment::new(1, 0, Some(records), None).unwrap()
}

#[test]
fn a_packed_ring_goes_on_after_a_connection_that_ended_without_a_word() {
    let home = tempfile::tempdir().unwrap();
    let rig = start_packed(&port_with_records(&home), Memory::new());
    send_one(&rig);
    let (attachment, memory) = rig.part();
    // On the same port, and on that of another process.
    let (_, memory) = start_packed(&attachment, memory).part();
    let mut rig = start_packed(&port_with_records(&home), memory);
    // Whatever makes the session start it again does not change where it stands.
    rig.frontend.set_vring_call(1, &event()).unwrap();
    rig.frontend.set_vring_enable(1, false).unwrap();
    rig.frontend.set_vring_enable(1, true).unwrap();
    let (_, memory) = rig.part();
    let rig = start_packed(&port_with_records(&home), memory);
    assert_eq!(rig.frontend.get_vring_base(1).unwrap(), 0x8001_8001);
}

#[test]
fn after_a_stop_in_order_or_a_reset_it_begins_where_the_front_end_says() {
    let home = tempfile::tempdir().unwrap();
    let stops: [fn(&mut Rig); 2] = [
        |rig| assert_eq!(rig.frontend.get_vring_base(1).unwrap(), 0x8001_8001),
        |rig| assert_eq!(rig.ask(FrontendReq::SET_STATUS, 9, &0_u64.to_ne_bytes()), 0),
    ];
    for stop in stops {
        let mut rig = start_packed(&port_with_records(&home), Memory::new());
        send_one(&rig);
        stop(&mut rig);
        let (_, memory) = rig.part();
        let rig = start_packed(&port_with_records(&home), memory);
        assert_eq!(rig.frontend.get_vring_base(1).unwrap(), 0x8000_8000);
    }
}

/// The driver of ring 1 sends a frame, at place 0 of a split ring.
fn offer_one(rig: &Rig) {
    let descriptor = [&0x100_u64.to_le_bytes()[..], &[64, 0, 0, 0], &[0; 4]].concat();
    rustix::io::pwrite(&rig.memory.file, &descriptor, 0x10000).unwrap();
    rustix::io::pwrite(&rig.memory.file, &1_u16.to_le_bytes(), 0x12002).unwrap();
}

fn used_index(rig: &Rig) -> u16 {
    let mut index = [0; 2];
    rustix::io::pread(&rig.memory.file, &mut index, 0x14002).unwrap();
    u16::from_le_bytes(index)
}

#[test]
fn a_transmit_queue_that_is_not_enabled_discards_what_is_sent_once_it_was_kicked() {
    let mut rig = Rig::driver();
    rig.describe(1);
    let kick = event();
    rig.frontend.set_vring_kick(1, &kick).unwrap();
    let slot = rig.attachment.slot(1).clone();
    assert_eq!((slot.state(), slot.is_running()), (SlotState::Disabled, false));
    offer_one(&rig);
    assert_eq!(slot.lock().discard(), 0);
    assert!(slot.arm(), "a ring that was not kicked is not started");
    kick.write(1).unwrap();
    assert!(!slot.arm());
    assert!(slot.lock().ring().is_none());
    assert_eq!((slot.lock().discard(), used_index(&rig)), (1, 1));
    assert!(slot.arm());
    // From here on frames pass, behind those that were discarded.
    rig.frontend.set_vring_enable(1, true).unwrap();
    assert!(rig.is_running(1));
    assert_eq!(rig.frontend.get_vring_base(1).unwrap(), 1);
    rig.frontend.set_vring_kick(1, &kick).unwrap();
    rig.frontend.set_vring_enable(1, false).unwrap();
    assert_eq!(slot.state(), SlotState::Disabled);
    assert_eq!(rig.frontend.get_vring_base(1).unwrap(), 1);
    assert_eq!(slot.state(), SlotState::Idle, "stopped");
}

#[test]
fn a_receive_queue_that_is_not_enabled_is_left_alone() {
    let rig = Rig::driver();
    rig.describe(0);
    assert_eq!(rig.attachment.look().slots[0], SlotState::Idle);
}

#[test]
fn a_disabled_ring_that_breaks_the_rules_is_stopped() {
    let mut rig = Rig::driver();
    let broken = event();
    rig.frontend.set_vring_err(1, &broken).unwrap();
    rig.describe(1);
    let kick = event();
    rig.frontend.set_vring_kick(1, &kick).unwrap();
    kick.write(1).unwrap();
    rustix::io::pwrite(&rig.memory.file, &9999_u16.to_le_bytes(), 0x12002).unwrap();
    assert_eq!(rig.attachment.slot(1).lock().discard(), 0);
    assert!(matches!(rig.attachment.slot(1).state(), SlotState::Faulted(_)));
    assert_eq!(broken.read().unwrap(), 1);
    rig.frontend.set_vring_enable(1, false).unwrap();
    assert_eq!(rig.attachment.slot(1).state(), SlotState::Disabled, "it may try again");
}
