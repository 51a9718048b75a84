//! DPDK's testpmd as the guests: slower than ours, but written by nobody here.
//!
//! One testpmd per switch plays both guests on the generators' core in its `flowgen` mode: each port sends 64-byte frames of 1024
//! flows and drops what it receives. It is the limit for a fast switch, so the promise is about the switch's busy cycles.

use super::Plan;
use super::cases::{Of, Promise, Rules};
use super::compare::{Contends, Windows, alternate, rows};
use super::rig::Window;
use crate::machine::placement_class;
use crate::peer::GENERATORS_CORE;
use crate::peer::vhost::{Kind, Running};
use crate::report::Row;
use crate::testpmd::{Testpmd, TestpmdSpec, VirtioUser};
use anyhow::Result;
use std::time::{Duration, Instant};

/// As `--only` may name it.
pub const NAME: &str = "64 B port forward, testpmd flowgen";

/// Half of the peer's cycles.
const PROMISE: Promise = Promise { of: Of::Cycles, near: 2.0, far: 2.0 };

const WARM_UP: Duration = Duration::from_millis(300);
const WINDOW: Duration = Duration::from_millis(500);

struct Contender {
    kind: Kind,
    testpmd: Testpmd,
    switch: Running,
    windows: Windows,
    /// Cycles a second.
    clock: f64,
    _directory: tempfile::TempDir,
}

pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut contenders = Vec::new();
    for &kind in &plan.kinds {
        contenders.push(Contender::start(kind, plan.cycles.per_s)?);
    }
    alternate(plan.rounds, &mut contenders)?;
    Ok(rows(NAME, Some(PROMISE), &contenders))
}

impl Contender {
    fn start(kind: Kind, clock: f64) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let sockets = [1, 2].map(|number| directory.path().join(format!("vm{number}.sock")));
        let switch = Running::start(kind, &sockets, 64)?;
        switch.add_rules(&Rules::Ports.text())?;
        // It listens, and comes up when the switch has found both of its sockets.
        let spec = TestpmdSpec::new("bench", GENERATORS_CORE).option("--forward-mode=flowgen");
        let devices = sockets.each_ref().map(|socket| VirtioUser::new(socket));
        let testpmd = Testpmd::start(&devices.iter().fold(spec, TestpmdSpec::driver))?;
        switch.freeze()?;
        let windows = Windows::default();
        Ok(Self { kind, testpmd, switch, windows, clock, _directory: directory })
    }

    fn received(&mut self) -> Result<u64> {
        Ok(self.testpmd.stats()?.iter().map(|port| port.rx_packets).sum())
    }

    /// None if the host moved the cores meanwhile.
    fn window(&mut self) -> Result<Option<Window>> {
        let class = placement_class();
        let (from, frames, before) = (Instant::now(), self.received()?, self.switch.work()?);
        std::thread::sleep(WINDOW);
        let (frames, passed) = (self.received()? - frames, from.elapsed().as_secs_f64());
        let work = self.switch.work()?.since(before);
        if placement_class() != class {
            return Ok(None);
        }
        Ok(Some(Window {
            class,
            mpps: frames as f64 / passed / 1e6,
            busy_cycles: work.cycles_per_frame(),
            switch_idle: 1.0 - work.busy as f64 / (passed * self.clock),
            driver_busy: 1.0, // it polls all the time
            upcalls: work.upcalls as f64 / work.frames.max(1) as f64,
        }))
    }
}

impl Contends for Contender {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn turn(&mut self, round: u32) -> Result<()> {
        self.switch.thaw()?;
        self.testpmd.command("start")?;
        std::thread::sleep(WARM_UP);
        if let Some(window) = self.window()? {
            self.windows.add(round, NAME, self.kind, window);
        }
        self.testpmd.command("stop")?;
        self.switch.freeze()
    }
}
