//! The dirty log of a live migration: a bit for each page of guest memory that we wrote (`VHOST_USER_SET_LOG_BASE`, `LOG_SHMFD`).

use crate::memory::{GuestMemory, MemoryError};
use crate::sys::{Area, Mapping};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Bytes of guest memory for each bit (vhost-user protocol, "Migration").
const PAGE: u64 = 4096;

/// Longest log: of guest addresses below 64 TiB (46 bits), which is more than any machine's memory.
const MOST: u64 = (1 << 46) / PAGE / 8;

/// The shared log.
#[derive(Debug)]
pub struct DirtyLog {
    bits: Area,
    len: usize,
}

impl DirtyLog {
    /// Maps `size` bytes of `file` from `offset` on; the guest of `memory` pays for it.
    ///
    /// # Errors
    /// Empty, longer than the file, or the kernel refuses.
    pub fn map(
        file: &OwnedFd,
        offset: u64,
        size: u64,
        memory: &GuestMemory,
    ) -> Result<Arc<Self>, MemoryError> {
        if size > MOST {
            return Err(MemoryError::LongLog { size, most: MOST });
        }
        let mapping = Mapping::of_stranger(file.as_fd(), offset, size, memory.purse());
        let mapping = mapping.map_err(|error| MemoryError::of(error, 0, size))?;
        let len = size as usize;
        let bits =
            Area::new(&mapping, 0, len, 1).ok_or(MemoryError::BadRange { guest: 0, size })?;
        Ok(Arc::new(Self { bits, len }))
    }

    /// Marks the pages of `len` bytes at a guest physical address. Pages past the log's end are not of this guest's memory.
    pub(crate) fn mark(&self, guest: u64, len: u64) {
        if len == 0 {
            return;
        }
        let last = guest.saturating_add(len - 1) / PAGE;
        for page in guest / PAGE..=last {
            let byte = (page / 8) as usize;
            if byte >= self.len {
                return;
            }
            self.bits.set_bits(byte, 1 << (page % 8));
        }
    }
}
