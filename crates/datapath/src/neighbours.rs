//! Whether others want a worker's core: another switch's worker, a guest's thread, a process that the scheduler put there.
//!
//! A worker that polls in vain keeps them waiting. So it offers the core now and then while it finds nothing. If somebody took it who
//! slept soon, like another worker, it goes on polling and offers it every time: whoever has frames runs at once, and the core never
//! falls asleep between two frames. If somebody took it for long, a time slice would be lost at each offer: then the worker sleeps
//! whenever it has nothing to do, for the scheduler lets those run at once who wake up
//! (docs/decisions/0020).

use flow::Nanos;

/// Polling in vain goes on for so long, in ns, before a core is offered that nobody wanted: that costs a tenth of it.
const OFFER_EVERY: u64 = 4_000;

/// An offer that nobody takes returns within this, in ns; on the machines seen, in 300.
const UNTAKEN: u64 = 2_000;

/// Who keeps the core for longer, in ns, does not sleep by itself soon.
const LONG: u64 = 500_000;

/// For so long, in ns, a core is taken to be wanted. A time slice (about 3 ms) that an offer may cost is 1.5 % of it.
const REMEMBERED: u64 = 200_000_000;

/// What a worker knows of them.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// When the core was offered last.
    offered: Nanos,
    /// Until when somebody is taken to want it.
    wanted: Nanos,
    /// Until when somebody is taken to want it for long.
    wanted_long: Nanos,
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
        let until = Nanos(self.offered.0 + REMEMBERED);
        let taken = self.offered.since(now);
        if taken > LONG {
            self.wanted_long = until;
        } else if taken > UNTAKEN {
            self.wanted = until;
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
    fn who_shares_it_with_somebody_who_does_not_sleep_does_not_poll_in_vain_for_a_while() {
        let mut neighbours = Neighbours::default();
        neighbours.offer(Nanos(10_000), || Nanos(3_000_000));
        assert_eq!(neighbours.spin(Nanos(3_000_000), 30_000), 0);
        assert_eq!(neighbours.spin(Nanos(3_000_000 + REMEMBERED), 30_000), 30_000);
    }
}
