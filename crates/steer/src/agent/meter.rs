//! Loads, from the time that cores spent.

use place::steering::CoreTimes;
use place::{CoreId, Load, Smoothed, Stage, StageLoads};
use std::collections::BTreeMap;
use std::time::Duration;

/// The cores' loads, smoothed.
#[derive(Default)]
pub struct Meter {
    /// Whose times these are: two sources count from different zeros.
    source: String,
    last: BTreeMap<CoreId, CoreTimes>,
    last_at_ns: u64,
    loads: BTreeMap<CoreId, Smoothed>,
    spent: BTreeMap<CoreId, CoreTimes>,
}

impl Meter {
    /// Takes the cores' times at a moment. The first call, and the first from another source, only begins to watch.
    pub fn measure(&mut self, now_ns: u64, source: &str, times: &[(CoreId, CoreTimes)]) {
        if self.source != source {
            self.source = source.into();
            self.last.clear();
        }
        let window = now_ns.saturating_sub(self.last_at_ns);
        for &(core, now) in times {
            let Some(before) = self.last.insert(core, now) else { continue };
            let spent = difference(&before, &now);
            add(self.spent.entry(core).or_default(), &spent);
            // What its time adds up to, and not the time between two calls: times are read somewhat after `now_ns`, not always as much. They are
            // kept only while something is steered; of the rest nothing is known, which counts as rest.
            let whole = spent.whole();
            let of = if whole < window / 10 * 9 { window } else { whole };
            if of > 0 {
                let load = self.loads.entry(core).or_default();
                load.measure(&sample(&spent, of), Duration::from_nanos(of));
            }
        }
        self.last_at_ns = now_ns;
    }

    /// A core's load lately.
    pub fn load(&self, core: CoreId) -> StageLoads {
        self.loads.get(&core).copied().unwrap_or_default().loads()
    }

    /// Its load, or, if it has had no idle time for a while, what it does now.
    pub fn strain(&self, core: CoreId) -> StageLoads {
        self.loads.get(&core).copied().unwrap_or_default().strain()
    }

    /// Whether the core had no idle time at the last measurement.
    pub fn is_full(&self, core: CoreId) -> bool {
        self.loads.get(&core).is_some_and(Smoothed::is_full)
    }

    /// Whether any core has lately become full.
    pub fn is_any_filling(&self) -> bool {
        self.loads.values().any(Smoothed::is_filling)
    }

    /// A unit that costs `load` went from a core to another: both show it at once, measurements correct it.
    pub fn shift(&mut self, from: CoreId, to: CoreId, load: Load) {
        self.loads.entry(from).or_default().lose(Stage::Packet, load);
        self.loads.entry(to).or_default().gain(Stage::Packet, load);
    }

    /// What a core's time went into since the meter began to watch.
    pub fn spent(&self, core: CoreId) -> CoreTimes {
        self.spent.get(&core).copied().unwrap_or_default()
    }
}

/// A counter that went back began anew: nothing is known of that window.
fn difference(before: &CoreTimes, now: &CoreTimes) -> CoreTimes {
    CoreTimes {
        stages: std::array::from_fn(|stage| now.stages[stage].saturating_sub(before.stages[stage])),
        other: now.other.saturating_sub(before.other),
        idle: now.idle.saturating_sub(before.idle),
    }
}

fn add(sum: &mut CoreTimes, more: &CoreTimes) {
    sum.stages.iter_mut().zip(more.stages).for_each(|(sum, more)| *sum += more);
    sum.other += more.other;
    sum.idle += more.idle;
}

fn sample(spent: &CoreTimes, window: u64) -> StageLoads {
    let mut loads = StageLoads::default();
    loads.other = Load::of(spent.other, window);
    for (stage, &busy) in Stage::ALL.into_iter().zip(&spent.stages) {
        loads[stage] = Load::of(busy, window);
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const CORE: CoreId = CoreId(3);

    fn times(packet: u64, idle: u64) -> [(CoreId, CoreTimes); 1] {
        [(CORE, CoreTimes { stages: [0, packet, 0, 0], other: 0, idle })]
    }

    #[test]
    fn a_core_that_becomes_busy_shows_it_within_ten_milliseconds() {
        let mut meter = Meter::default();
        (0..=5).for_each(|tick| meter.measure(tick * 2 * MS, "a", &times(tick * 2 * MS, 0)));
        let load = meter.load(CORE)[Stage::Packet];
        assert!(load > Load::percent(75), "{load}");
        (6..=30).for_each(|tick| {
            meter.measure(tick * 2 * MS, "a", &times(10 * MS, (tick - 5) * 2 * MS))
        });
        assert!(meter.load(CORE).total() < Load::percent(1));
        assert_eq!(meter.spent(CORE).stages[1], 10 * MS);
    }

    #[test]
    fn a_steady_load_is_measured_as_it_is() {
        let mut meter = Meter::default();
        (0..200).for_each(|tick| {
            meter.measure(tick * 2 * MS, "a", &times(tick * MS / 2, tick * 3 * MS / 2))
        });
        assert_eq!(meter.load(CORE).total().as_per_mille(), 250);
    }

    #[test]
    fn a_core_whose_time_was_not_kept_for_long_is_not_judged_by_the_moment_since() {
        let mut meter = Meter::default();
        (0..50).for_each(|tick| meter.measure(tick * 2 * MS, "a", &times(tick * MS, tick * MS)));
        meter.measure(900 * MS, "a", &times(50 * MS, 49 * MS));
        let load = meter.load(CORE).total();
        assert!(load < Load::percent(20), "{load}");
    }

    #[test]
    fn times_that_begin_anew_are_no_load() {
        let mut meter = Meter::default();
        meter.measure(0, "a", &times(900 * MS, 0));
        meter.measure(2 * MS, "a", &times(0, 0));
        meter.measure(4 * MS, "b", &times(900 * MS, 0));
        assert_eq!(meter.load(CORE).total(), Load::ZERO);
    }
}
