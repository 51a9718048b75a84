//! A packed ring whose device is killed again and again, under a front-end that remembers nothing.

use crate::driver::Driver;
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;
use vhost::{
    Base, Chains, Features, Frame, HEADER_MAX, InflightMemory, Layout, Records, Vring, VringConfig,
};

const SIZE: u16 = 8;
const PACKED: Features =
    Features::VERSION_1.union(Features::RING_PACKED).union(Features::MRG_RXBUF);
const AVAIL: u16 = 1 << 7;
const USED: u16 = 1 << 15;

/// A driver of ring 1, and the file that outlives the device's processes.
struct Rig {
    driver: Driver,
    home: TempDir,
}

impl Rig {
    fn new(features: Features) -> Self {
        Self { driver: Driver::new(SIZE, features), home: tempfile::tempdir().unwrap() }
    }

    fn records(&self) -> Records {
        Records::open(&self.home.path().join("vm1"), 2).unwrap()
    }

    /// A new process, of a front-end that says the base it said at first.
    fn process(&self) -> Vring {
        self.process_at(self.driver.config().base)
    }

    fn process_at(&self, base: Base) -> Vring {
        self.start(VringConfig { base, ..self.driver.config() })
    }

    fn start(&self, config: VringConfig) -> Vring {
        let record = self.records().ring(1, Some(config.base));
        Vring::new(VringConfig { record, ..config }).unwrap()
    }

    fn send(&mut self, number: u8) {
        assert!(self.driver.send(&[number; 60], &[20, 40], false));
    }

    /// Sends, takes and gives back `count` frames one by one.
    fn forward(&mut self, device: &mut Vring, count: u8) {
        for number in 0..count {
            self.send(number);
            assert_eq!(take(device, 1), [number]);
            device.give_back();
            assert!(self.driver.reap().is_some());
        }
    }

    /// The two positions of the line, as if the process had died with these in it.
    fn set_positions(&self, old: u16, new: u16) {
        let file = File::options().write(true).open(self.home.path().join("vm1")).unwrap();
        file.write_all_at(&[old.to_le_bytes(), new.to_le_bytes()].concat(), 2 * 64 + 8).unwrap();
    }

    /// Writes the used descriptor of a frame that was given back in the first lap, as the device would.
    fn give_back_by_hand(&self, place: u64, id: u16) {
        let at = self.driver.areas[0] + 16 * place + 8;
        self.driver.guest.write(at, &0_u32.to_le_bytes());
        self.driver.guest.write_u16(at + 4, id);
        self.driver.guest.write_u16(at + 6, AVAIL | USED);
    }
}

/// Takes up to `max` frames; returns the first byte of each.
fn take(device: &mut Vring, max: usize) -> Vec<u8> {
    let mut chains = Chains::default();
    let count = device.take(max, &mut chains).unwrap();
    let first = |index| {
        let mut byte = [0];
        chains.read(index, &mut byte);
        byte[0]
    };
    (0..count).map(first).collect()
}

/// All that there is: a call may leave a line of descriptors alone that its driver is still filling.
fn take_all(device: &mut Vring) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match take(device, 64)[..] {
            [] => return all,
            ref some => all.extend(some),
        }
    }
}

fn at(place: u16, wrap: bool) -> Base {
    Base::Packed { avail: place, avail_wrap: wrap, used: place, used_wrap: wrap }
}

#[test]
fn a_ring_goes_on_where_the_process_before_was_killed() {
    let mut rig = Rig::new(PACKED);
    let mut device = rig.process();
    for round in 1..=20 {
        rig.forward(&mut device, round % 5);
        rig.send(100);
        rig.send(101);
        // Killed with one frame in its hands.
        assert_eq!(take(&mut device, 1), [100]);
        device = rig.process();
        assert_eq!(take_all(&mut device), [100, 101], "round {round}");
        device.give_back();
        assert_eq!(std::iter::from_fn(|| rig.driver.reap()).count(), 2);
    }
}

#[test]
fn a_receive_queue_loses_no_buffer() {
    let mut rig = Rig::new(PACKED);
    let mut device = rig.process();
    while rig.driver.post(&[100], false) {}
    for number in 0..40_u8 {
        let frame = [number; 150];
        device.put(Frame { head: &frame, ..Frame::default() }).unwrap();
        // Filled and not shown: the next process fills it anew.
        device = rig.process();
        device.put(Frame { head: &frame, ..Frame::default() }).unwrap();
        device.publish();
        device = rig.process();
        let got = [rig.driver.reap().unwrap(), rig.driver.reap().unwrap()].concat();
        assert_eq!(got[HEADER_MAX..], frame);
        assert!(rig.driver.reap().is_none());
        assert!(rig.driver.post(&[100], false) && rig.driver.post(&[100], false));
    }
}

#[test]
fn a_batch_that_the_driver_has_not_seen_is_taken_again() {
    let mut rig = Rig::new(PACKED);
    drop(rig.process());
    (1..=3).for_each(|number| rig.send(number));
    // Positions noted, nothing written.
    rig.set_positions(AT_START, AT_START | 6);
    assert_eq!(take_all(&mut rig.process()), [1, 2, 3]);
}

/// Place 0 in the first lap, as a word of the record.
const AT_START: u16 = 0x8000;

