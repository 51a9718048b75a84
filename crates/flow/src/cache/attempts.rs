//! Whether a shorter way is worth trying with a port's batches: one that failed is left out for a while.

/// Batches after which it is tried again where it failed; and at most, where it fails again and again: then trying costs less than a hundredth of what a batch costs.
const REST: u16 = 4;
const REST_MAX: u16 = 256;

/// One way at one port.
#[derive(Clone, Copy, Default)]
pub(crate) struct Attempts {
    /// Batches to leave alone yet.
    rest: u16,
    /// How many there were to leave alone after the last failure.
    last: u16,
}

impl Attempts {
    /// Whether one is due for this batch. If so it has failed until it [succeeds](Attempts::succeeded).
    #[inline]
    pub(crate) fn are_due(&mut self) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let are_due = self.rest == 0;
        if are_due {
            self.last = (2 * self.last).clamp(REST, REST_MAX);
            self.rest = self.last;
        }
        are_due
    }

    /// It was of use.
    #[inline]
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_ever_more_rarely() {
        let mut attempts = Attempts::default();
        let mut until = || (1..).find(|_| attempts.are_due());
        let waits: Vec<_> = (0..9).filter_map(|_| until()).collect();
        assert_eq!(waits, [1, 4, 8, 16, 32, 64, 128, 256, 256]);
        attempts.succeeded();
        assert!(attempts.are_due());
    }
}
