//! How often a worker that is awake looks at the queues that it does not poll.
//!
//! By what a look costs, which it measures, and not by how long it polls in vain: a reply to what just left waits in a queue that is idle. While no
//! frames come, a fifth of the time goes into looks; nobody misses it. While some do, a thirty-third at most.

use flow::Nanos;

/// Between two looks passes so many times what one costs while no frames come …
const IN_VAIN: u64 = 4;

/// … and so many times while some do.
const BUSY: u64 = 32;

/// But no longer, in ns, however many queues there are to be looked at: for so long a frame waits for a look, and for the end of the worker's turn.
pub(crate) const LONGEST: u64 = 50_000;

/// Of the costs of late counts the last for this part.
const PART: u64 = 8;

/// When it looked last, and what that costs.
#[derive(Default)]
pub(crate) struct Looks {
    last: Nanos,
    /// In ns.
    cost: u64,
}

impl Looks {
    /// Whether it is time to.
    pub(crate) fn are_due(&self, now: Nanos, busy: bool) -> bool {
        let pause = self.cost * if busy { BUSY } else { IN_VAIN };
        now.since(self.last) >= pause.min(LONGEST)
    }

    /// It looked. One that was held up, by who took the core, counts as one of the longest that matter.
    pub(crate) fn looked(&mut self, from: Nanos, to: Nanos) {
        self.last = to;
        let cost = to.since(from).min(LONGEST);
        self.cost = (self.cost * (PART - 1) + cost).div_ceil(PART);
    }

    /// It slept, and knows who woke it.
    pub(crate) fn slept(&mut self, until: Nanos) {
        self.last = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses of who looks for so many ns each time: without frames, and with some.
    fn pauses(cost: u64) -> [u64; 2] {
        let mut looks = Looks::default();
        (0..100).for_each(|at| looks.looked(Nanos(at * 1_000_000), Nanos(at * 1_000_000 + cost)));
        let last = looks.last;
        [false, true]
            .map(|busy| (0..).find(|&after| looks.are_due(Nanos(last.0 + after), busy)).unwrap())
    }

    #[test]
    fn pauses_are_in_proportion_to_what_a_look_costs_and_bounded() {
        assert_eq!(pauses(0), [0, 0]);
        assert_eq!(pauses(400), [1600, 12_800]);
        assert_eq!(pauses(5000), [20_000, LONGEST]);
        assert_eq!(pauses(3_000_000), [LONGEST, LONGEST]);
    }
}
