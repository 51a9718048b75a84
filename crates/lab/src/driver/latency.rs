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

/// Absences that are remembered. Chosen: with a tick each 4 ms, those of the last 30 ms.
const REMEMBERED: usize = 8;

/// How long frames took. A frame that was due, or came, while the driver was kept from its core took no longer than the driver noticed: [`Times::present`] is without the
/// time in which the driver was away, as far as it is remembered; what the switch was away, or took to come back, is in it.
///
/// At full rate a frame has some 35 cycles of the driver, so the most of them, which met no absence, cost a comparison and one count.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Frames that met no absence.
    plain: Histogram,
    /// Those that did, with it.
    late_whole: Histogram,
    /// The same, without it.
    late_present: Histogram,
    absences: [(u64, u64); REMEMBERED],
    /// Absences so far.
    count: usize,
    /// End of the latest: who was due from then on has met none.
    back: u64,
}

impl Times {
    /// Counts a frame that was due in one cycle and found in another.
    #[inline]
    pub fn add(&mut self, due: u64, found: u64) {
        let time = found.saturating_sub(due);
        if due >= self.back {
            return self.plain.add(time);
        }
        self.late_whole.add(time);
        self.late_present.add(time - self.away_between(due, found).min(time));
    }

    /// From the moment when a frame was due until it was found.
    pub fn whole(&self) -> Histogram {
        self.plain.clone().and(&self.late_whole)
    }

    /// The same without the driver's absences.
    pub fn present(&self) -> Histogram {
        self.plain.clone().and(&self.late_present)
    }

    /// The driver was away from one cycle to another.
    pub fn away(&mut self, begin: u64, end: u64) {
        self.absences[self.count % REMEMBERED] = (begin, end);
        self.count += 1;
        self.back = end;
    }

    #[inline]
    fn away_between(&self, from: u64, to: u64) -> u64 {
        let overlap = |&(begin, end): &(u64, u64)| end.min(to).saturating_sub(begin.max(from));
        self.absences.iter().map(overlap).sum()
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
    fn what_the_driver_was_away_is_not_the_switchs() {
        let mut times = Times::default();
        times.away(1000, 3000);
        times.away(9000, 9500);
        // Before, over its beginning, in the midst, over its end, all of it, over both, behind.
        let frames = [
            (500, 900, 400),
            (500, 1500, 500),
            (1500, 2500, 0),
            (2000, 3100, 100),
            (900, 3100, 200),
            (900, 10_000, 6600),
            (3000, 3300, 300),
        ];
        for (due, found, time) in frames {
            assert_eq!(found - due - times.away_between(due, found), time, "{due} to {found}");
            times.add(due, found);
        }
        let [whole, present] = [times.whole(), times.present()];
        assert_eq!((whole.total(), present.total()), (7, 7));
        let [whole, present] = [whole, present].map(|all| all.percentile(0.5));
        assert!((1000..1040).contains(&whole.unwrap()) && (300..310).contains(&present.unwrap()));
    }

    #[test]
    fn more_absences_than_are_remembered_count_as_the_switchs() {
        let mut times = Times::default();
        (0..REMEMBERED as u64 + 2).for_each(|n| times.away(n * 1000, n * 1000 + 10));
        assert_eq!(times.away_between(0, 1_000_000), 10 * REMEMBERED as u64);
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
