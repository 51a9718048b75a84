//! A process that dies with buffers in its hands, and the one after it.

use crate::driver::Driver;
use crate::guest::GUEST;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;
use vhost::{
    Base, Chains, DirtyLog, Fault, Features, Frame, InflightMemory, Layout, Put, Unread, Vring,
    VringConfig,
};

const SIZE: u16 = 16;

/// A driver, and the region that outlives the device's processes.
struct Rig {
    driver: Driver,
    inflight: InflightMemory,
}

impl Rig {
    fn new(layout: Layout) -> Self {
        let packed =
            if layout == Layout::Packed { Features::RING_PACKED } else { Features::empty() };
        let driver = Driver::new(SIZE, Features::VERSION_1 | packed);
        Self { driver, inflight: InflightMemory::create(layout, 2, SIZE).unwrap() }
    }

    /// A process that goes on from what the front-end remembers: the base before anything was taken.
    fn process(&self, base: Option<Base>) -> Result<Vring, Fault> {
        let config = self.driver.config();
        let base = base.unwrap_or(config.base);
        Vring::new(VringConfig { base, inflight: self.inflight.ring(1), ..config })
    }

    fn send(&mut self, number: u8) {
        assert!(self.driver.send(&[number; 60], &[20, 40], false));
    }

    /// The second ring's notes, to look at or to change.
    fn notes(&self) -> (File, u64) {
        let (header, entry) =
            if self.driver.features.contains(Features::RING_PACKED) { (32, 32) } else { (16, 16) };
        let file = self.inflight.file().try_clone_to_owned().unwrap().into();
        (file, (header + entry * u64::from(SIZE)).next_multiple_of(64))
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

#[test]
fn frames_in_the_hands_of_a_process_that_died_are_taken_again_in_order() {
    for layout in [Layout::Split, Layout::Packed] {
        let mut rig = Rig::new(layout);
        let base = rig.driver.config().base;
        (1..=3).for_each(|number| rig.send(number));
        let mut first = rig.process(Some(base)).unwrap();
        assert_eq!(take(&mut first, 1), [1]);
        first.give_back();
        assert_eq!(take(&mut first, 1), [2]);
        drop(first);
        rig.send(4);
        // A front-end whose back-end died knows no more than the used index: QEMU goes on from there.
        let used = match layout {
            Layout::Split => Base::Split(1),
            Layout::Packed => Base::Packed { avail: 2, avail_wrap: true, used: 2, used_wrap: true },
        };
        let mut second = rig.process(Some(used)).unwrap();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.extend(take(&mut second, 64));
            second.give_back();
        }
        assert_eq!(seen, [2, 3, 4], "{layout:?}");
        assert_eq!(std::iter::from_fn(|| rig.driver.reap()).count(), 4);
    }
}

#[test]
fn a_split_batch_whose_notes_were_not_finished_is_not_taken_again() {
    let mut rig = Rig::new(Layout::Split);
    (1..=2).for_each(|number| rig.send(number));
    let mut first = rig.process(Some(Base::Split(0))).unwrap();
    assert_eq!(take(&mut first, 64), [1, 2]);
    first.give_back();
    drop(first);
    // As if it had died after the used index and before the notes: both still marked, the noted used index behind.
    let (file, at) = rig.notes();
    for head in [0, 2] {
        file.write_all_at(&[1], at + 16 + 16 * head).unwrap();
    }
    file.write_all_at(&0_u16.to_le_bytes(), at + 14).unwrap();
    let mut second = rig.process(Some(Base::Split(2))).unwrap();
    assert_eq!(take(&mut second, 64), [0; 0]);
    rig.send(3);
    assert_eq!(take(&mut second, 64), [3]);
}

#[test]
fn a_packed_batch_that_the_driver_has_not_seen_is_rolled_back() {
    let mut rig = Rig::new(Layout::Packed);
    let base = rig.driver.config().base;
    rig.send(1);
    drop(rig.process(Some(base)).unwrap());
    // As if it had died after it noted the new used index (2 places on) and before the flags.
    let (file, at) = rig.notes();
    file.write_all_at(&2_u16.to_le_bytes(), at + 16).unwrap();
    let mut second = rig.process(Some(base)).unwrap();
    assert_eq!(take(&mut second, 64), [1]);
    second.give_back();
    // … and after the flags, before the old index was brought up.
    file.write_all_at(&0_u16.to_le_bytes(), at + 18).unwrap();
    drop(second);
    let mut third = rig.process(Some(base)).unwrap();
    assert_eq!(take(&mut third, 64), [0; 0]);
    rig.send(2);
    assert_eq!(take(&mut third, 64), [2]);
}

#[test]
fn a_region_of_nonsense_is_a_fault() {
    let rig = Rig::new(Layout::Split);
    let (file, at) = rig.notes();
    file.write_all_at(&7_u16.to_le_bytes(), at + 8).unwrap();
    assert!(matches!(rig.process(None), Err(Fault::Inflight(_))));
    file.write_all_at(&1_u16.to_le_bytes(), at + 8).unwrap();
    file.write_all_at(&[0xff; 4], at + 12).unwrap();
    assert!(matches!(rig.process(None), Err(Fault::Inflight(_))));
    let packed = InflightMemory::create(Layout::Packed, 1, SIZE).unwrap();
    let config = VringConfig { inflight: packed.ring(0), ..rig.driver.config() };
    assert!(matches!(Vring::new(config), Err(Fault::Inflight(_))));
}

#[test]
fn the_log_names_the_pages_that_were_written_and_no_others() {
    const BITS: u64 = (GUEST / 4096 + 1024) / 8;
    let file = memfd_create("log", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, BITS).unwrap();
    let log = DirtyLog::map(&file, 0, BITS, &vhost::GuestMemory::default()).unwrap();
    let mut driver =
        Driver::new(SIZE, Features::VERSION_1 | Features::MRG_RXBUF | Features::LOG_ALL);
    assert!(driver.post(&[100], false) && driver.post(&[100], false) && driver.post(&[100], false));
    let log_used_at = Some(GUEST + driver.areas[2]);
    let mut device =
        Vring::new(VringConfig { log: Some(log), log_used_at, ..driver.config() }).unwrap();
    let (mut sender, mut chains) = (Driver::new(SIZE, Features::VERSION_1), Chains::default());
    assert!(sender.send(&[0; 76], &[76], false));
    assert_eq!(sender.device().take(1, &mut chains), Ok(1));
    device.reserve(1).unwrap();
    let unread = Unread::new(&chains, Features::VERSION_1);
    assert_eq!(device.put_unread(unread, &(14..=1514)), Put::default(), "it would not be noted");
    device.put(Frame { head: &[7; 150], ..Frame::default() }).unwrap();
    device.publish();
    let file = File::from(file);
    let is_marked = |offset: u64| {
        let page = (GUEST + offset) / 4096;
        let mut byte = [0];
        file.read_exact_at(&mut byte, page / 8).unwrap();
        byte[0] >> (page % 8) & 1 == 1
    };
    assert!(is_marked(driver.areas[2]), "the used ring");
    let pages = (0..u64::from(SIZE)).filter(|&id| is_marked(driver.buffer(id))).collect::<Vec<_>>();
    assert_eq!(pages, [0, 1], "two buffers were filled, the third only read ahead");
}
