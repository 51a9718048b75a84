//! A switch with two driven guests, and windows of measurement on it.

use super::cases::Case;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testbed::driver::flows::order;
use testbed::driver::frontend::{Device, Listener, Shape, feature};
use testbed::driver::latency::{Pace, Times};
use testbed::driver::lean::{Lean, Totals};
use testbed::driver::sys::Pages;
use testbed::driver::traffic::Traffic;
use testbed::driver::verify::Check;
use testbed::machine::placement_class;
use testbed::peer::GENERATORS_CORE;
use testbed::peer::vhost::{Kind, Running, Work};
use testbed::sys::{cycles, pin, unpin};

/// A window. Short enough that the host seldom moves the cores within.
pub const WINDOW: Duration = Duration::from_millis(250);

/// A window in which frames are timed. Shorter, for the host takes each core away for some milliseconds many times a second.
const TIMED: Duration = Duration::from_millis(50);

/// Frames a second that nothing here carries.
const MORE_THAN_ANY: f64 = 1e9;

/// From here on the driver was absent. Chosen: a turn of 32 frames each way takes some microseconds.
const ABSENT: Duration = Duration::from_micros(100);

/// Traffic before a window, which nothing is counted of.
pub const WARM_UP: Duration = Duration::from_millis(20);

/// How long a switch may take to connect; Open vSwitch looks once a second.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a guest insists on that sends and takes large segments.
pub const LARGE: u64 =
    feature::CSUM | feature::GUEST_CSUM | feature::HOST_TSO4 | feature::GUEST_TSO4;

/// The timestamp counter's rate, measured once.
#[derive(Clone, Copy, Debug)]
pub struct Cycles {
    /// Cycles a second.
    pub per_s: f64,
}

impl Cycles {
    /// Measures for 50 ms.
    pub fn measure() -> Self {
        let (start, from) = (Instant::now(), cycles());
        std::thread::sleep(Duration::from_millis(50));
        let (passed, to) = (start.elapsed(), cycles());
        Self { per_s: (to - from) as f64 / passed.as_secs_f64() }
    }

    /// So long.
    pub fn of(self, time: Duration) -> u64 {
        (time.as_secs_f64() * self.per_s) as u64
    }

    /// Frames a second of so many cycles.
    pub fn rate(self, frames: u64, cycles: u64) -> f64 {
        frames as f64 * self.per_s / cycles.max(1) as f64
    }

    /// In microseconds.
    pub fn us(self, cycles: u64) -> f64 {
        cycles as f64 / self.per_s * 1e6
    }
}

/// What a window showed.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Placement of the cores, the same before and after.
    pub class: &'static str,
    /// Millions of frames a second that came through, both directions together.
    pub mpps: f64,
    /// Busy cycles of the switch per frame.
    pub busy_cycles: f64,
    /// Share of the polls' cycles in which the switch found nothing.
    pub switch_idle: f64,
    /// Share of the time in which the driver had something to do.
    pub driver_busy: f64,
    /// Share of the frames that the switch's caches did not know: near 0 once it is warm.
    pub upcalls: f64,
}

/// What a window at a pace showed.
pub struct Timed {
    /// Placement of the cores, the same before and after.
    pub class: &'static str,
    /// Frames; all that will come have come.
    pub totals: Totals,
    /// How long they took.
    pub times: Times,
}

impl Timed {
    /// Share of the frames that were due and never came.
    pub fn lost(&self) -> f64 {
        let due = self.totals.sent + self.totals.missed;
        1.0 - self.totals.received as f64 / due.max(1) as f64
    }
}

/// What is measured in: the switch, its guests, and the sockets between.
pub struct Rig<S = Running> {
    /// The guests; gone first, so that the switch sees them leave.
    lean: Lean,
    /// The switch.
    pub switch: S,
    cycles: Cycles,
    _listeners: [Listener; 2],
    _directory: tempfile::TempDir,
}

