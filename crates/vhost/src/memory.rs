//! What a front-end shares with us, and addresses in it.
//!
//! Descriptors hold *guest physical* addresses; the protocol names rings by *user* addresses (of the front-end's own mapping). Both are translated
//! here, and only here, without overflow, inside one region: a buffer that crosses from one into the next is refused.

use crate::fault::Fault;
pub use crate::sys::GuestSlice;
use crate::sys::{Area, GuestBounds, Loss, MapError, Mapped, Mapping, Purse};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// A region as the front-end describes it (vhost-user protocol, "Memory region description").
#[derive(Debug)]
pub struct RegionSpec {
    /// First guest physical address.
    pub guest: u64,
    /// First address in the front-end's own mapping.
    pub user: u64,
    /// Bytes.
    pub size: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// The memory.
    pub file: OwnedFd,
}

/// A region, for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionFacts {
    /// First guest physical address.
    pub guest: u64,
    /// First address in the front-end's own mapping.
    pub user: u64,
    /// Bytes.
    pub size: u64,
    /// Whether a page of it was found missing.
    pub withdrawn: bool,
}

/// A memory table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Empty, or past the end of the address space.
    #[error(
        "region at guest address {guest:#x} of {size} bytes is empty or passes the end of the address space"
    )]
    BadRange {
        /// First guest physical address.
        guest: u64,
        /// Bytes.
        size: u64,
    },
    /// Two regions share addresses.
    #[error("region at guest address {guest:#x} overlaps the one at {other:#x}")]
    Overlap {
        /// First guest physical address of the new one.
        guest: u64,
        /// … and of the one that is there.
        other: u64,
    },
    /// The file is shorter than the region.
    #[error(
        "region at guest address {guest:#x} needs {needed} bytes of its file, which has {available}"
    )]
    ShortFile {
        /// First guest physical address.
        guest: u64,
        /// Bytes from the file's beginning.
        needed: u64,
        /// Bytes there.
        available: u64,
    },
    /// The guest would map more than it may.
    #[error(
        "region at guest address {guest:#x} of {size} bytes is more than this guest may share: 1 TiB at most, and a quarter of what other guests leave (in all 64 TiB, and page tables of an eighth of what the node may use)"
    )]
    TooLarge {
        /// First guest physical address.
        guest: u64,
        /// Bytes.
        size: u64,
    },
    /// The log of dirty pages would have bits for more memory than there is.
    #[error("the dirty log has {size} bytes; {most} mark all guest addresses below 64 TiB")]
    LongLog {
        /// Bytes.
        size: u64,
        /// Most that are taken.
        most: u64,
    },
    /// There is no such region to remove.
    #[error("there is no region at guest address {guest:#x} to remove")]
    Missing {
        /// First guest physical address.
        guest: u64,
    },
    /// The kernel refuses.
    #[error("region at guest address {guest:#x} cannot be mapped")]
    Map {
        /// First guest physical address.
        guest: u64,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl MemoryError {
    pub(crate) fn of(error: MapError, guest: u64, size: u64) -> Self {
        match error {
            MapError::BadRange => Self::BadRange { guest, size },
            MapError::Short { needed, available } => Self::ShortFile { guest, needed, available },
            MapError::System(source) => Self::Map { guest, source },
        }
    }
}

/// One region.
#[derive(Clone, Debug)]
struct Region {
    guest: u64,
    user: u64,
    size: u64,
    bytes: Area,
    cost: Mapped,
}

impl Region {
    fn map(spec: &RegionSpec, purse: Option<&Arc<Purse>>) -> Result<Self, MemoryError> {
        let RegionSpec { guest, user, size, offset, ref file } = *spec;
        if guest.checked_add(size).is_none() || user.checked_add(size).is_none() {
            return Err(MemoryError::BadRange { guest, size });
        }
        if purse.is_some_and(|purse| size > purse.shared_at_most()) {
            return Err(MemoryError::TooLarge { guest, size });
        }
        let mapping = Mapping::of_stranger(file.as_fd(), offset, size, purse);
        let mapping = mapping.map_err(|error| MemoryError::of(error, guest, size))?;
        let bytes = Area::new(&mapping, 0, size as usize, 1);
        let bytes = bytes.ok_or(MemoryError::BadRange { guest, size })?;
        Ok(Self { guest, user, size, bytes, cost: mapping.cost() })
    }

    fn overlaps(&self, other: &Self) -> bool {
        let apart =
            |mine: u64, others: u64| mine + self.size <= others || others + other.size <= mine;
        !apart(self.guest, other.guest) || !apart(self.user, other.user)
    }

    #[inline]
    fn slice(&self, guest: u64, len: u64) -> Option<GuestSlice<'_>> {
        // An address below the region wraps to an offset past every end.
        self.bytes.slice(guest.wrapping_sub(self.guest), len)
    }
}

