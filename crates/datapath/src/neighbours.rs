//! Whether others want a worker's core: another switch's worker, a guest's thread, a process that the scheduler put there.
//!
//! A worker that polls in vain keeps them waiting. So it offers the core now and then while it finds nothing, ever more rarely while nobody takes it,
//! for an offer delays a frame that comes at that moment. If somebody took it who slept soon, like another worker,
//! it goes on polling and offers it every time: whoever has frames runs at once, and the core never
//! falls asleep between two frames. If somebody took it for long, a time slice would be lost at each offer: then the worker sleeps
//! whenever it has nothing to do, for the scheduler lets those run at once who wake up
//! (docs/decisions/0020).
//!
//! A timer's tick in the middle of an offer, or a host that is busy, takes as long as somebody who had the core. The kernel counts how often this thread lost
//! its core: where that is what it was, nobody took it. Where it grew, which may have been at any time, the next few offers are made with a witness: the count is read
//! before them, too. And who has it for long is believed for a little while at first, and for twice as long each time that it is so again.

use crate::clock::Clock;
use flow::Nanos;

/// Polling in vain goes on for so long, in ns, before a core is offered again that somebody took lately.
const OFFER_EVERY: u64 = 4_000;

/// The same, at most, where nobody took it, in ns; it doubles each time. An offer and what it disturbs is 0.5 to 1 us, a thousandth of this, and
/// who comes anew waits for it once.
const OFFER_EVERY_UNTAKEN: u64 = 1_000_000;

/// … or this many times as long as an offer takes, if that is more, as on a busy host, where the kernel's own lines may have to come from memory. The longest of late
/// counts, …
const RARER_THAN_IT_TAKES: u64 = 1_000;

/// … of which this part is forgotten with each offer.
const COST_FADES: u64 = 8;

/// … and never more, in ns: the scheduler itself lets others run after a time slice of 3 ms.
const OFFER_EVERY_AT_LEAST: u64 = 8_000_000;

/// An offer that nobody takes returns within this, in ns; on the machines seen, in 300.
const UNTAKEN: u64 = 2_000;

/// So many offers after one that somebody may have taken are made with a witness (0.4 us): who shares the core with a worker takes nearly all, and a thread of the
/// kernel that runs for a moment takes one.
const WITNESSED: u8 = 3;

/// Who keeps the core for longer, in ns, does not sleep by itself soon.
const LONG: u64 = 500_000;

/// For so long, in ns, a core is taken to be wanted. A time slice (about 3 ms) that an offer may cost is 1.5 % of it.
const REMEMBERED: u64 = 200_000_000;

/// For so long, in ns, the first time that it was taken for long. Who has it all the time is believed that after six time slices.
const REMEMBERED_FIRST: u64 = 10_000_000;

/// What a worker knows of them.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// When the core was offered last.
    offered: Nanos,
    /// How long, in ns, nobody has to have wanted it for the next offer.
    every: u64,
    /// What one takes, in ns, the longest of late.
    cost: u64,
    /// So many offers are still to be witnessed.
    witnessed: u8,
    /// How often this thread had lost its core when that was last asked.
    switches: u64,
    /// Until when somebody is taken to want it.
    wanted: Nanos,
    /// Until when somebody is taken to want it for long.
    wanted_long: Nanos,
    /// For how long, in ns, that was.
    remembered: u64,
}

impl Neighbours {
    /// How long, in ns, to poll in vain where `spin` is what was asked for.
    pub(crate) fn spin(&self, now: Nanos, spin: u64) -> u64 {
        if now < self.wanted_long { 0 } else { spin }
    }

    /// Offers the core, if it is time to.
    pub(crate) fn offer(&mut self, now: Nanos, clock: &impl Clock) {
        if now >= self.wanted && now.since(self.offered) < self.every {
            return;
        }
        let is_witnessed = self.witnessed > 0;
        self.witnessed = self.witnessed.saturating_sub(1);
        if is_witnessed {
            self.switches = clock.switches();
        }
        let from = clock.now();
        clock.give_way();
        self.offered = clock.now();
        let time = self.offered.since(from);
        if time <= UNTAKEN || !self.has_grown(clock) {
            self.cost = time.max(self.cost - self.cost / COST_FADES);
            let rarest = self.cost.saturating_mul(RARER_THAN_IT_TAKES);
            let rarest = rarest.clamp(OFFER_EVERY_UNTAKEN, OFFER_EVERY_AT_LEAST);
            self.every = (2 * self.every).clamp(OFFER_EVERY, rarest);
            return;
        }
        self.every = 0;
        self.witnessed = WITNESSED;
        if is_witnessed {
            self.taken(time);
        }
    }

    /// Whether this thread has lost its core since that was last asked.
    fn has_grown(&mut self, clock: &impl Clock) -> bool {
        let before = std::mem::replace(&mut self.switches, clock.switches());
        self.switches != before
    }

