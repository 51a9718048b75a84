//! What became of an interface's frames, and which core had them.

use super::SteerError;
use super::abi::{COUNTS, SteerCount, SteerReceived, SteerRing};
use super::attached::Attached;
use super::maps::access;
use place::CoreId;

/// What became of a frame; the last four are counted beside it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Steered {
    /// Passed: no entry matches, and such frames are left alone.
    Missed = 0,
    /// Passed: no IP.
    NotIp = 1,
    /// Passed: its core is the one that it came in on.
    Stayed = 2,
    /// Sent to another core.
    Sent = 3,
    /// Dropped: its core's queue is full.
    QueueFull = 4,
    /// Dropped: its move was urgent and the old core had not finished.
    Draining = 5,
    /// Passed: its core has no queue.
    NoQueue = 6,
    /// Passed: the driver has no room for the unit's number.
    NoMeta = 7,
    /// Passed: a map lacks what it must have.
    Odd = 8,
    /// Passed: a sender on this host may have left its checksum open where the program does not look (SCTP, tunnels in tunnels).
    Unsummed = 9,
    /// Dropped: a fragment of a datagram of which one was dropped before.
    Piece = 10,
    /// A later fragment went with its first one.
    FragmentFollowed = 11,
    /// A later fragment whose first one was not seen.
    FragmentOrphan = 12,
    /// Its checksum, which its sender on this host had left open, was finished for another core.
    Summed = 13,
    /// On the target core: a frame without a unit's number.
    Unknown = 14,
}

impl Steered {
    /// All, by rising number.
    pub const ALL: [Self; COUNTS as usize] = [
        Self::Missed,
        Self::NotIp,
        Self::Stayed,
        Self::Sent,
        Self::QueueFull,
        Self::Draining,
        Self::NoQueue,
        Self::NoMeta,
        Self::Odd,
        Self::Unsummed,
        Self::Piece,
        Self::FragmentFollowed,
        Self::FragmentOrphan,
        Self::Summed,
        Self::Unknown,
    ];

    /// One word, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missed => "missed",
            Self::NotIp => "not-ip",
            Self::Stayed => "stayed",
            Self::Sent => "sent",
            Self::QueueFull => "queue-full",
            Self::Draining => "draining",
            Self::NoQueue => "no-queue",
            Self::NoMeta => "no-meta",
            Self::Odd => "odd",
            Self::FragmentFollowed => "fragment-followed",
            Self::FragmentOrphan => "fragment-orphan",
            Self::Unsummed => "unsummed",
            Self::Piece => "piece",
            Self::Summed => "summed",
            Self::Unknown => "unknown",
        }
    }
}

/// Frames and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// Frames.
    pub frames: u64,
    /// Bytes, Ethernet header included.
    pub bytes: u64,
}

/// What one core had of the interface's frames.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CoreCount {
    /// The driver received them there.
    pub arrived: u64,
    /// The network stack got them there.
    pub processed: Count,
    /// On their way to it.
    pub queued: u64,
    /// Lost: its queue was full.
    pub refused: u64,
}

impl Attached {
    /// What became of the frames so far, of all cores.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn counts(&self) -> Result<Vec<(Steered, Count)>, SteerError> {
        let steered = self.maps.per_cpu::<SteerCount>("steered")?;
        let total = |what: Steered| -> Result<_, SteerError> {
            let cores = steered.get(&(what as u32), 0).map_err(access("steered"))?;
            let sum = cores.iter().fold(Count::default(), |sum, core| Count {
                frames: sum.frames + core.frames,
                bytes: sum.bytes + core.bytes,
            });
            Ok((what, sum))
        };
        Steered::ALL.into_iter().map(total).collect()
    }

    /// What each core that the kernel has had of them.
    ///
    /// # Errors
    /// The kernel refuses to read the maps.
    pub fn core_counts(&self) -> Result<Vec<(CoreId, CoreCount)>, SteerError> {
        let received = self.maps.per_cpu::<SteerReceived>("received")?;
        let received = received.get(&0, 0).map_err(access("received"))?;
        let rings = self.maps.array::<SteerRing>("rings")?;
        let count = |(core, seen): (usize, &SteerReceived)| -> Result<_, SteerError> {
            let ring = rings.get(&(core as u32), 0).map_err(access("rings"))?;
            let processed = Count { frames: seen.frames, bytes: seen.bytes };
            let queued = ring.sent.saturating_sub(ring.left);
            let count =
                CoreCount { arrived: seen.arrived, processed, queued, refused: ring.refused };
            Ok((CoreId(core as u16), count))
        };
        received.iter().enumerate().map(count).collect()
    }
}