/// The region to look in first.
#[derive(Clone, Copy, Default)]
pub(crate) struct Near<'m> {
    guest: u64,
    bytes: Option<GuestSlice<'m>>,
}

impl<'m> Near<'m> {
    /// As [`GuestMemory::slice`], of this region only.
    #[inline]
    pub(crate) fn slice(self, guest: u64, len: u64) -> Option<GuestSlice<'m>> {
        // As for a region: below it, an offset past every end.
        self.bytes?.part(guest.wrapping_sub(self.guest), len)
    }
}

/// The memory table: immutable, so that a worker reads it without a lock; a change makes a new one.
#[derive(Debug, Default)]
pub struct GuestMemory {
    /// The largest first: nearly every buffer lies there.
    regions: Box<[Region]>,
    /// Who pays for pages that we touch first, if that is counted.
    purse: Option<Arc<Purse>>,
}

impl GuestMemory {
    /// Maps a whole table (`VHOST_USER_SET_MEM_TABLE`).
    ///
    /// # Errors
    /// A region is impossible, overlaps another, or cannot be mapped; nothing stays mapped then.
    pub fn map(specs: &[RegionSpec]) -> Result<Arc<Self>, MemoryError> {
        Self::default().anew(specs)
    }

    /// No regions yet, of a guest whose first touches are counted.
    pub(crate) fn bounded(by: Arc<GuestBounds>) -> Self {
        Self { regions: Box::default(), purse: Some(Purse::new(by)) }
    }

    /// Another table of the same guest, which pays on from the same purse.
    ///
    /// # Errors
    /// As [`GuestMemory::map`].
    pub fn anew(&self, specs: &[RegionSpec]) -> Result<Arc<Self>, MemoryError> {
        let empty = Arc::new(Self { regions: Box::default(), purse: self.purse.clone() });
        specs.iter().try_fold(empty, |memory: Arc<Self>, spec| memory.with(spec))
    }

    /// The same and one region more (`VHOST_USER_ADD_MEM_REG`).
    ///
    /// # Errors
    /// As [`GuestMemory::map`].
    pub fn with(&self, spec: &RegionSpec) -> Result<Arc<Self>, MemoryError> {
        let region = Region::map(spec, self.purse.as_ref())?;
        if let Some(other) = self.regions.iter().find(|other| region.overlaps(other)) {
            return Err(MemoryError::Overlap { guest: region.guest, other: other.guest });
        }
        let mut regions = self.regions.to_vec();
        regions.push(region);
        regions.sort_by_key(|region| std::cmp::Reverse(region.size));
        let memory = Self { regions: regions.into(), purse: self.purse.clone() };
        let is_paid = memory.pay();
        is_paid
            .then(|| memory.into())
            .ok_or(MemoryError::TooLarge { guest: spec.guest, size: spec.size })
    }

