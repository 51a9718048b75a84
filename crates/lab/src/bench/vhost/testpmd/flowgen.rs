//! Its `flowgen` mode: each port sends 64-byte frames of 1024 flows and drops what it receives.
//!
//! It is the limit for a fast switch, so the promise is about the switch's busy cycles.

use super::Driven;
use crate::bench::vhost::Plan;
use crate::bench::vhost::cases::{Of, Promise, Rules};
use crate::bench::vhost::compare::{Contends, Windows, alternate, rows};
use crate::peer::GENERATORS_CORE;
use crate::peer::vhost::{Kind, Running};
use crate::report::Row;
use crate::testpmd::{Testpmd, TestpmdSpec, VirtioUser};
use anyhow::Result;

/// As `--only` may name it.
pub const NAME: &str = "64 B port forward, testpmd flowgen";

/// Half of the peer's cycles.
const PROMISE: Promise = Promise { of: Of::Cycles, near: 2.0, far: 2.0 };

struct Contender(Driven);

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
        Ok(Self(Driven { kind, testpmd, switch, windows, clock, _directory: directory }))
    }
}

impl Contends for Contender {
    fn kind(&self) -> Kind {
        self.0.kind
    }

    fn windows(&self) -> &Windows {
        &self.0.windows
    }

    fn turn(&mut self, round: u32) -> Result<()> {
        self.0.turn(NAME, round)?;
        Ok(())
    }
}