impl<S> Rig<S> {
    /// Starts what `switch` makes of the guests' sockets, and two guests that send a case's frames.
    pub fn around(
        case: &Case,
        pages: Pages,
        cycles: Cycles,
        switch: impl FnOnce(&[PathBuf; 2]) -> Result<S>,
    ) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let sockets = [1, 2].map(|number| directory.path().join(format!("vm{number}.sock")));
        let listeners = listen(&sockets)?;
        let switch = switch(&sockets)?;
        let plain = Shape::default();
        let large = case.segment.map_or(0, |_| LARGE);
        let shape = Shape {
            ring: case.layout,
            frame: case.frame,
            buffer: case.frame.max(1536),
            pages,
            features: plain.features | large,
            slots: case.slots,
        };
        let connect = |listener: &Listener| Device::connect(listener.accept(PATIENCE)?, &shape);
        let devices = [connect(&listeners[0])?, connect(&listeners[1])?];
        let lean = Lean::new(devices, traffic(case));
        let mut rig = Self { lean, switch, cycles, _listeners: listeners, _directory: directory };
        rig.wait_until_joined()?;
        Ok(rig)
    }

    /// Floods until frames come through, and then until the rate is steady: caches fill, stations are learned. Open vSwitch takes
    /// seconds for that when there are many flows, for it tells its exact-match cache of one packet in a hundred.
    fn wait_until_joined(&mut self) -> Result<()> {
        const STEP: Duration = Duration::from_millis(500);
        const LONGEST: Duration = Duration::from_secs(12);
        const STEADY: f64 = 0.03;
        let deadline = Instant::now() + PATIENCE;
        while self.flood(WARM_UP).received == 0 {
            ensure!(Instant::now() < deadline, "no frame comes through");
        }
        let deadline = Instant::now() + LONGEST;
        let mut steady = 0;
        let mut before = self.flood(STEP).received as f64;
        // Twice in a row: one step may look like the one before by chance.
        while steady < 2 && Instant::now() < deadline {
            let now = self.flood(STEP).received as f64;
            steady = if (now - before).abs() < STEADY * now { steady + 1 } else { 0 };
            before = now;
        }
        Ok(())
    }

    /// Sends as fast as the switch takes it, for so long.
    pub fn flood(&mut self, time: Duration) -> Totals {
        let time = self.cycles.of(time);
        on_the_generators_core(|| self.lean.flood(time))
    }

    /// Checks every frame for so long at a rate in frames a second.
    pub fn verify(&mut self, case: &Case, rate: f64, time: Duration) -> (Totals, Check) {
        let pace = Pace::new(rate, self.cycles.per_s);
        let check = Check::new(traffic(case), case.rules.rewrite());
        let time = self.cycles.of(time);
        on_the_generators_core(|| self.lean.verify(time, pace, check))
    }
}

impl Rig {
    /// Starts a switch with a case's rules and two guests that send a case's frames.
    pub fn start(kind: Kind, case: &Case, pages: Pages, cycles: Cycles) -> Result<Self> {
        let switch = |sockets: &[PathBuf; 2]| {
            let switch = Running::start(kind, sockets, case.longest_plain())?;
            switch.add_rules(&case.rules.text())?;
            Ok(switch)
        };
        Self::around(case, pages, cycles, switch).with_context(|| kind.name())
    }

    /// One window; none if the host moved the cores in it.
    pub fn window(&mut self) -> Result<Option<Window>> {
        self.flood(WARM_UP);
        let class = placement_class();
        let before = self.switch.work()?;
        let totals = self.flood(WINDOW);
        let work = self.switch.work()?.since(before);
        if placement_class() != class {
            return Ok(None);
        }
        Ok(Some(self.describe(class, totals, work)))
    }

    fn describe(&self, class: &'static str, totals: Totals, work: Work) -> Window {
        Window {
            class,
            mpps: self.cycles.rate(totals.received, totals.cycles) / 1e6,
            busy_cycles: work.cycles_per_frame(),
            switch_idle: 1.0 - work.busy as f64 / totals.cycles.max(1) as f64,
            driver_busy: totals.busy(),
            upcalls: work.upcalls as f64 / work.frames.max(1) as f64,
        }
    }

    /// Frames a second that come through, both directions together, when they are sent as fast as the switch takes them by a driver that
    /// times each, which is more work for it than a flood; none if the host moved the cores.
    pub fn carries(&mut self) -> Option<(&'static str, f64)> {
        let class = placement_class();
        let pace = Pace::new(MORE_THAN_ANY, self.cycles.per_s);
        let (warm_up, time) = (self.cycles.of(WARM_UP), self.cycles.of(WINDOW));
        let (totals, _) = on_the_generators_core(|| self.lean.time(warm_up, time, pace));
        let rate = self.cycles.rate(totals.received, totals.cycles);
        (placement_class() == class).then_some((class, rate))
    }

    /// A window at a rate in frames a second, with the times that frames took; none if the host moved the cores in it, or kept the driver
    /// from its core, which then times its own absence.
    pub fn timed(&mut self, rate: f64) -> Option<Timed> {
        let class = placement_class();
        let pace = Pace::new(rate, self.cycles.per_s);
        let (warm_up, time) = (self.cycles.of(WARM_UP), self.cycles.of(TIMED));
        let (totals, times) = on_the_generators_core(|| self.lean.time(warm_up, time, pace));
        (placement_class() == class && totals.longest_turn < self.cycles.of(ABSENT))
            .then_some(Timed { class, totals, times })
    }
}

/// A socket for each guest.
pub fn listen<const N: usize>(sockets: &[PathBuf; N]) -> Result<[Listener; N]> {
    let listeners = sockets.iter().map(|path| Listener::bind(path)).collect::<Result<Vec<_>>>()?;
    listeners.try_into().map_err(|_| anyhow::anyhow!("one listener for each socket"))
}

fn traffic(case: &Case) -> Traffic {
    Traffic {
        frame: case.frame,
        touch: case.touch,
        segment: case.segment,
        pattern: case.rules.pattern(),
        order: order(case.flows),
    }
}

/// Only while traffic runs: processes that are started in between may run anywhere.
pub fn on_the_generators_core<T>(work: impl FnOnce() -> T) -> T {
    pin(GENERATORS_CORE);
    let result = work();
    unpin();
    result
}