    /// The same without the region of exactly these addresses (`VHOST_USER_REM_MEM_REG`).
    ///
    /// # Errors
    /// There is none.
    pub fn without(&self, guest: u64, user: u64, size: u64) -> Result<Arc<Self>, MemoryError> {
        let is_it =
            |region: &Region| (region.guest, region.user, region.size) == (guest, user, size);
        let regions: Box<[_]> =
            self.regions.iter().filter(|region| !is_it(region)).cloned().collect();
        if regions.len() == self.regions.len() {
            return Err(MemoryError::Missing { guest });
        }
        let memory = Self { regions, purse: self.purse.clone() };
        memory.pay();
        Ok(memory.into())
    }

    /// Accounts for what is mapped, in the place of the table before; false when that is more than the guest may.
    fn pay(&self) -> bool {
        let cost = self.regions.iter().map(|region| region.cost).sum();
        self.purse.as_ref().is_none_or(|purse| purse.map(cost))
    }

    /// The regions, the largest first.
    pub fn regions(&self) -> impl Iterator<Item = RegionFacts> + '_ {
        self.regions.iter().map(|region| RegionFacts {
            guest: region.guest,
            user: region.user,
            size: region.size,
            withdrawn: region.bytes.loss().is_some(),
        })
    }

    /// Why pages of any region are no longer the guest's, if they are not.
    #[inline]
    pub fn fault(&self) -> Option<Fault> {
        let loss = self.regions.iter().find_map(|region| region.bytes.loss());
        loss.map(|loss| match loss {
            Loss::Cut => Fault::Withdrawn,
            Loss::Unpaid => Fault::Untouched,
        })
    }

    /// Who pays for pages that we touch first.
    pub(crate) fn purse(&self) -> Option<&Arc<Purse>> {
        self.purse.as_ref()
    }

    /// The bytes at a guest physical address, if they lie in one region.
    #[inline]
    pub fn slice(&self, guest: u64, len: u64) -> Option<GuestSlice<'_>> {
        self.regions.iter().find_map(|region| region.slice(guest, len))
    }

    /// The largest region, in which nearly every buffer lies: to be kept at hand while many are looked up.
    #[inline]
    pub(crate) fn near(&self) -> Near<'_> {
        let Some(region) = self.regions.first() else { return Near::default() };
        Near { guest: region.guest, bytes: region.bytes.slice(0, region.size) }
    }

    /// The guest physical address of memory that [`GuestMemory::slice`] gave.
    pub(crate) fn guest_of(&self, slice: GuestSlice<'_>) -> Option<u64> {
        let offset = |region: &Region| Some(region.guest + region.bytes.offset_of(slice)?);
        self.regions.iter().find_map(offset)
    }

    /// A ring's part at a user address, aligned, with its guest physical address.
    pub(crate) fn area(&self, user: u64, len: usize, align: usize) -> Option<(Area, u64)> {
        self.regions.iter().find_map(|region| {
            let offset = user.wrapping_sub(region.user);
            Some((region.bytes.part(offset, len, align)?, region.guest.wrapping_add(offset)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    fn empty(guest: u64, size: u64) -> RegionSpec {
        let file = memfd_create("vast", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, size).unwrap();
        RegionSpec { guest, user: guest, size, offset: 0, file }
    }

    #[test]
    fn a_guest_with_an_absurd_size_is_refused_and_one_of_a_tebibyte_is_not() {
        const TIB: u64 = 1 << 40;
        let guest = GuestMemory::bounded(GuestBounds::new(0, 0, u64::MAX, 1 << 40));
        let refused = guest.anew(&[empty(0, 64 * TIB)]).unwrap_err();
        assert!(matches!(refused, MemoryError::TooLarge { guest: 0, .. }), "{refused}");
        let whole = guest.anew(&[empty(0, TIB / 2), empty(TIB, TIB / 2)]).unwrap();
        assert!(matches!(whole.with(&empty(4 * TIB, 4096)), Err(MemoryError::TooLarge { .. })));
        let half = whole.without(TIB, TIB, TIB / 2).unwrap();
        half.with(&empty(4 * TIB, 4096)).unwrap();
    }
}
