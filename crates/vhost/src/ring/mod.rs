//! One ring, seen from the device.
//!
//! Both kinds hand over buffers by number and get numbers back; they differ in where the numbers stand. So a ring is a *layout* (module
//! `split`, module `packed`: find what the driver made available, say what was used, ask for and give notifications) under what is the same for both:
//! chains of buffers ([`Chains`]), a frame spread over them ([`Vring::put`]), the order of stores and fences.

mod chains;
mod config;
mod distance;
mod fill;
mod header;
mod indirect;
mod packed;
mod split;
mod vring;

pub use chains::{Chains, Unread};
pub use config::{Base, VringConfig};
pub use distance::Reach;
pub use fill::{Frame, Outline, Payload, Put, Refused};
pub use header::{HEADER_MAX, NetHeader};
pub use vring::Vring;

use crate::fault::Fault;
use crate::sys::For;
use chains::Mark;

/// Most descriptors of a ring (VIRTIO 1.2 §2.7, §2.8.10.1).
const SIZE_MAX: u16 = 1 << 15;

/// A descriptor's flags (VIRTIO 1.2 §2.7.5, §2.8.1).
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// All that say what a descriptor is in its chain.
const CHAIN: u16 = NEXT | WRITE | INDIRECT;

/// What the driver uses the ring for, in its own words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    /// Every buffer is for us to read.
    Transmit,
    /// Every buffer is for us to write.
    Receive,
}

impl Queue {
    const fn purpose(self) -> For {
        match self {
            Self::Transmit => For::Reading,
            Self::Receive => For::Reserving,
        }
    }

    /// [`CHAIN`] of a buffer for this direction that is the only one of its chain.
    #[inline]
    const fn alone(self) -> u16 {
        match self {
            Self::Transmit => 0,
            Self::Receive => WRITE,
        }
    }

    /// # Errors
    /// The buffer is for the other direction.
    fn check(self, flags: u16) -> Result<(), Fault> {
        match (self, flags & WRITE != 0) {
            (Self::Transmit, false) | (Self::Receive, true) => Ok(()),
            (Self::Transmit, true) => {
                Err(Fault::WrongDirection { queue: "transmit", found: "writable" })
            }
            (Self::Receive, false) => {
                Err(Fault::WrongDirection { queue: "receive", found: "readable" })
            }
        }
    }
}

/// A buffer to give back, or several, of which it has the last one's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Used {
    id: u16,
    /// Places that it took in a packed ring; in a split one, how many there are.
    places: u16,
    /// Bytes that we wrote.
    len: u32,
}

impl Used {
    #[inline]
    fn of(mark: Mark, len: u32) -> Self {
        Self { id: mark.id, places: mark.places, len }
    }
}

/// Where a ring's parts are, in the front-end's address space.
#[derive(Clone, Copy, Debug)]
struct Places {
    size: u16,
    desc: u64,
    driver: u64,
    device: u64,
    log_used_at: Option<u64>,
}

/// Whether an index that moved from `old` to `new` passed `event` (VIRTIO 1.2 §2.7.10.1, `vring_need_event`).
#[inline]
fn passed(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}
