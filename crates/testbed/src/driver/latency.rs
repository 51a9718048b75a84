//! A pace to send at, and the times that frames took.

/// How late a frame may be and still go, in seconds. Chosen: far above any switch's delay that is not a failure to carry the load.
const LATEST_S: f64 = 1e-3;

/// Sends a number of frames a second, evenly, whatever becomes of them (an open loop): a frame is timed from the moment when it was due,
/// so that a switch that holds its senders up is not thought quick.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Cycles from one frame to the next, in 2^-16 cycles.
    step: u64,
    /// Cycle from which on the next frame may go, in 2^-16 cycles since `start`.
    next: u64,
    start: Option<u64>,
    /// Longest delay, in 2^-16 cycles.
    latest: u64,
    /// Frames that were due and could not go in time.
    missed: u64,
}

impl Pace {
    /// `rate` frames a second in all, on a counter of `cycles_per_s`.
    pub fn new(rate: f64, cycles_per_s: f64) -> Self {
        let step = (cycles_per_s / rate.max(1.0) * 65536.0) as u64;
        let latest = (cycles_per_s * LATEST_S * 65536.0) as u64;
        Self { step, next: 0, start: None, latest: latest.max(step), missed: 0 }
    }

    /// Frames that may go now.
    #[inline]
    pub fn due(&mut self, now: u64) -> u16 {
        let start = *self.start.get_or_insert(now);
        let passed = (now - start) << 16;
        let behind = passed.saturating_sub(self.next);
        if behind > self.latest {
            let missed = (behind - self.latest).div_ceil(self.step);
            self.missed += missed;
            self.next += missed * self.step;
        }
        let due = passed.saturating_sub(self.next) / self.step;
        due.min(u64::from(u16::MAX)) as u16
    }

    /// The cycle in which the `n`-th of the next frames is due.
    #[inline]
    pub fn time(&self, n: u16) -> u64 {
        // From `next` to one step later, as `due` counts.
        self.start.unwrap_or(0) + ((self.next + (u64::from(n) + 1) * self.step) >> 16)
    }

    /// So many went.
    #[inline]
    pub fn sent(&mut self, count: u16) {
        self.next += u64::from(count) * self.step;
    }

    /// Forgets those that could not go in time so far.
    pub fn forgive(&mut self) {
        self.missed = 0;
    }

    /// Frames that were due and could not go in time.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// Parts of each power of two.
const PARTS: u32 = 32;

/// Times in cycles, in classes of about 3 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; (64 * PARTS) as usize], total: 0 }
    }
}

impl Histogram {
    /// Counts one.
    #[inline]
    pub fn add(&mut self, cycles: u64) {
        self.counts[Self::class(cycles)] += 1;
        self.total += 1;
    }

    /// With another's counts.
    fn and(mut self, other: &Self) -> Self {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
        self.total += other.total;
        self
    }

    /// Frames counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The time that a share of all frames did not exceed: the upper end of its class. None before the first frame.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        self.counts.iter().enumerate().find_map(|(class, &count)| {
            seen += count;
            (seen >= wanted).then(|| Self::end(class))
        })
    }

    #[inline]
    fn class(cycles: u64) -> usize {
        let bits = 64 - cycles.max(u64::from(PARTS)).leading_zeros() - 1;
        let shift = bits - PARTS.ilog2();
        if cycles < u64::from(PARTS) {
            return cycles as usize;
        }
        ((shift + 1) * PARTS) as usize + ((cycles >> shift) as usize & (PARTS as usize - 1))
    }

    fn end(class: usize) -> u64 {
        let (octave, part) = (class as u32 / PARTS, class as u64 % u64::from(PARTS));
        if octave == 0 {
            return part;
        }
        let shift = octave - 1;
        ((u64::from(PARTS) + part + 1) << shift) - 1
    }
}

/// Cycles after an absence of the driver in which what is due does not tell of the switch: about 25 us. Chosen: a tick of the kernel's timer comes to all cores at once, in a virtual machine
/// to nine of ten within that. By how much it outlasts the driver's is chance, and decided on p99 (docs/decisions/0020).
const UNSETTLED: u64 = 65_000;

/// How long frames took. Those that were due while the driver was kept from its core or shortly after, some 2 %, are counted apart: they tell what became of the driver, and what came to
/// both cores at once.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Frames that were due in time.
    settled: Histogram,
    /// The others.
    unsettled: Histogram,
    /// Who is due from this cycle on has nothing to do with an absence.
    from: u64,
}

impl Times {
    /// Counts a frame that was due in one cycle and found in another.
    #[inline]
    pub fn add(&mut self, due: u64, found: u64) {
        let times = if due >= self.from { &mut self.settled } else { &mut self.unsettled };
        times.add(found.saturating_sub(due));
    }

    /// Of all frames.
    pub fn whole(&self) -> Histogram {
        self.settled.clone().and(&self.unsettled)
    }

    /// Of those that have nothing to do with the driver's absences.
    pub fn settled(&self) -> &Histogram {
        &self.settled
    }

    /// The driver was kept from its core until now.
    pub fn back(&mut self, now: u64) {
        self.from = now + UNSETTLED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_within_a_class() {
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|cycles| histogram.add(cycles));
        for (share, exact) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.999, 99_900.0)] {
            let told = histogram.percentile(share).unwrap() as f64;
            assert!((exact..exact * 1.04).contains(&told), "{share}: {told}");
        }
        assert_eq!(Histogram::default().percentile(0.5), None);
    }

    #[test]
    fn every_time_is_in_the_class_that_ends_at_or_after_it() {
        for cycles in (0..5000).chain([u64::MAX >> 2, 1 << 40]) {
            let end = Histogram::end(Histogram::class(cycles));
            assert!(end >= cycles && end - cycles <= cycles / 16, "{cycles}: {end}");
        }
    }

    #[test]
    fn what_was_due_while_the_driver_was_away_or_shortly_after_counts_in_the_whole_only() {
        let mut times = Times::default();
        times.add(500, 900);
        times.back(3000);
        // Before and over it, in it, shortly after, and when that has passed.
        for (due, found) in [(900, 3100), (2000, 3100), (3000, 3300), (2999 + UNSETTLED, 99_000)] {
            times.add(due, found);
        }
        times.add(3000 + UNSETTLED, 3300 + UNSETTLED);
        assert_eq!((times.whole().total(), times.settled().total()), (6, 2));
        assert!((400..410).contains(&times.settled().percentile(1.0).unwrap()));
    }

    #[test]
    fn a_pace_lets_as_many_go_as_asked() {
        let mut pace = Pace::new(1000.0, 1e9);
        let mut sent = 0;
        for now in (5_000_000..1_005_000_000).step_by(10_000) {
            let due = pace.due(now);
            pace.sent(due);
            sent += u32::from(due);
        }
        assert!((999..=1000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_frame_is_timed_from_when_it_was_due() {
        let mut pace = Pace::new(1e6, 1e9);
        pace.due(5000);
        assert_eq!(pace.due(9500), 4);
        assert_eq!([0, 1, 3].map(|n| pace.time(n)), [6000, 7000, 9000]);
        pace.sent(4);
        assert_eq!(pace.time(0), 10_000);
    }

    #[test]
    fn a_pace_that_was_late_does_not_flood() {
        // 1000 cycles a frame, 1000 frames in the longest delay.
        let mut pace = Pace::new(1e6, 1e9);
        pace.due(0);
        assert_eq!((pace.due(10_000_000), pace.missed()), (1000, 9000));
    }
}
