//! A guest's memory, as its driver sees it: a file that is read and written by position.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use vhost::{GuestMemory, RegionSpec};

/// First guest physical and first user address: different from each other and from every offset.
pub const GUEST: u64 = 0x10_0000_0000;
pub const USER: u64 = 0x7f00_0000_0000;

pub struct Guest {
    file: File,
    size: u64,
    free: u64,
}

impl Guest {
    pub fn new(size: u64) -> Self {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, size).unwrap();
        Self { file: file.into(), size, free: 0 }
    }

    /// The whole file as one region.
    pub fn memory(&self) -> Arc<GuestMemory> {
        GuestMemory::map(&[self.region(0, self.size)]).unwrap()
    }

    /// A part of the file as a region at its place.
    pub fn region(&self, offset: u64, size: u64) -> RegionSpec {
        let file = self.file.try_clone().unwrap().into();
        RegionSpec { guest: GUEST + offset, user: USER + offset, size, offset, file }
    }

    /// Takes bytes for good; returns their offset.
    pub fn allocate(&mut self, len: u64, align: u64) -> u64 {
        let at = self.free.next_multiple_of(align);
        self.free = at + len;
        assert!(self.free <= self.size, "the guest's memory is used up");
        at
    }

    /// Cuts the file: what was behind is gone.
    pub fn truncate(&self, size: u64) {
        ftruncate(&self.file, size).unwrap();
    }

    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    pub fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    pub fn write_u16(&self, at: u64, value: u16) {
        self.write(at, &value.to_le_bytes());
    }

    pub fn read_u16(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.read(at, 2).try_into().unwrap())
    }

    pub fn read_u32(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.read(at, 4).try_into().unwrap())
    }

    /// A descriptor: address and length, and the two words after them, which split and packed rings use differently.
    pub fn write_descriptor(&self, at: u64, buffer: Buffer, third: u16, fourth: u16) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&GUEST.wrapping_add(buffer.at).to_le_bytes());
        bytes[8..12].copy_from_slice(&buffer.len.to_le_bytes());
        bytes[12..14].copy_from_slice(&third.to_le_bytes());
        bytes[14..].copy_from_slice(&fourth.to_le_bytes());
        self.write(at, &bytes);
    }
}

/// A piece of the guest's memory. An offset that wraps around gives any guest address.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub at: u64,
    pub len: u32,
}
