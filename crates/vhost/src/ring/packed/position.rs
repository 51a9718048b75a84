//! Where one is in a packed ring.

use crate::fault::Fault;
use crate::ring::Base;

/// `VIRTQ_DESC_F_AVAIL`, `VIRTQ_DESC_F_USED`.
pub(super) const AVAIL: u16 = 1 << 7;
pub(super) const USED: u16 = 1 << 15;

/// A place, and the wrap counter there: it begins at 1 and changes with every lap (VIRTIO 1.2 §2.8.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    pub(super) place: u16,
    pub(super) wrap: bool,
}

impl Position {
    /// Those of a base: next available, next used.
    ///
    /// # Errors
    /// They lie outside the ring. A split ring's base cannot come here; it would say that too.
    pub(super) fn of(base: Base, size: u16) -> Result<(Self, Self), Fault> {
        let Base::Packed { avail, avail_wrap, used, used_wrap } = base else {
            return Err(Fault::Size(size));
        };
        match [avail, used].into_iter().find(|&place| place >= size) {
            Some(index) => Err(Fault::BadIndex { index, size }),
            None => {
                Ok((Self { place: avail, wrap: avail_wrap }, Self { place: used, wrap: used_wrap }))
            }
        }
    }

    /// Whether a descriptor of these flags, at this position, is available: AVAIL as the counter, USED not.
    #[inline]
    pub(super) fn is_available(self, flags: u16) -> bool {
        flags & (AVAIL | USED) == self.available()
    }

    /// The two marks of an available descriptor here.
    #[inline]
    pub(super) fn available(self) -> u16 {
        if self.wrap { AVAIL } else { USED }
    }

    /// Whether one of these flags, at this position, is used: both as the counter (VIRTIO 1.2 §2.8.1).
    pub(super) fn is_used(self, flags: u16) -> bool {
        (flags & AVAIL != 0) == self.wrap && (flags & USED != 0) == self.wrap
    }

    /// `by` places on, at most a lap.
    #[inline]
    pub(super) fn forth(self, by: u16, size: u16) -> Self {
        let place = self.place + by;
        if place < size {
            Self { place, ..self }
        } else {
            Self { place: place - size, wrap: !self.wrap }
        }
    }

    /// `by` places back, at most a lap.
    pub(super) fn back(self, by: u16, size: u16) -> Self {
        match self.place.checked_sub(by) {
            Some(place) => Self { place, ..self },
            None => Self { place: self.place + size - by, wrap: !self.wrap },
        }
    }

    /// Places from `start` to here, at most a lap.
    pub(super) fn since(self, start: Self, size: u16) -> u16 {
        match self.wrap == start.wrap {
            true => self.place.saturating_sub(start.place),
            false => (self.place + size).saturating_sub(start.place).min(size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn back_undoes_forth(size in 1_u16..=1 << 15, place: u16, by: u16, wrap: bool) {
            let (start, by) = (Position { place: place % size, wrap }, by % (size + 1));
            let end = start.forth(by, size);
            prop_assert!(end.place < size);
            prop_assert_eq!(end.back(by, size), start);
            prop_assert_eq!(end.since(start, size), by);
        }
    }

    #[test]
    fn a_descriptor_is_available_in_its_own_lap_only() {
        let (first, second) =
            (Position { place: 0, wrap: true }, Position { place: 0, wrap: false });
        assert!(first.is_available(AVAIL) && second.is_available(USED));
        for flags in [0, AVAIL | USED] {
            assert!(!first.is_available(flags) && !second.is_available(flags));
        }
        assert!(!second.is_available(AVAIL) && !first.is_available(USED));
    }
}