#[test]
fn a_batch_that_was_half_written_is_finished() {
    for written in [1, 2] {
        let mut rig = Rig::new(PACKED);
        drop(rig.process());
        (0..4).for_each(|number| rig.send(number));
        // Three frames of two places each were being given back, from the last one on.
        rig.set_positions(AT_START, AT_START | 6);
        (0..written)
            .for_each(|back: u16| rig.give_back_by_hand(2 * (2 - u64::from(back)), 2 - back));
        assert!(rig.driver.reap().is_none());
        let mut device = rig.process();
        assert_eq!(std::iter::from_fn(|| rig.driver.reap()).count(), 3, "{written} written");
        assert_eq!(take_all(&mut device), [3]);
        device.give_back();
        assert_eq!(std::iter::from_fn(|| rig.driver.reap()).count(), 1);
    }
}

#[test]
fn so_is_one_that_the_inflight_region_notes() {
    let mut rig = Rig::new(PACKED);
    let inflight = InflightMemory::create(Layout::Packed, 1, SIZE).unwrap();
    let start = |rig: &Rig| {
        Vring::new(VringConfig { inflight: inflight.ring(0), ..rig.driver.config() }).unwrap()
    };
    drop(start(&rig));
    (0..3).for_each(|number| rig.send(number));
    let notes = File::from(inflight.file().try_clone_to_owned().unwrap());
    notes.write_all_at(&4_u16.to_le_bytes(), 16).unwrap();
    rig.give_back_by_hand(2, 1);
    let mut device = start(&rig);
    assert_eq!(std::iter::from_fn(|| rig.driver.reap()).count(), 2);
    assert_eq!(take_all(&mut device), [2]);
}

#[test]
fn a_ring_that_its_driver_made_anew_begins_at_its_base() {
    let mut rig = Rig::new(PACKED);
    let mut device = rig.process();
    rig.forward(&mut device, 3);
    // The same memory at the same addresses, cleared: what a guest finds that booted again.
    let [ring, ..] = rig.driver.areas;
    rig.driver.guest.write(ring, &[0; 16 * SIZE as usize + 8]);
    assert_eq!(rig.process().base(), at(0, true));
    let reborn = Rig { driver: Driver::new(SIZE, PACKED), ..rig };
    assert_eq!(reborn.process().base(), at(0, true));
}

#[test]
fn a_front_end_that_knows_better_is_believed() {
    let mut rig = Rig::new(PACKED);
    let mut device = rig.process();
    rig.forward(&mut device, 3);
    assert_eq!(rig.process().base(), at(6, true));
    assert_eq!(rig.process_at(at(4, true)).base(), at(4, true));
    // … and from then on a record of that.
    assert_eq!(rig.process_at(at(4, true)).base(), at(4, true));
    assert_eq!(rig.process().base(), at(0, true));
}

#[test]
fn a_ring_that_was_stopped_in_order_has_no_record() {
    let mut rig = Rig::new(PACKED);
    let mut device = rig.process();
    rig.forward(&mut device, 3);
    rig.records().forget(1);
    assert_eq!(rig.process().base(), at(0, true));
}

#[test]
fn another_size_or_address_is_another_ring() {
    let mut rig = Rig::new(PACKED);
    let mut device = rig.process();
    rig.forward(&mut device, 3);
    let config = rig.driver.config();
    let moved = VringConfig { driver: config.driver + 4, ..config };
    assert_eq!(rig.start(moved).base(), at(0, true));
    let config = rig.driver.config();
    assert_eq!(rig.start(VringConfig { size: SIZE - 1, ..config }).base(), at(0, true));
}

#[test]
fn a_position_outside_the_ring_is_not_believed() {
    let rig = Rig::new(PACKED);
    drop(rig.process());
    rig.set_positions(SIZE, SIZE);
    assert_eq!(rig.process().base(), at(0, true));
}

/// What happens to a ring.
#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u32>, bool),
    Take(usize),
    GiveBack,
    Reap,
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (proptest::collection::vec(1_u32..40, 1..4), any::<bool>())
            .prop_map(|(pieces, indirect)| Step::Send(pieces, indirect)),
        3 => (1_usize..6).prop_map(Step::Take),
        3 => Just(Step::GiveBack),
        3 => Just(Step::Reap),
        1 => Just(Step::Kill),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    /// Every buffer comes back, once, in order, however often the device dies.
    #[test]
    fn no_buffer_is_lost(in_order: bool, steps in steps()) {
        let mut features = PACKED | Features::INDIRECT_DESC;
        features.set(Features::IN_ORDER, in_order);
        let mut rig = Rig::new(features);
        let (mut device, mut chains) = (rig.process(), Chains::default());
        let (mut sent, mut reaped) = (0, 0);
        for step in steps {
            match step {
                Step::Send(pieces, indirect) => {
                    let frame = vec![sent as u8; pieces.iter().sum::<u32>() as usize];
                    sent += u32::from(rig.driver.send(&frame, &pieces, indirect));
                }
                Step::Take(max) => drop(device.take(max, &mut chains).unwrap()),
                Step::GiveBack => device.give_back(),
                Step::Reap => reaped += u32::from(rig.driver.reap().is_some()),
                Step::Kill => device = rig.process(),
            }
        }
        device = rig.process();
        while reaped < sent {
            device.take(64, &mut chains).unwrap();
            device.give_back();
            let before = reaped;
            while rig.driver.reap().is_some() {
                reaped += 1;
            }
            prop_assert!(reaped > before, "{reaped} of {sent} came back");
        }
        prop_assert_eq!(reaped, sent);
        prop_assert_eq!(device.take(64, &mut chains).unwrap(), 0);
    }
}
