//! `suiro bench vhost`: guests on vhost-user ports, beside Open vSwitch with DPDK.
//!
//! Both switches are started once for a case, with the same rules, each with guests of its own that this process plays on the
//! generators' core ([`testbed::driver`]); then they take turns, window by window (A B A B …), the one that is not measured stopped.
//! A window counts only if the cores were in the same placement before and after, and only windows of one placement are compared:
//! each makes rows of its own. Beside frames a second stand the switch's own busy cycles per frame, because a switch may be faster
//! than the driver, and idle shares, to show who was the limit.

pub(super) mod cases;
mod ceiling;
mod compare;
mod idle;
mod kill;
mod latency;
mod qemu;
pub(super) mod rig;
mod segments;
mod testpmd;

pub use kill::player;

use super::Common;
use crate::report::Report;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use testbed::driver::sys::Pages;
use testbed::peer::vhost::Kind;
use testpmd::{circle, flowgen};

/// Options of `suiro bench vhost`.
#[derive(Args, Clone)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Memory of the guests that the benchmark plays itself on huge pages, which must have been reserved (vm.nr_hugepages); testpmd's have their own.
    #[arg(long)]
    hugepages: bool,
    /// Measure one switch only.
    #[arg(long, value_enum)]
    switch: Option<One>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum One {
    Suiro,
    OvsDpdk,
}

/// What all parts of a run share.
struct Plan {
    rounds: u32,
    only: String,
    pages: Pages,
    cycles: rig::Cycles,
    /// Ours first.
    kinds: Vec<Kind>,
}

impl Plan {
    fn new(options: &Options) -> Self {
        let kinds = match options.switch {
            None => vec![Kind::Suiro, Kind::OvsDpdk],
            Some(One::Suiro) => vec![Kind::Suiro],
            Some(One::OvsDpdk) => vec![Kind::OvsDpdk],
        };
        Self {
            rounds: options.common.rounds,
            only: options.common.only.clone(),
            pages: if options.hugepages { Pages::Huge } else { Pages::Plain },
            cycles: rig::Cycles::measure(),
            kinds,
        }
    }

    fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    /// What the first cases do not need, and the later ones would miss after ten minutes.
    fn look_for_what_comes_late(&self) -> Result<()> {
        if qemu::is_wanted(self) {
            testbed::guest::installed()?;
        }
        if self.wants(circle::NAME) || flowgen::is_wanted(self) {
            testbed::testpmd::installed()?;
        }
        Ok(())
    }
}

/// Runs the cases, the latencies and the idle node.
pub fn run(options: &Options, report: &mut Report) -> Result<()> {
    let plan = Plan::new(options);
    plan.look_for_what_comes_late()?;
    for case in cases::cases().iter().filter(|case| plan.wants(case.name)) {
        report.add(compare::run(&plan, case).with_context(|| case.name)?)?;
    }
    report.add(compare::scaling(report.rows()))?;
    if plan.wants(ceiling::NAME) {
        report.add(ceiling::run(&plan, report.rows()).context(ceiling::NAME)?)?;
    }
    report.add(flowgen::run(&plan)?)?;
    if plan.wants(segments::NAME) {
        report.add(segments::run(&plan).context(segments::NAME)?)?;
    }
    if plan.wants(circle::NAME) {
        report.add(circle::run(&plan).context(circle::NAME)?)?;
    }
    report.add(qemu::run(&plan)?)?;
    if plan.wants(latency::NAME) {
        report.add(latency::run(&plan).context(latency::NAME)?)?;
    }
    if plan.wants(kill::NAME) {
        report.add(kill::run(&plan).context(kill::NAME)?)?;
    }
    if plan.wants(idle::NAME) {
        report.add(idle::run(&plan).context(idle::NAME)?)?;
    }
    Ok(())
}
