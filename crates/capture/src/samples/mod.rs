//! A sample of the traffic, as collectors read it.
//!
//! * [`sflow`]: frames one by one, with their first bytes, and the counters of ports.
//! * [`ipfix`]: flows that are summed up from them.
//!
//! Each frame of a sample stands for `weight` frames. Who takes the sample knows that number, for he knows how many came.

mod bytes;
pub mod ipfix;
pub mod sflow;

/// Most bytes of a datagram. Chosen: fits into a frame of an Ethernet of 1500 bytes, behind IPv6, UDP and two tags.
const DATAGRAM: usize = 1400;

/// A frame of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample<'a> {
    /// When it came in, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Number of the port where it came in.
    pub port: u32,
    /// Bytes of the frame, without its checksum.
    pub len: u32,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// How many frames it stands for, itself too.
    pub weight: u32,
    /// Where it was processed.
    pub place: Place,
}

/// Where a frame was processed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The core.
    pub core: u32,
    /// Name of the rung, or nothing if it is not known.
    pub rung: &'static str,
}
