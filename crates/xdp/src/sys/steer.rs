//! Maps of the steering programs: which structs may be read from them.

use super::mapped::pod;
use crate::steer::abi::{
    Packet, SteerClock, SteerConfig, SteerCore, SteerCount, SteerDone, SteerEntry, SteerEvent,
    SteerLine, SteerMasks, SteerPlaced, SteerReceived, SteerRing, SteerTable, SteerThread,
    SteerUnit,
};
pod!(
    Packet,
    SteerClock,
    SteerConfig,
    SteerCore,
    SteerCount,
    SteerDone,
    SteerEntry,
    SteerEvent,
    SteerLine,
    SteerMasks,
    SteerPlaced,
    SteerReceived,
    SteerRing,
    SteerTable,
    SteerThread,
    SteerUnit,
);

impl SteerEvent {
    /// From the ring's bytes; `None` if there are too few.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < size_of::<Self>() {
            return None;
        }
        // SAFETY: so many bytes are there, and every bit pattern is a value.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}
