//! Maps of the steering programs: which structs may be read from them.

use super::mapped::pod;
use crate::steer::abi::{
    Packet, SteerClock, SteerConfig, SteerCore, SteerCount, SteerDone, SteerEntry, SteerEvent,
    SteerLine, SteerLook, SteerMasks, SteerPlaced, SteerReceived, SteerRing, SteerShown,
    SteerShownCount, SteerTable, SteerThread, SteerUnit,
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
    SteerLook,
    SteerMasks,
    SteerPlaced,
    SteerReceived,
    SteerRing,
    SteerShownCount,
    SteerTable,
    SteerThread,
    SteerUnit,
);

/// What rings carry, of which every bit pattern is a value.
pub(crate) trait Record: Sized + Copy {
    /// From the ring's bytes, which it begins; `None` if there are too few.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! records {
    ($($name:ty),*) => {$(
        impl Record for $name {
            fn read(bytes: &[u8]) -> Option<Self> {
                if bytes.len() < size_of::<Self>() {
                    return None;
                }
                // SAFETY: so many bytes are there, and every bit pattern is a value: it is made of integers.
                Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
            }
        }
    )*};
}
records!(SteerEvent, SteerShown);
