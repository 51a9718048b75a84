//! What a ring needs to run.

use crate::call::Call;
use crate::features::Features;
use crate::inflight::InflightRing;
use crate::log::DirtyLog;
use crate::memory::GuestMemory;
use crate::record::RingRecord;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Made by the session when kick, call, addresses, enable (and `DRIVER_OK`, if the status is negotiated) are there.
pub struct VringConfig {
    /// What driver and device agreed on.
    pub features: Features,
    /// Descriptors.
    pub size: u16,
    /// The descriptor area, as a user address.
    pub desc: u64,
    /// The driver area (split: available ring).
    pub driver: u64,
    /// The device area (split: used ring).
    pub device: u64,
    /// Where to go on.
    pub base: Base,
    /// Guest physical address of the device area for the dirty log (`VHOST_VRING_F_LOG`).
    pub log_used_at: Option<u64>,
    /// What the addresses point into.
    pub memory: Arc<GuestMemory>,
    /// Readable when the driver made buffers available; without it the ring has to be polled.
    pub kick: Option<Arc<OwnedFd>>,
    /// Written when the driver wants to know; without it the driver polls.
    pub call: Option<Arc<Call>>,
    /// Where to note what is taken.
    pub inflight: Option<InflightRing>,
    /// Where to note a packed ring's position when the front-end does not; unused with `inflight`.
    pub record: Option<RingRecord>,
    /// Where to note what is written.
    pub log: Option<Arc<DirtyLog>>,
}

/// Where a ring goes on (`VHOST_USER_SET_VRING_BASE`, `VHOST_USER_GET_VRING_BASE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// The next available index.
    Split(u16),
    /// Places in the ring, and the wrap counters there.
    Packed {
        /// Next descriptor to take.
        avail: u16,
        /// Its wrap counter.
        avail_wrap: bool,
        /// Next descriptor to give back.
        used: u16,
        /// Its wrap counter.
        used_wrap: bool,
    },
}

impl Base {
    /// From the message's 32 bits: split, the index; packed, place and wrap counter (bit 15) of the next available in the low half and of the next
    /// used in the high half.
    pub fn from_bits(bits: u32, packed: bool) -> Self {
        let half = |bits: u16| (bits & 0x7fff, bits & 0x8000 != 0);
        if !packed {
            return Self::Split(bits as u16);
        }
        let ((avail, avail_wrap), (used, used_wrap)) =
            (half(bits as u16), half((bits >> 16) as u16));
        Self::Packed { avail, avail_wrap, used, used_wrap }
    }

    /// As the message has it.
    pub fn bits(self) -> u32 {
        let half = |place: u16, wrap: bool| u32::from(place & 0x7fff) | u32::from(wrap) << 15;
        match self {
            Self::Split(index) => index.into(),
            Self::Packed { avail, avail_wrap, used, used_wrap } => {
                half(avail, avail_wrap) | half(used, used_wrap) << 16
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_base_say_the_same() {
        assert_eq!(Base::from_bits(0x1_ffff, false), Base::Split(0xffff));
        let base = Base::Packed { avail: 5, avail_wrap: true, used: 3, used_wrap: false };
        assert_eq!(base.bits(), 0x0003_8005);
        assert_eq!(Base::from_bits(base.bits(), true), base);
    }
}
