//! Processor work of a VM for what it receives.
//!
//! Work, not time: a VM that has to wait for its core takes as long again, as a guest's own stack and application do. So it is a number of steps
//! of a loop, found once on this machine.

use std::hint::black_box;
use std::time::Instant;

/// Steps of one measurement, and measurements of which the fastest counts.
const STEPS: u64 = 2_000_000;
const TRIES: usize = 7;

/// How fast this machine works.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Work {
    steps_per_ns: f64,
}

impl Work {
    /// Measures it on the core that the caller runs on.
    pub fn measure() -> Self {
        let time = |_| {
            let start = Instant::now();
            walk(STEPS);
            start.elapsed().as_nanos() as f64
        };
        let best = (0..TRIES).map(time).fold(f64::MAX, f64::min);
        Self { steps_per_ns: STEPS as f64 / best.max(1.0) }
    }

    /// Works as much as an undisturbed core does in so many ns.
    pub fn of_ns(self, ns: f64) {
        walk((ns * self.steps_per_ns) as u64);
    }
}

/// Each step waits for the one before.
fn walk(steps: u64) -> u64 {
    (0..steps).fold(1, |state, step| black_box((state ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}
