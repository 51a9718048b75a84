//! What a flow costs on the worker and on a rung.

use crate::Price;
use crate::declined::PolicyReason;
use crate::heavy::Traffic;

/// Nanoseconds of a core for a frame and for each of its bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PerFrame {
    /// A frame.
    pub frame_ns: f64,
    /// A byte.
    pub byte_ns: f64,
}

impl PerFrame {
    /// What a worker takes before it has been measured: measured on an Intel Xeon, `af_packet` on veths (docs/benchmarks/offload.md).
    pub const WORKER: Self = Self { frame_ns: 1000.0, byte_ns: 0.05 };

    /// Of a rung.
    pub fn of(price: &Price) -> Self {
        Self { frame_ns: price.per_frame_ns.into(), byte_ns: price.per_byte_ns.into() }
    }

    fn per_s(&self, traffic: &Traffic) -> f64 {
        traffic.pps * self.frame_ns + traffic.rate / 8.0 * self.byte_ns
    }
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
    use std::time::Duration;

    fn price(per_frame_ns: f32) -> Price {
        Price { slots: 1, insert: Duration::from_micros(50), per_frame_ns, per_byte_ns: 0.0 }
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

    #[test]
    fn a_rung_that_costs_more_is_never_worth_it() {
        let benefit = Benefit::of(&traffic(10_000), &PerFrame::WORKER, &price(2000.0));
        assert!(matches!(
            benefit.is_worth(u64::MAX),
            Err(PolicyReason::CostsMore { by_ns: 9_000_000.. })
        ));
    }
}
