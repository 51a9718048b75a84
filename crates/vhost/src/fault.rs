//! Why a ring was stopped.

use std::fmt;

/// Which part of a ring a fault is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Descriptors (the descriptor table, or the packed ring itself).
    Descriptors,
    /// What the driver writes: the available ring, or the packed ring's driver event suppression.
    Driver,
    /// What the device writes: the used ring, or the packed ring's device event suppression.
    Device,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Descriptors => "descriptor area",
            Self::Driver => "driver area",
            Self::Device => "device area",
        })
    }
}

/// The driver, or the front-end that speaks for it, broke the rules of the ring. The ring stays stopped until the front-end starts it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The size is 0, above 32768, or (split) not a power of two: VIRTIO 1.2 §2.7, §2.8.10.1.
    #[error(
        "ring size {0} is not possible: the driver must use a power of two up to 32768 (a packed ring: any size up to that)"
    )]
    Size(u16),
    /// A part of the ring does not lie in one region of the memory table, or is misaligned.
    #[error("the ring's {part} at {user:#x} does not lie, aligned, in one shared memory region")]
    Unplaced {
        /// Which part.
        part: Part,
        /// The address in the front-end's own address space.
        user: u64,
    },
    /// The driver's index ran ahead of ours by more than the ring holds: VIRTIO 1.2 §2.7.6.
    #[error("the available index jumped to {index}, {waiting} ahead in a ring of {size}")]
    IndexJump {
        /// The index.
        index: u16,
        /// How far ahead.
        waiting: u16,
        /// The ring's size.
        size: u16,
    },
    /// A descriptor's number is outside its table.
    #[error("descriptor {index} is outside its table of {size}")]
    BadIndex {
        /// The number.
        index: u16,
        /// The table's size.
        size: u16,
    },
    /// A buffer does not lie in one region: VIRTIO 1.2 §2.6 leaves it to the driver to give addresses of its own memory.
    #[error(
        "a buffer at guest address {guest:#x}, {len} bytes, does not lie in one shared memory region"
    )]
    Unmapped {
        /// Guest physical address.
        guest: u64,
        /// Bytes.
        len: u32,
    },
    /// More descriptors than the ring has, a loop among them, or more than [`crate::Chains`] takes.
    #[error("a descriptor chain has more than {0} descriptors, or loops")]
    ChainTooLong(u32),
    /// A buffer for the device to write lies where one to read must be, or the other way round: VIRTIO 1.2 §2.7.4.2.
    #[error("a buffer in a {queue} queue is device-{found}")]
    WrongDirection {
        /// "transmit" or "receive", as the driver calls it.
        queue: &'static str,
        /// "readable" or "writable".
        found: &'static str,
    },
    /// An indirect table that was not negotiated, lies in another, continues with `next`, or has a bad length: VIRTIO 1.2 §2.7.5.3.1.
    #[error("an indirect descriptor table of {0} bytes is not allowed here")]
    BadIndirect(u32),
    /// A frame's buffer is too short for the header before it: VIRTIO 1.2 §5.1.6.
    #[error("a buffer of {0} bytes is too short for the virtio-net header")]
    NoHeader(u32),
    /// The memory was taken away while in use.
    #[error("shared memory was withdrawn (its file was cut) while the ring was in use")]
    Withdrawn,
    /// The driver had us touch more pages first than its guest may cost this process.
    #[error(
        "the driver uses more shared memory that nobody has touched yet than it may have the switch pay for"
    )]
    Untouched,
    /// The inflight region contradicts the ring.
    #[error("the inflight region contradicts the ring: {0}")]
    Inflight(&'static str),
}
