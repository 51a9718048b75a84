//! One ring as the front-end has set it up so far.

use crate::{Base, Call};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How one side tells the other that something happened: by an `E`, a file or what is made of it.
#[derive(Debug, Default)]
pub(super) enum Signal<E> {
    /// Nothing was said yet.
    #[default]
    Unset,
    /// By looking again and again: the front-end gave no file descriptor on purpose.
    Polled,
    /// By an eventfd.
    Event(Arc<E>),
}

impl<E> Signal<E> {
    pub(super) fn is_set(&self) -> bool {
        !matches!(self, Self::Unset)
    }

    pub(super) fn event(&self) -> Option<Arc<E>> {
        match self {
            Self::Event(event) => Some(event.clone()),
            Self::Unset | Self::Polled => None,
        }
    }
}

impl<E> From<Option<E>> for Signal<E> {
    fn from(event: Option<E>) -> Self {
        event.map_or(Self::Polled, |event| Self::Event(Arc::new(event)))
    }
}

/// `VHOST_USER_SET_VRING_ADDR`: user addresses of the ring's parts, and where writes to its device area are logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Addresses {
    pub(super) desc: u64,
    pub(super) driver: u64,
    pub(super) device: u64,
    pub(super) log: Option<u64>,
}

/// Everything said about one ring.
#[derive(Debug, Default)]
pub(super) struct RingSetup {
    /// Descriptors; 0 as long as nothing was said.
    pub(super) size: u16,
    pub(super) addresses: Option<Addresses>,
    /// Where to begin, as the message carries it; `None`: at the beginning.
    pub(super) base: Option<u32>,
    /// The base is ours, from where the ring stopped, and not the front-end's.
    pub(super) has_run: bool,
    /// The driver wakes us. Given anew before each start.
    pub(super) kick: Signal<OwnedFd>,
    /// We wake the driver. Stays over stops: a driver that polls may not give it again.
    pub(super) call: Signal<Call>,
    /// We tell that the ring is broken.
    pub(super) error: Option<Call>,
    pub(super) enabled: bool,
}

impl RingSetup {
    /// What the front-end must still say before the ring is there at all; enabling it is another matter.
    pub(super) fn missing(&self) -> Option<&'static str> {
        let said = [
            (self.size > 0, "its size"),
            (self.addresses.is_some(), "its addresses"),
            (self.kick.is_set(), "a kick (the driver to start it)"),
            (self.call.is_set(), "a call"),
        ];
        said.into_iter().find(|(there, _)| !there).map(|(_, what)| what)
    }
}

/// Reads where a ring begins; at the beginning when nothing was said, where wrap counters are 1 (VIRTIO 1.2 §2.8.1).
///
/// DPDK fills the lower half of a packed ring's base only and means both: a ring that was stopped has used all that it took. An upper half
/// of 0 that means itself would belong to a ring that was stopped halfway, which no one does.
pub(super) fn read_base(word: Option<u32>, packed: bool) -> Base {
    const WRAP: u32 = 1 << 15;
    let word = match (word, packed) {
        (None, true) => WRAP | WRAP << 16,
        (Some(low @ 0..=0xffff), true) => low | low << 16,
        (word, _) => word.unwrap_or(0),
    };
    Base::from_bits(word, packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_base_survives_its_message() {
        let base = Base::Packed { avail: 300, avail_wrap: false, used: 17, used_wrap: true };
        assert_eq!(read_base(Some(base.bits()), true), base);
        assert_eq!(read_base(Some(Base::Split(65_535).bits()), false), Base::Split(65_535));
    }

    #[test]
    fn half_a_packed_base_stands_for_both_halves() {
        let both =
            |at, wrap| Base::Packed { avail: at, avail_wrap: wrap, used: at, used_wrap: wrap };
        assert_eq!(read_base(Some(0x8005), true), both(5, true));
        assert_eq!(read_base(None, true), both(0, true));
    }

    #[test]
    fn a_ring_says_what_it_waits_for() {
        let mut setup = RingSetup { size: 256, ..RingSetup::default() };
        assert_eq!(setup.missing(), Some("its addresses"));
        setup.addresses = Some(Addresses { desc: 0, driver: 0, device: 0, log: None });
        setup.kick = Signal::Polled;
        setup.call = Signal::Polled;
        assert_eq!(setup.missing(), None);
    }
}
