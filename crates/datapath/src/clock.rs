//! Time, handed in so that tests decide what it is.

use crate::sys;
use flow::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;

/// Where a worker gets its time from. Read once or a few times per batch, never per packet.
pub trait Clock: Send + Sync + 'static {
    /// Monotonic time: timeouts, meters, quotas.
    fn now(&self) -> Nanos;

    /// A cheaper counter for the cost of stages; any unit that goes up steadily.
    fn cycles(&self) -> u64;

    /// The time when [`Clock::cycles`] said `count`, just now.
    fn time_of(&self, _count: u64) -> Nanos {
        self.now()
    }

    /// Nanoseconds between two counts of [`Clock::cycles`]; `None` as long as nobody knows how long a cycle is.
    fn between(&self, from: u64, to: u64) -> Option<u64> {
        Some(to.wrapping_sub(from))
    }

    /// Lets others have the core who wait for it.
    fn give_way(&self) {
        std::thread::yield_now();
    }

    /// How often the calling thread has lost its core to another one, or left it.
    fn switches(&self) -> u64 {
        sys::switches()
    }
}

/// The machine's own clocks: `CLOCK_MONOTONIC` and the timestamp counter.
///
/// Not the coarse clock: its 4 ms step is a hundred times what `spin` has to tell apart. But each thread asks the clock itself (some 60 cycles, and a wait until all that was begun
/// before has ended) only now and then, and goes on from there by the counter, which is read for each batch anyway: docs/decisions/0022.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Nanos {
        self.time_of(sys::cycles())
    }

    #[inline]
    fn time_of(&self, count: u64) -> Nanos {
        NEAR.with(|near| {
            let (next, now) = near.get().tell(count, || (monotonic(), sys::cycles()));
            near.set(next);
            now
        })
    }

    fn cycles(&self) -> u64 {
        sys::cycles()
    }

    #[inline]
    fn between(&self, from: u64, to: u64) -> Option<u64> {
        NEAR.with(|near| near.get().between(from, to))
    }
}

thread_local! {
    static NEAR: Cell<Near> = const { Cell::new(Near::UNKNOWN) };
}

fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Cycles after which the clock is asked again: so long at most does a wrong rate of the counter last, as after a machine's move to another host. 0.1 ms at 2.6 GHz.
const ASK: u64 = 1 << 18;

/// Cycles within which the clock answers, unless the thread was kept from its core meanwhile: then nobody knows to which count the answer belongs.
const ANSWERS: u64 = 1 << 11;

/// Where the clock was lately.
#[derive(Clone, Copy, Debug)]
struct Near {
    /// What it said, at this count.
    at: Nanos,
    count: u64,
    /// Nanoseconds in a cycle, times 2^32; 0 if that is not known.
    rate: u64,
    /// What was told last: never more than what is told next.
    told: Nanos,
    /// The last rate that was known: for how long something took.
    lasting: u64,
}

impl Near {
    const UNKNOWN: Self = Self { at: Nanos(0), count: 0, rate: 0, told: Nanos(0), lasting: 0 };

    /// The time at a count, and what to go on from. `ask`: what the clock says, and the count after it.
    #[inline]
    fn tell(self, count: u64, ask: impl FnOnce() -> (Nanos, u64)) -> (Self, Nanos) {
        // A counter that went back seems to have gone far.
        let passed = count.wrapping_sub(self.count);
        let mut next = self;
        if self.rate != 0 && passed < ASK {
            next.told = self.told.max(Nanos(self.at.0 + ((passed * self.rate) >> 32)));
        } else {
            next = self.asked(count, ask());
        }
        (next, next.told)
    }

    /// Nanoseconds between two counts, of which the later may be read a little earlier by another core.
    #[inline]
    fn between(self, from: u64, to: u64) -> Option<u64> {
        let cycles = to.saturating_sub(from);
        (self.lasting != 0).then(|| ((u128::from(cycles) * u128::from(self.lasting)) >> 32) as u64)
    }

