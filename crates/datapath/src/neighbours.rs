//! Whether others want a worker's core: another switch's worker, a guest's thread, a process that the scheduler put there.
//!
//! A worker that polls in vain keeps them waiting. So it offers the core now and then while it finds nothing. If somebody took it who
//! slept soon, like another worker, it goes on polling and offers it every time: whoever has frames runs at once, and the core never
//! falls asleep between two frames. If somebody took it for long, a time slice would be lost at each offer: then the worker sleeps
//! whenever it has nothing to do, for the scheduler lets those run at once who wake up
//! (docs/decisions/0020). A host that paused this machine looks the same, and comes once; so it sleeps for a little while at first, and twice
//! as long each time that the next offer is taken for long again.

use flow::Nanos;

/// Polling in vain goes on for so long, in ns, before a core is offered that nobody wanted: that costs a tenth of it.
const OFFER_EVERY: u64 = 4_000;

/// An offer that nobody takes returns within this, in ns; on the machines seen, in 300.
const UNTAKEN: u64 = 2_000;

/// Who keeps the core for longer, in ns, does not sleep by itself soon.
const LONG: u64 = 500_000;

/// For so long, in ns, a core is taken to be wanted. A time slice (about 3 ms) that an offer may cost is 1.5 % of it.
const REMEMBERED: u64 = 200_000_000;

/// For so long, in ns, the first time that it was taken for long. Who has it all the time is believed that after five time slices.
const REMEMBERED_FIRST: u64 = 10_000_000;

/// What a worker knows of them.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// When the core was offered last.
    offered: Nanos,
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

    /// Offers the core, if it is time to; `give_way` does it, and says when the core was back.
    pub(crate) fn offer(&mut self, now: Nanos, give_way: impl FnOnce() -> Nanos) {
        if now >= self.wanted && now.since(self.offered) < OFFER_EVERY {
            return;
        }
        self.offered = give_way();
        let taken = self.offered.since(now);
        if taken > LONG {
            // Once more, and not long after the last time had passed.
            let is_again = now.since(self.wanted_long) < self.remembered;
            let longer = if is_again { 2 * self.remembered } else { REMEMBERED_FIRST };
            self.remembered = longer.min(REMEMBERED);
            self.wanted_long = Nanos(self.offered.0 + self.remembered);
        } else if taken > UNTAKEN {
            self.wanted = Nanos(self.offered.0 + REMEMBERED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_core_alone_polls_as_long_as_asked_and_offers_it_rarely() {
        let mut neighbours = Neighbours::default();
        let mut offers = 0;
        for now in (10_000..20_000).step_by(100) {
            neighbours.offer(Nanos(now), || {
                offers += 1;
                Nanos(now + 300)
            });
            assert_eq!(neighbours.spin(Nanos(now), 30_000), 30_000);
        }
        assert_eq!(offers, 3, "every 4 us at most");
    }

    #[test]
    fn who_shares_it_with_somebody_who_sleeps_soon_offers_it_every_time() {
        let mut neighbours = Neighbours::default();
        neighbours.offer(Nanos(10_000), || Nanos(60_000));
        let mut offers = 0;
        for now in [60_100, 60_200, 60_300] {
            neighbours.offer(Nanos(now), || {
                offers += 1;
                Nanos(now + 50)
            });
            assert_eq!(neighbours.spin(Nanos(now), 30_000), 30_000);
        }
        assert_eq!(offers, 3);
    }

    #[test]
    fn who_shares_it_with_somebody_who_does_not_sleep_polls_in_vain_ever_more_rarely() {
        let mut neighbours = Neighbours::default();
        let mut now = 10_000;
        for remembered in [10, 20, 40, 80, 160, 200, 200].map(|ms| ms * 1_000_000) {
            neighbours.offer(Nanos(now), || Nanos(now + 3_000_000));
            now += 3_000_000;
            assert_eq!(neighbours.spin(Nanos(now + remembered - 1), 30_000), 0);
            now += remembered;
            assert_eq!(neighbours.spin(Nanos(now), 30_000), 30_000);
        }
    }

    #[test]
    fn a_pause_now_and_then_is_forgotten_soon() {
        let mut neighbours = Neighbours::default();
        for now in [10_000, 100_000_000, 130_000_000].map(Nanos) {
            neighbours.offer(now, || Nanos(now.0 + 1_000_000));
            let back = now.0 + 1_000_000;
            assert_eq!(neighbours.spin(Nanos(back + REMEMBERED_FIRST - 1), 30_000), 0);
            assert_eq!(neighbours.spin(Nanos(back + REMEMBERED_FIRST), 30_000), 30_000);
        }
    }
}
