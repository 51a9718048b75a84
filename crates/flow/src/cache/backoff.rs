//! Whether to try a rung with a port's next batch: after a failure it rests, ever longer.

use super::port_memo::{PLACES, Place};

/// Batches that a rung rests after its first failure.
const REST: u16 = 4;
/// Most batches that it rests. Chosen: trying then costs less than a hundredth of a batch.
const REST_MAX: u16 = 256;

/// One rung at one port.
#[derive(Clone, Copy, Default)]
pub(crate) struct Backoff {
    /// Batches to rest yet.
    rest: u16,
    /// Rest after the last failure.
    last: u16,
}

impl Backoff {
    /// Whether to try with this batch. If so it counts as a failure until it [succeeds](Backoff::succeeded).
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let is_due = self.rest == 0;
        if is_due {
            self.last = (2 * self.last).clamp(REST, REST_MAX);
            self.rest = self.last;
        }
        is_due
    }

    /// Notes a success.
    #[inline]
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }
}

/// One rung at all ports: a guess, which ports may share.
pub(crate) struct Backoffs(Box<[Backoff; PLACES]>);

impl Default for Backoffs {
    fn default() -> Self {
        Self(Box::new([Backoff::default(); PLACES]))
    }
}

impl Backoffs {
    /// The rung at a port.
    #[inline]
    pub(crate) fn at(&mut self, place: Place) -> &mut Backoff {
        &mut self.0[place.slot()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_ever_more_rarely() {
        let mut backoff = Backoff::default();
        let mut until = || (1..).find(|_| backoff.is_due());
        let waits: Vec<_> = (0..9).filter_map(|_| until()).collect();
        assert_eq!(waits, [1, 4, 8, 16, 32, 64, 128, 256, 256]);
        backoff.succeeded();
        assert!(backoff.is_due());
    }

    #[test]
    fn what_fails_at_one_switch_is_tried_at_another() {
        let mut backoffs = Backoffs::default();
        let tried = |backoffs: &mut Backoffs, switch| {
            let place = Place { switch, in_port: 1 };
            (0..100).filter(|_| backoffs.at(place).is_due()).count()
        };
        assert_eq!(tried(&mut backoffs, 1), 5);
        assert_eq!(tried(&mut backoffs, 2), 5);
    }
}
