//! What a flow costs on the worker and on a rung.

use crate::Price;
use crate::declined::PolicyReason;
use crate::heavy::Traffic;
use std::ops::Sub;

/// Nanoseconds of a core for a frame and for each of its bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PerFrame {
    /// A frame.
    pub frame_ns: f64,
    /// A byte.
    pub byte_ns: f64,
}

impl PerFrame {
    /// What a worker takes before it has been measured: measured on an Intel Xeon, `af_packet` on veths.
    pub const WORKER: Self = Self { frame_ns: 1000.0, byte_ns: 0.05 };

    /// Of a rung.
    pub fn of(price: &Price) -> Self {
        Self { frame_ns: price.per_frame_ns.into(), byte_ns: price.per_byte_ns.into() }
    }

    /// Nanoseconds a second that this traffic takes.
    pub(crate) fn per_s(&self, traffic: &Traffic) -> f64 {
        traffic.pps * self.frame_ns + traffic.rate / 8.0 * self.byte_ns
    }
}

/// What workers did between two looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Nanoseconds of their cores.
    pub busy_ns: u64,
}

impl Sub for Work {
    type Output = Self;

    /// What was done since an earlier look.
    fn sub(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            bytes: self.bytes.saturating_sub(before.bytes),
            busy_ns: self.busy_ns.saturating_sub(before.busy_ns),
        }
    }
}

/// What workers take for a frame, learned from their work: a line through time a frame over bytes a frame, by least squares, each look weighted by its
/// frames, older looks less.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Learned {
    /// Sums of weight, size, size², time, size × time.
    sums: [f64; 5],
}

/// Frames in which half of what was learned before is forgotten. Chosen: a second of a busy worker.
const HALF_LIFE: f64 = 1e6;
/// Frames of two sizes that say the same for ever as what was measured once: what has one size only says nothing of bytes.
const PRIOR: [(f64, f64); 2] = [(1000.0, 60.0), (1000.0, 1500.0)];

impl Default for Learned {
    fn default() -> Self {
        Self { sums: [0.0; 5] }
    }
}

impl Learned {
    /// Learns from what was done since the last look.
    pub fn add(&mut self, work: Work) {
        if work.frames == 0 || work.busy_ns == 0 {
            return;
        }
        let frames = work.frames as f64;
        let (size, time) = (work.bytes as f64 / frames, work.busy_ns as f64 / frames);
        // Who was kept from its core for a while seems dear: no look says more than twice what is known.
        let PerFrame { frame_ns, byte_ns } = self.cost();
        let time = time.min(2.0 * (frame_ns + byte_ns * size));
        let kept = 0.5f64.powf(frames / HALF_LIFE);
        self.sums.iter_mut().for_each(|sum| *sum *= kept);
        add(&mut self.sums, frames, size, time);
    }

    /// The line.
    pub fn cost(&self) -> PerFrame {
        let mut sums = self.sums;
        for (frames, size) in PRIOR {
            let PerFrame { frame_ns, byte_ns } = PerFrame::WORKER;
            add(&mut sums, frames, size, frame_ns + size * byte_ns);
        }
        let [weight, size, sizes, time, both] = sums;
        let spread = (weight * sizes - size * size).max(f64::MIN_POSITIVE);
        let slope = (weight * both - size * time) / spread;
        // Neither costs less than nothing.
        let byte_ns = slope.clamp(0.0, time / size);
        PerFrame { frame_ns: (time - byte_ns * size) / weight, byte_ns }
    }
}

fn add(sums: &mut [f64; 5], weight: f64, size: f64, time: f64) {
    let parts = [1.0, size, size * size, time, size * time];
    sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += weight * part);
}

/// What a flow saves on a rung.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Benefit {
    /// Nanoseconds a second; below 0 it costs more there.
    pub ns_per_s: f64,
    /// What it costs on the worker.
    pub worker_ns_per_s: f64,
    /// What a move there and back costs.
    pub moves_ns: u64,
}

impl Benefit {
    /// Of a flow with this traffic.
    pub fn of(traffic: &Traffic, worker: &PerFrame, price: &Price) -> Self {
        let (onloaded, offloaded) = (worker.per_s(traffic), PerFrame::of(price).per_s(traffic));
        Self {
            ns_per_s: onloaded - offloaded,
            worker_ns_per_s: onloaded,
            moves_ns: 2 * price.insert.as_nanos() as u64,
        }
    }

