//! Its `flowgen` mode: each port sends 64-byte frames of 1024 flows and drops what it receives.
//!
//! It is the limit for a fast switch, so the promise is about the switch's busy cycles. It is given for memory on huge pages, as DPDK's guests
//! have it; on ordinary pages, where the promise is not given, DPDK puts each buffer at the beginning of a page of its own, so that all
//! frames want the same few lines of each cache.

use super::Driven;
use crate::bench::vhost::Plan;
use crate::bench::vhost::cases::{Of, Promise, Rules};
use crate::bench::vhost::compare::{Contends, Windows, alternate, rows};
use crate::report::Row;
use anyhow::{Context, Result};
use testbed::driver::sys::Pages;
use testbed::peer::GENERATORS_CORE;
use testbed::peer::vhost::{Kind, Running};
use testbed::testpmd::{Testpmd, TestpmdSpec, VirtioUser};

/// As `--only` may name them.
const CASES: [Case; 2] = [
    Case { name: "64 B port forward, testpmd flowgen", pages: Pages::Huge, promise: Some(PROMISE) },
    Case {
        name: "64 B port forward, testpmd flowgen, 4 KiB pages",
        pages: Pages::Plain,
        promise: None,
    },
];

/// Half of the peer's cycles.
const PROMISE: Promise = Promise { of: Of::Cycles, near: 2.0, far: 2.0 };

struct Case {
    name: &'static str,
    pages: Pages,
    promise: Option<Promise>,
}

struct Contender {
    name: &'static str,
    driven: Driven,
}

/// Whether any of its cases is.
pub fn is_wanted(plan: &Plan) -> bool {
    CASES.iter().any(|case| plan.wants(case.name))
}

pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut results = Vec::new();
    for case in CASES.iter().filter(|case| plan.wants(case.name)) {
        results.extend(compare(plan, case).context(case.name)?);
    }
    Ok(results)
}

fn compare(plan: &Plan, case: &Case) -> Result<Vec<Row>> {
    let mut contenders = Vec::new();
    for &kind in &plan.kinds {
        contenders.push(Contender::start(kind, plan, case)?);
    }
    alternate(plan.rounds, &mut contenders)?;
    Ok(rows(case.name, case.promise, &contenders))
}

impl Contender {
    fn start(kind: Kind, plan: &Plan, case: &Case) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let sockets = [1, 2].map(|number| directory.path().join(format!("vm{number}.sock")));
        let switch = Running::start(kind, &sockets, 64)?;
        switch.add_rules(&Rules::Ports.text())?;
        // It listens, and comes up when the switch has found both of its sockets.
        let spec = TestpmdSpec::new("bench", GENERATORS_CORE)
            .option("--forward-mode=flowgen")
            .on(case.pages);
        let devices = sockets.each_ref().map(|socket| VirtioUser::new(socket));
        let testpmd = Testpmd::start(&devices.iter().fold(spec, TestpmdSpec::driver))?;
        switch.freeze()?;
        let (windows, clock) = (Windows::default(), plan.cycles.per_s);
        let driven = Driven { kind, testpmd, switch, windows, clock, _directory: directory };
        Ok(Self { name: case.name, driven })
    }
}

impl Contends for Contender {
    fn kind(&self) -> Kind {
        self.driven.kind
    }

    fn windows(&self) -> &Windows {
        &self.driven.windows
    }

    fn turn(&mut self, round: u32) -> Result<()> {
        self.driven.turn(self.name, round)?;
        Ok(())
    }
}
