//! The hostile driver's memory: a file of two regions, one right behind the other.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use vhost::{GuestMemory, RegionSpec};

pub const USER: u64 = 0x1000_0000;
const GUEST: u64 = 0x4000;
/// The first region; the second begins where it ends.
const FIRST: u64 = 0x8000;
const SIZE: u64 = 0x10000;

thread_local! {
    /// Made once: a mapping for each input would be most of the time.
    static WHOLE: RefCell<Option<(File, Arc<GuestMemory>, Arc<GuestMemory>)>> = const { RefCell::new(None) };
}

pub struct Memory {
    file: File,
    both: Arc<GuestMemory>,
    one: Arc<GuestMemory>,
    now: Arc<GuestMemory>,
}

impl Memory {
    /// All zero.
    pub fn new() -> Self {
        let (file, both, one) = WHOLE.with_borrow_mut(|whole| {
            let (file, both, one) = whole.get_or_insert_with(make);
            (file.try_clone().expect("a descriptor"), Arc::clone(both), Arc::clone(one))
        });
        file.write_all_at(&[0; SIZE as usize], 0).expect("the file has this size");
        Self { file, now: Arc::clone(&both), both, one }
    }

    /// The memory table of the moment.
    pub fn table(&self) -> Arc<GuestMemory> {
        Arc::clone(&self.now)
    }

    /// Another table for rings that start from now on.
    pub fn exchange(&mut self, how: u8) {
        self.now = Arc::clone(if how % 2 == 0 { &self.both } else { &self.one });
    }

    /// Writes as far as there is memory.
    pub fn poke(&self, at: u64, bytes: &[u8]) {
        let len = SIZE.saturating_sub(at).min(bytes.len() as u64) as usize;
        self.file.write_all_at(&bytes[..len], at).expect("inside the file");
    }

    pub fn descriptor(&self, at: u64, guest: u64, len: u32, third: u16, fourth: u16) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&guest.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..14].copy_from_slice(&third.to_le_bytes());
        bytes[14..].copy_from_slice(&fourth.to_le_bytes());
        self.poke(at, &bytes);
    }
}

fn make() -> (File, Arc<GuestMemory>, Arc<GuestMemory>) {
    let file = memfd_create("driver", MemfdFlags::CLOEXEC).expect("a memory file");
    ftruncate(&file, SIZE).expect("a size");
    let file = File::from(file);
    let region = |offset, size| RegionSpec {
        guest: GUEST + offset,
        user: USER + offset,
        size,
        offset,
        file: file.try_clone().expect("a descriptor").into(),
    };
    let map = |regions: &[_]| GuestMemory::map(regions).expect("regions that make sense");
    let both = map(&[region(0, FIRST), region(FIRST, SIZE - FIRST)]);
    let one = map(&[region(0, FIRST)]);
    (file, both, one)
}

/// A buffer from two bytes: most lie inside, some at every border that there is.
pub fn buffer(b: u8, c: u8) -> (u64, u32) {
    let inside = u64::from(b) << 8;
    let len = u32::from(c) * 8 + 12;
    match b % 16 {
        0 => (GUEST + FIRST - u64::from(c), len),
        1 => (GUEST + SIZE - u64::from(c), len),
        2 => (u64::MAX - u64::from(c), len),
        3 => (GUEST + inside, u32::MAX - u32::from(c)),
        4 => (GUEST - u64::from(c), len),
        5 => (GUEST + inside, u32::from(c)),
        6 => (GUEST + inside, u32::from(c) * 16),
        _ => (GUEST + inside, len),
    }
}