    /// The clock said this between two counts.
    #[cold]
    fn asked(self, count: u64, (at, after): (Nanos, u64)) -> Self {
        let told = self.told.max(at);
        if after.wrapping_sub(count) > ANSWERS {
            return Self { told, lasting: self.lasting, ..Self::UNKNOWN };
        }
        let passed = count.wrapping_sub(self.count);
        if self.count != 0 && passed < ASK {
            // Too soon after the answer before to know the rate.
            return Self { told, ..self };
        }
        let rate = (u128::from(at.since(self.at)) << 32) / u128::from(passed.max(1));
        // More than 16 ns a cycle is none: the counter stood still, or went back.
        let is_known = self.count != 0 && rate < 1 << 36;
        let rate = if is_known { rate as u64 } else { 0 };
        let lasting = if is_known { rate } else { self.lasting };
        Self { at, count, rate, told, lasting }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 2.5 GHz, and a clock beside it.
    fn ns(count: u64) -> Nanos {
        Nanos(5_000_000 + count * 2 / 5)
    }

    fn asked(near: Near, count: u64) -> (Near, Nanos) {
        near.tell(count, || (ns(count), count + 100))
    }

    fn known() -> Near {
        let (near, _) = asked(Near::UNKNOWN, 1_000_000);
        asked(near, 1_000_000 + ASK).0
    }

    #[test]
    fn between_answers_the_counter_tells_the_time() {
        let (mut near, mut last, mut asks) = (Near::UNKNOWN, Nanos(0), 0);
        for count in (1_000_000..20_000_000).step_by(997) {
            let (next, now) = near.tell(count, || {
                asks += 1;
                (ns(count), count + 60)
            });
            assert!(now >= last && now.0.abs_diff(ns(count).0) <= 2, "{now:?} at {count}");
            (near, last) = (next, now);
        }
        // Before the rate is known each time, then once in so many cycles.
        let every = ASK.div_ceil(997);
        assert!(asks <= every + 19_000_000 / ASK + 2, "{asks}");
    }

    #[test]
    fn a_counter_that_jumps_or_stands_still_is_not_believed() {
        for jump in [u64::MAX - 500_000, 1 << 40] {
            let count = 1_000_000_u64.wrapping_add(jump);
            let later = Nanos(ns(2_000_000).0);
            let (near, now) = known().tell(count, || (later, count.wrapping_add(60)));
            assert_eq!(now, later);
            let (_, now) = near.tell(count.wrapping_add(ASK), || (Nanos(later.0 + 7), 0));
            assert_eq!(now, Nanos(later.0 + 7), "its rate is not known yet: asked");
        }
        let near = Near { rate: 0, ..known() };
        let (near, _) = near.tell(near.count, || (ns(9_000_000), near.count + 60));
        assert_eq!(near.rate, 0);
    }

    #[test]
    fn an_answer_that_took_long_belongs_to_no_count() {
        let count = 1_000_000 + 3 * ASK;
        let (near, now) = known().tell(count, || (ns(count), count + ANSWERS + 1));
        assert_eq!((near.rate, now), (0, ns(count)));
        let back = ns(count - 5000);
        let (_, now) = near.tell(count, || (back, count + 60));
        assert_eq!(now, ns(count), "time does not go back");
    }

    #[test]
    fn how_long_something_took_is_known_once_a_rate_is() {
        assert_eq!(Near::UNKNOWN.between(5, 9), None);
        let near = known();
        assert!(near.between(1000, 3_500_000).unwrap().abs_diff(1_399_600) < 50);
        assert_eq!(near.between(9, 7), Some(0));
        let (lost, _) = near.tell(near.count + ASK, || (ns(9), near.count + ASK + ANSWERS + 1));
        assert_eq!((lost.rate, lost.between(0, 2500)), (0, near.between(0, 2500)));
    }

    #[test]
    fn the_machines_clock_is_the_kernels() {
        for _ in 0..1000 {
            let (before, now, after) = (monotonic(), MonotonicClock.now(), monotonic());
            // A counter's rate is known to a hundredth at worst, and asked for each 0.1 ms.
            assert!(now.0 + 2000 >= before.0 && now.0 <= after.0 + 2000, "{before:?} {now:?}");
        }
    }
}
