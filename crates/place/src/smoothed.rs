//! One core's load, smoothed, and ahead of its measurements.
//!
//! A measurement of two milliseconds is noisy, and smoothing it makes it late. Late loads and a policy that acts on them swing: it would
//! see the old imbalance, and move more, too far. So whoever moves a unit says so here, the load is shifted at once by what the
//! unit is believed to cost, and later measurements correct the belief. Of a new unit nothing is believed: it is counted ([`Arrivals`](crate::Arrivals)).
//!
//! Smoothing would also hide for 14 ms that a core has nothing left to give. A core without any idle time for nearly two milliseconds is overloaded,
//! whatever it did before: then its [strain](Smoothed::strain) is what was measured last, until it has some again. Units are moved by that. New ones are placed by the
//! smoothed load: they stay for longer than a burst.

use std::time::Duration;

use crate::{Load, Stage, StageLoads};

/// After this time of steady load, half of a change shows. Chosen: three measurements of a busy agent, so that noise is halved twice and
/// a step of load is still acted upon within the 10 ms that we promise.
const HALF_LIFE: Duration = Duration::from_millis(6);

/// A core that spends so much of its time, for [`FULL_AFTER`], has nothing left.
const FULL: Load = Load::percent(98);
const NEARLY_FULL: Load = Load::percent(90);
/// Chosen: longer than the bursts of a NIC or a guest's short requests, and short enough to leave the rest of 10 ms to the move. Two measurements a millisecond apart
/// reach it, also if a timer was a little early.
const FULL_AFTER: Duration = Duration::from_micros(1800);
/// For so long a core that became full deserves to be looked at more often; one that a guest keeps full for ever does not.
const FILLING: Duration = Duration::from_millis(12);

/// One core's load as [`CoreTable`](crate::CoreTable) should show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Smoothed {
    loads: StageLoads,
    /// What was measured last.
    last: StageLoads,
    /// For so long there was no idle time.
    full: Duration,
}

impl Smoothed {
    /// Takes in what was measured over `window`, however long that was.
    pub fn measure(&mut self, sample: &StageLoads, window: Duration) {
        // Full stays full until it clearly is not: else noise would begin it anew each time.
        let least = if self.full.is_zero() { FULL } else { NEARLY_FULL };
        self.full = if sample.total() >= least { self.full + window } else { Duration::ZERO };
        self.last = *sample;
        let mix = |seen: Load, now: Load| {
            let (window, life) = (window.as_nanos(), HALF_LIFE.as_nanos());
            let parts = |load: Load| u128::from(load.as_ppm());
            let sum = parts(seen) * life + parts(now) * window;
            Load::ppm(u32::try_from(sum / (window + life)).expect("between two loads"))
        };
        for stage in Stage::ALL {
            self.loads[stage] = mix(self.loads[stage], sample[stage]);
        }
        self.loads.other = mix(self.loads.other, sample.other);
    }

    /// A unit has come that costs about `load`.
    pub fn gain(&mut self, stage: Stage, load: Load) {
        for loads in [&mut self.loads, &mut self.last] {
            loads[stage] = loads[stage].plus(load);
        }
    }

    /// A unit has gone that cost about `load`.
    pub fn lose(&mut self, stage: Stage, load: Load) {
        for loads in [&mut self.loads, &mut self.last] {
            loads[stage] = loads[stage].minus(load);
        }
    }

    /// The load.
    pub fn loads(&self) -> StageLoads {
        self.loads
    }

    /// The load, or, of a core that has nothing left, what it does now.
    pub fn strain(&self) -> StageLoads {
        if self.full >= FULL_AFTER { self.last } else { self.loads }
    }

    /// Whether there has been no idle time since the last measurement at least.
    pub fn is_full(&self) -> bool {
        self.full > Duration::ZERO
    }

    /// Whether that began lately: what follows from it is not done yet.
    pub fn is_filling(&self) -> bool {
        self.is_full() && self.full <= FILLING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(load: Load) -> StageLoads {
        let mut loads = StageLoads::default();
        loads[Stage::Packet] = load;
        loads
    }

    #[test]
    fn a_longer_window_weighs_more() {
        let after = |window| {
            let mut smoothed = Smoothed::default();
            smoothed.measure(&packets(Load::percent(80)), Duration::from_millis(window));
            smoothed.loads().total()
        };
        assert_eq!(after(0), Load::ZERO);
        assert_eq!(after(2), Load::percent(20));
        assert_eq!(after(6), Load::percent(40));
        assert_eq!(after(594), Load::ppm(792_000));
    }

    #[test]
    fn a_core_that_has_been_full_for_two_milliseconds_shows_it_at_once_and_not_for_longer() {
        let mut smoothed = Smoothed::default();
        let ms = Duration::from_millis;
        smoothed.measure(&packets(Load::percent(20)), ms(500));
        smoothed.measure(&packets(Load::percent(100)), ms(1));
        assert!(smoothed.is_full() && smoothed.strain().total() < Load::percent(50));
        smoothed.measure(&packets(Load::percent(100)), ms(1));
        assert_eq!(smoothed.strain().total(), Load::percent(100));
        assert!(smoothed.loads().total() < Load::percent(50), "it may be a burst");
        smoothed.measure(&packets(Load::percent(40)), ms(2));
        assert!(!smoothed.is_full() && smoothed.strain() == smoothed.loads());
        smoothed.measure(&packets(Load::percent(100)), ms(13));
        assert!(smoothed.is_full() && !smoothed.is_filling());
    }

    #[test]
    fn a_steady_load_is_reached_and_kept() {
        let mut smoothed = Smoothed::default();
        let steady = packets(Load::percent(37));
        (0..200).for_each(|_| smoothed.measure(&steady, Duration::from_millis(2)));
        let error = Load::percent(37).minus(smoothed.loads().total());
        assert!(error <= Load::ppm(10), "{error:?}");
    }

    #[test]
    fn a_move_shows_at_once_and_a_wrong_belief_is_corrected() {
        let mut smoothed = Smoothed::default();
        smoothed.gain(Stage::Packet, Load::percent(30));
        assert_eq!(smoothed.loads()[Stage::Packet], Load::percent(30));
        smoothed.lose(Stage::Packet, Load::percent(40));
        assert_eq!(smoothed.loads().total(), Load::ZERO);
        smoothed.gain(Stage::Packet, Load::percent(30));
        let idle = StageLoads::default();
        (0..20).for_each(|_| smoothed.measure(&idle, Duration::from_millis(2)));
        assert!(smoothed.loads().total() < Load::percent(1));
    }
}