    /// Whether a move is due when so much has been lost: ski rental, at most twice what a prophet would have paid.
    ///
    /// # Errors
    /// Why not, or not yet.
    pub fn is_worth(&self, spent_ns: u64) -> Result<(), PolicyReason> {
        match () {
            () if self.worker_ns_per_s <= 0.0 => Err(PolicyReason::NotSeen),
            () if self.ns_per_s <= 0.0 => {
                Err(PolicyReason::CostsMore { by_ns: -self.ns_per_s as u64 })
            }
            () if spent_ns < self.moves_ns => {
                Err(PolicyReason::NotYetWorth { spent_ns, needs_ns: self.moves_ns })
            }
            () => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Nanos;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::time::Duration;

    fn price(per_frame_ns: f32) -> Price {
        let insert = Duration::from_micros(50);
        Price { slots: 1, insert, per_frame_ns, per_byte_ns: 0.0, is_measured: true }
    }

    fn traffic(frames: u64) -> Traffic {
        let mut traffic = Traffic::begin(Nanos(0));
        (1..=40).for_each(|at| {
            traffic.add(frames / 10, frames / 10 * 100, Nanos(at));
            traffic.tick(Nanos(at * 100_000_000));
        });
        traffic
    }

    #[test]
    fn a_flow_moves_once_it_has_lost_what_the_moves_cost() {
        let benefit = Benefit::of(&traffic(10_000), &PerFrame::WORKER, &price(100.0));
        assert!((8.9e6..9.2e6).contains(&benefit.ns_per_s), "{benefit:?}");
        let needs_ns = 100_000;
        assert_eq!(
            benefit.is_worth(99_999),
            Err(PolicyReason::NotYetWorth { spent_ns: 99_999, needs_ns })
        );
        assert_eq!(benefit.is_worth(needs_ns), Ok(()));
    }

    fn work(frames: u64, size: u64, (frame_ns, byte_ns): (u64, u64)) -> Work {
        let busy_ns = frames * (frame_ns + size * byte_ns / 100);
        Work { frames, bytes: frames * size, busy_ns }
    }

    proptest! {
        #[test]
        fn what_a_frame_and_a_byte_cost_is_learned_from_frames_of_many_sizes(
            costs in (100u64..5000, 0u64..100),
            sizes in vec(60u64..9000, 20..40),
        ) {
            let mut learned = Learned::default();
            let looks = (0..8).flat_map(|_| sizes.iter().chain(&[60, 9000]));
            looks.for_each(|&size| learned.add(work(100_000, size, costs)));
            let found = learned.cost();
            for size in [60.0, 1500.0, 9000.0] {
                let time = |frame: f64, byte: f64| frame + size * byte;
                let (is, says) =
                    (time(costs.0 as f64, costs.1 as f64 / 100.0), time(found.frame_ns, found.byte_ns));
                prop_assert!((is - says).abs() < 0.05 * is + 20.0, "{is} at {size}: {found:?}");
            }
        }

        #[test]
        fn frames_of_one_size_are_known_at_that_size_and_no_cost_is_below_0(
            costs in (100u64..5000, 0u64..100), size in 60u64..60_000, looks in 30usize..60,
        ) {
            let mut learned = Learned::default();
            (0..looks).for_each(|_| learned.add(work(1_000_000, size, costs)));
            let PerFrame { frame_ns, byte_ns } = learned.cost();
            prop_assert!(frame_ns >= -1e-6 && byte_ns >= 0.0);
            let (is, says) = (costs.0 + size * costs.1 / 100, frame_ns + byte_ns * size as f64);
            prop_assert!((is as f64 - says).abs() < 0.05 * is as f64 + 20.0, "{is}, {says}");
        }
    }

    #[test]
    fn a_worker_that_was_kept_from_its_core_once_is_not_dear() {
        let mut learned = Learned::default();
        (0..30).for_each(|_| learned.add(work(10_000, 1000, (800, 5))));
        learned.add(work(100, 1000, (1_000_000, 5)));
        let PerFrame { frame_ns, byte_ns } = learned.cost();
        assert!((840.0..880.0).contains(&(frame_ns + 1000.0 * byte_ns)), "{learned:?}");
    }

    #[test]
    fn a_rung_that_costs_more_is_never_worth_it() {
        let benefit = Benefit::of(&traffic(10_000), &PerFrame::WORKER, &price(2000.0));
        assert!(matches!(
            benefit.is_worth(u64::MAX),
            Err(PolicyReason::CostsMore { by_ns: 9_000_000.. })
        ));
    }
}