    /// Somebody had the core for so many ns.
    fn taken(&mut self, time: u64) {
        if time > LONG {
            // Once more, and not long after the last time had passed.
            let is_again = self.offered.since(self.wanted_long) < self.remembered + time;
            let longer = if is_again { 2 * self.remembered } else { REMEMBERED_FIRST };
            self.remembered = longer.min(REMEMBERED);
            self.wanted_long = Nanos(self.offered.0 + self.remembered);
        } else {
            self.wanted = Nanos(self.offered.0 + REMEMBERED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    /// A core, and what becomes of an offer.
    #[derive(Default)]
    struct Core {
        now: AtomicU64,
        switches: AtomicU64,
        offers: AtomicU64,
        /// How long the next one takes, in ns.
        time: AtomicU64,
        /// Whether somebody runs meanwhile.
        somebody: AtomicU64,
    }

    impl Clock for Core {
        fn now(&self) -> Nanos {
            Nanos(self.now.load(Relaxed))
        }

        fn cycles(&self) -> u64 {
            0
        }

        fn give_way(&self) {
            self.offers.fetch_add(1, Relaxed);
            self.now.fetch_add(self.time.load(Relaxed), Relaxed);
            self.switches.fetch_add(self.somebody.load(Relaxed), Relaxed);
        }

        fn switches(&self) -> u64 {
            self.switches.load(Relaxed)
        }
    }

    const SPIN: u64 = 30_000;

    /// A worker and its core.
    #[derive(Default)]
    struct Worker {
        neighbours: Neighbours,
        core: Core,
    }

    impl Worker {
        /// Polls in vain once; whether the core was offered.
        fn poll(&mut self) -> bool {
            self.core.now.fetch_add(100, Relaxed);
            let before = self.core.offers.load(Relaxed);
            self.neighbours.offer(self.core.now(), &self.core);
            self.core.offers.load(Relaxed) > before
        }

        /// Polls for so many ns while nobody wants the core; when it offered it.
        fn alone(&mut self, duration: u64) -> Vec<u64> {
            let start = self.core.now().0;
            self.core.time.store(300, Relaxed);
            self.core.somebody.store(0, Relaxed);
            let mut offers = Vec::new();
            while self.core.now().0 < start + duration {
                let now = self.core.now().0;
                if self.poll() {
                    offers.push(now - start);
                }
                assert_eq!(self.spin(), SPIN);
            }
            offers
        }

        /// Polls until the next offer, which takes so many ns.
        fn until_taken(&mut self, time: u64, somebody: bool) {
            self.core.time.store(time, Relaxed);
            self.core.somebody.store(somebody.into(), Relaxed);
            while !self.poll() {}
        }

        fn spin(&self) -> u64 {
            self.neighbours.spin(self.core.now(), SPIN)
        }
    }

    #[test]
    fn who_has_the_core_alone_polls_as_long_as_asked_and_offers_it_ever_more_rarely() {
        let mut worker = Worker::default();
        let offers = worker.alone(3_100_000);
        let pauses: Vec<_> = offers.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
        assert_eq!(pauses, [4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
    }

    #[test]
    fn a_tick_or_a_pause_is_nobody_however_many_come() {
        let mut worker = Worker::default();
        worker.alone(3_000_000);
        for time in [20_000, 2_000_000, 20_000, 20_000] {
            worker.until_taken(time, false);
            assert_eq!(worker.alone(950_000).len(), 0, "offered no sooner than before");
        }
    }

    #[test]
    fn on_a_busy_host_where_many_offers_take_long_they_take_little_in_all() {
        const SECOND: u64 = 1_000_000_000;
        let mut worker = Worker::default();
        let (mut spent, mut polls) = (0, 0_u64);
        while worker.core.now().0 < SECOND {
            // The kernel's threads have the core 33 times a second, none of them during an offer; every other offer takes 8 us.
            polls += 1;
            if polls.is_multiple_of(300_000) {
                worker.core.switches.fetch_add(1, Relaxed);
            }
            let offers = worker.core.offers.load(Relaxed);
            let time = if offers.is_multiple_of(2) { 8_000 } else { 300 };
            worker.core.time.store(time, Relaxed);
            worker.core.somebody.store(0, Relaxed);
            if worker.poll() {
                spent += time;
            }
            assert_eq!(worker.spin(), SPIN);
        }
        assert!(spent < SECOND / 400, "{spent} ns of a second, {:?} offers", worker.core.offers);
    }

    #[test]
    fn who_takes_it_once_is_nobody_either() {
        let mut worker = Worker::default();
        worker.until_taken(20_000, true);
        assert_eq!(worker.alone(20_000).len(), 3);
    }

    #[test]
    fn who_shares_it_with_somebody_who_sleeps_soon_offers_it_every_time() {
        let mut worker = Worker::default();
        worker.until_taken(20_000, true);
        worker.until_taken(20_000, true);
        assert_eq!(worker.alone(4_000).len(), 10, "each of 100 ns and an offer of 300");
        worker.alone(REMEMBERED);
        assert!(worker.alone(4_000).len() < 10);
    }

    #[test]
    fn who_shares_it_with_somebody_who_does_not_sleep_polls_in_vain_ever_more_rarely() {
        let mut worker = Worker::default();
        worker.until_taken(3_000_000, true);
        for remembered in [10, 20, 40, 80, 160, 200, 200].map(|ms| ms * 1_000_000) {
            worker.until_taken(3_000_000, true);
            worker.core.now.fetch_add(remembered - 1, Relaxed);
            assert_eq!(worker.spin(), 0);
            worker.core.now.fetch_add(1, Relaxed);
            assert_eq!(worker.spin(), SPIN);
        }
    }
}
