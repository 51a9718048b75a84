//! The inflight region: which buffers we have taken and not given back, where a new process finds it (vhost-user protocol,
//! "Inflight I/O tracking").
//!
//! One region holds all rings of a device, one after the other, each a header and an entry for each descriptor, in steps of 64 bytes. We make it
//! ([`InflightMemory::create`]), the front-end keeps it, and hands it to whoever serves the device next ([`InflightMemory::adopt`]).

use crate::sys::{Area, MapError, Mapping};
use rustix::fs::{MemfdFlags, SealFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Which kind of ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// VIRTIO 1.2 §2.7.
    Split,
    /// VIRTIO 1.2 §2.8.
    Packed,
}

impl Layout {
    /// Bytes of the header and of each entry.
    const fn sizes(self) -> (usize, usize) {
        match self {
            Self::Split => (16, 16),
            Self::Packed => (32, 32),
        }
    }

    /// Bytes of one ring's part.
    const fn ring_len(self, size: u16) -> usize {
        let (header, entry) = self.sizes();
        (header + entry * size as usize).next_multiple_of(64)
    }
}

/// The region cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum InflightError {
    /// The front-end's region is shorter than its rings need.
    #[error("the inflight region has {available} bytes, {needed} are needed")]
    Short {
        /// Bytes there.
        available: u64,
        /// Bytes that the rings need.
        needed: u64,
    },
    /// The kernel refuses.
    #[error("the inflight region: {step} failed")]
    System {
        /// What was tried.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl InflightError {
    fn system(step: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |error| Self::System { step, source: error.into() }
    }
}

/// The region of one device.
#[derive(Debug)]
pub struct InflightMemory {
    file: OwnedFd,
    mapping: Arc<Mapping>,
    layout: Layout,
    queues: u16,
    size: u16,
}

impl InflightMemory {
    /// Makes a region, all zero, for `queues` rings of `size` descriptors (`VHOST_USER_GET_INFLIGHT_FD`).
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn create(layout: Layout, queues: u16, size: u16) -> Result<Self, InflightError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("suiro-inflight", flags)
            .map_err(InflightError::system("memfd_create"))?;
        let len = Self::len_of(layout, queues, size);
        rustix::fs::ftruncate(&file, len).map_err(InflightError::system("ftruncate"))?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(InflightError::system("sealing"))?;
        Self::adopt(file, 0, len, (layout, queues, size))
    }

    /// Takes over a region (`VHOST_USER_SET_INFLIGHT_FD`): `len` bytes of `file` from `offset` on.
    ///
    /// # Errors
    /// It is too short for its rings, or the kernel refuses.
    pub fn adopt(
        file: OwnedFd,
        offset: u64,
        len: u64,
        (layout, queues, size): (Layout, u16, u16),
    ) -> Result<Self, InflightError> {
        let needed = Self::len_of(layout, queues, size);
        if needed == 0 || needed > len {
            return Err(InflightError::Short { available: len, needed });
        }
        let mapping = Mapping::of_stranger(file.as_fd(), offset, needed, None).map_err(
            |error| match error {
                MapError::BadRange => InflightError::Short { available: 0, needed },
                MapError::Short { available, .. } => InflightError::Short { available, needed },
                MapError::System(source) => InflightError::System { step: "mmap", source },
            },
        )?;
        Ok(Self { file, mapping, layout, queues, size })
    }

    fn len_of(layout: Layout, queues: u16, size: u16) -> u64 {
        layout.ring_len(size) as u64 * u64::from(queues)
    }

    /// The file, for the front-end.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Bytes of the region.
    pub fn bytes(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Rings and the size of each, as the message says them.
    pub fn shape(&self) -> (u16, u16) {
        (self.queues, self.size)
    }

    /// The part of ring `index`; `None` when there are fewer.
    pub fn ring(&self, index: u16) -> Option<InflightRing> {
        if index >= self.queues {
            return None;
        }
        let len = self.layout.ring_len(self.size);
        let area = Area::new(&self.mapping, (len * usize::from(index)) as u64, len, 8)?;
        Some(InflightRing { area, layout: self.layout, size: self.size })
    }
}

/// One ring's part of the region.
#[derive(Clone, Debug)]
pub struct InflightRing {
    pub(crate) area: Area,
    pub(crate) layout: Layout,
    pub(crate) size: u16,
}
