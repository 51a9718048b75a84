//! What a VM saw of a flow.

/// Width of the steps in which the rate over time is kept, in ns.
pub const SLOT: u64 = 100_000_000;

/// Counted by the receiver.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The first number that counts; those before belong to the warm-up.
    first: u64,
    /// The counted time, in ns of the monotonic clock.
    begin: u64,
    end: u64,
    /// Highest number so far.
    highest: Option<u64>,
    /// Datagrams that count, whenever they came.
    pub received: u64,
    /// Datagrams behind one with a higher number: reordered (or sent twice by the network).
    pub late: u64,
    /// Datagrams in each [`SLOT`] of the counted time.
    pub slots: Vec<u64>,
    /// From due to received, in ns, of every datagram that counts.
    pub delays: Vec<u64>,
}

impl Tally {
    /// Counts what has a number from `first` on, and in slots what comes from `begin` to `end`.
    pub fn new(first: u64, begin: u64, end: u64) -> Self {
        let slots = vec![0; end.saturating_sub(begin).div_ceil(SLOT) as usize];
        let delays = Vec::new();
        Self { first, begin, end, highest: None, received: 0, late: 0, slots, delays }
    }

    /// Takes a datagram that was due at one time and arrived at another.
    pub fn take(&mut self, number: u64, due_ns: u64, at_ns: u64) {
        if self.highest.is_some_and(|highest| number <= highest) {
            self.late += 1;
        } else {
            self.highest = Some(number);
        }
        if (self.begin..self.end).contains(&at_ns) {
            self.slots[((at_ns - self.begin) / SLOT) as usize] += 1;
        }
        if number >= self.first {
            self.received += 1;
            self.delays.push(at_ns.saturating_sub(due_ns));
        }
    }

    /// The delay that so many of a hundred stay below, in microseconds; 0 if nothing came.
    pub fn delay_us(&self, percentile: usize) -> f64 {
        let mut delays = self.delays.clone();
        if delays.is_empty() {
            return 0.0;
        }
        let rank = (delays.len() * percentile / 100).min(delays.len() - 1);
        let (_, delay, _) = delays.select_nth_unstable(rank);
        *delay as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_does_not_count_and_what_comes_after_the_end_is_in_no_slot() {
        let mut tally = Tally::new(10, 1000, 1000 + 2 * SLOT);
        tally.take(9, 0, 999);
        tally.take(10, 0, 1000);
        tally.take(11, 0, 1000 + SLOT);
        tally.take(12, 0, 1000 + 2 * SLOT);
        assert_eq!((tally.received, tally.late), (3, 0));
        assert_eq!(tally.slots, [1, 1]);
    }

    #[test]
    fn each_datagram_behind_a_higher_number_is_late() {
        let mut tally = Tally::new(0, 0, SLOT);
        [0, 1, 4, 2, 3, 5, 5].into_iter().for_each(|number| tally.take(number, 0, 1));
        assert_eq!((tally.received, tally.late), (7, 3));
    }

    #[test]
    fn percentiles_of_the_delay() {
        let mut tally = Tally::new(0, 0, SLOT);
        assert_eq!(tally.delay_us(99), 0.0);
        (0..100).for_each(|number| tally.take(number, 0, number * 1000));
        assert_eq!(
            (tally.delay_us(50), tally.delay_us(99), tally.delay_us(100)),
            (50.0, 99.0, 99.0)
        );
    }
}
