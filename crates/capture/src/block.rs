//! The numbers of the format, and how a block and an option are put down.
//!
//! ```text
//! kind u32 · length u32 · body · options · length u32       option: code u16 · length u16 · value · zeros to 4 bytes; last 0, 0
//! ```
//!
//! Everything is little-endian. Lengths of blocks are multiples of four.

/// Kinds of block.
pub(crate) mod kind {
    pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
    pub(crate) const INTERFACE: u32 = 1;
    pub(crate) const STATISTICS: u32 = 5;
    pub(crate) const PACKET: u32 = 6;
    pub(crate) const JOURNAL: u32 = 9;
}

/// Codes of options. The same code means another thing in another block.
pub(crate) mod code {
    pub(crate) const END: u16 = 0;
    pub(crate) const COMMENT: u16 = 1;
    pub(crate) const SECTION_OS: u16 = 3;
    pub(crate) const SECTION_APPLICATION: u16 = 4;
    pub(crate) const INTERFACE_NAME: u16 = 2;
    pub(crate) const INTERFACE_DESCRIPTION: u16 = 3;
    pub(crate) const INTERFACE_RESOLUTION: u16 = 9;
    pub(crate) const INTERFACE_FILTER: u16 = 11;
    pub(crate) const INTERFACE_HARDWARE: u16 = 15;
    pub(crate) const PACKET_FLAGS: u16 = 2;
    pub(crate) const PACKET_DROPPED: u16 = 4;
    pub(crate) const PACKET_ID: u16 = 5;
    pub(crate) const PACKET_QUEUE: u16 = 6;
    pub(crate) const STATISTICS_START: u16 = 2;
    pub(crate) const STATISTICS_END: u16 = 3;
    pub(crate) const STATISTICS_RECEIVED: u16 = 4;
    pub(crate) const STATISTICS_LOST: u16 = 5;
    pub(crate) const STATISTICS_ACCEPTED: u16 = 6;
    pub(crate) const STATISTICS_DELIVERED: u16 = 8;
}

/// Says in a section's head that it is little-endian.
pub(crate) const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// The way of a packet, as its flags say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the switch.
    In,
    /// Out of the switch.
    Out,
}

impl Direction {
    pub(crate) fn flags(self) -> u32 {
        match self {
            Self::In => 1,
            Self::Out => 2,
        }
    }

    pub(crate) fn of_flags(flags: u32) -> Option<Self> {
        match flags & 3 {
            1 => Some(Self::In),
            2 => Some(Self::Out),
            _ => None,
        }
    }
}

/// Appends a block whose body and options `fill` appends.
pub(crate) fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    fill(out);
    let length = (out.len() + 4 - start) as u32;
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out.extend(length.to_le_bytes());
}

/// Appends an option; one of no bytes is left out.
pub(crate) fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // A text that does not fit is cut; nothing that we write comes near.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    if value.is_empty() {
        return;
    }
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    padded(out, value);
}

/// Ends the options of a block, if there was one since `from`.
pub(crate) fn end_options(out: &mut Vec<u8>, from: usize) {
    if out.len() > from {
        out.extend(code::END.to_le_bytes());
        out.extend([0; 2]);
    }
}

/// Appends bytes, and zeros up to a multiple of four.
pub(crate) fn padded(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes);
    out.extend(&[0; 3][..bytes.len().wrapping_neg() & 3]);
}

/// Appends a point in time: the high half first, in whatever byte order.
pub(crate) fn moment(out: &mut Vec<u8>, at_ns: u64) {
    out.extend(halves(at_ns));
}

/// A point in time as an option has it.
pub(crate) fn halves(at_ns: u64) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&((at_ns >> 32) as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(at_ns as u32).to_le_bytes());
    bytes
}
