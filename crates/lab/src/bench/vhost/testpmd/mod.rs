//! DPDK's testpmd as the guests: slower than ours, but written by nobody here.
//!
//! One testpmd per switch plays both guests on the generators' core.

pub mod circle;
pub mod flowgen;

use super::compare::Windows;
use super::rig::Window;
use anyhow::Result;
use std::time::{Duration, Instant};
use testbed::machine::placement_class;
use testbed::peer::vhost::{Kind, Running};
use testbed::testpmd::{PortStats, Testpmd};

const WARM_UP: Duration = Duration::from_millis(300);
const WINDOW: Duration = Duration::from_millis(500);

/// A switch and the testpmd that drives two of its ports.
struct Driven {
    kind: Kind,
    testpmd: Testpmd,
    switch: Running,
    windows: Windows,
    /// Cycles a second.
    clock: f64,
    _directory: tempfile::TempDir,
}

/// What testpmd's ports counted, together.
#[derive(Clone, Copy, Default)]
struct Received {
    frames: u64,
    bytes: u64,
}

impl Received {
    fn plus(self, port: &PortStats) -> Self {
        Self { frames: self.frames + port.rx_packets, bytes: self.bytes + port.rx_bytes }
    }

    fn since(self, before: Self) -> Self {
        Self { frames: self.frames - before.frames, bytes: self.bytes - before.bytes }
    }
}

impl Driven {
    fn received(&mut self) -> Result<Received> {
        Ok(self.testpmd.stats()?.iter().fold(Received::default(), Received::plus))
    }

    /// One window, with the other switches stopped; it counts unless the host moved the cores meanwhile. What was received in it.
    fn turn(&mut self, name: &str, round: u32) -> Result<Received> {
        self.switch.thaw()?;
        self.testpmd.command("start")?;
        std::thread::sleep(WARM_UP);
        let class = placement_class();
        let (from, before, work) = (Instant::now(), self.received()?, self.switch.work()?);
        std::thread::sleep(WINDOW);
        let (received, passed) = (self.received()?.since(before), from.elapsed().as_secs_f64());
        let work = self.switch.work()?.since(work);
        if placement_class() == class {
            let window = Window {
                class,
                mpps: received.frames as f64 / passed / 1e6,
                busy_cycles: work.cycles_per_frame(),
                switch_idle: 1.0 - work.busy as f64 / (passed * self.clock),
                driver_busy: 1.0, // it polls all the time
                upcalls: work.upcalls as f64 / work.frames.max(1) as f64,
            };
            self.windows.add(round, name, self.kind, window);
        }
        self.testpmd.command("stop")?;
        self.switch.freeze()?;
        Ok(received)
    }
}
