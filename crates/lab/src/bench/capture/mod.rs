//! `suiro bench capture`: what a capture costs the traffic that it looks at, beside `ovs-tcpdump` and `dpdk-dumpcap`.
//!
//! Two guests on vhost-user ports send 64-byte frames of 100 flows to each other. Each switch runs on the switch's core; whatever writes the file
//! runs on the guests' core, beside them, for there is no third. The same libpcap filter is given to all, and all write a file.
//!
//! One capture is measured in two ways. At a pace of a million frames a second every frame is checked, so that a lost one is the switch's doing; the
//! capture's own records are counted in its file. Then the guests send as fast as the switch takes it.

mod contender;

use super::Common;
use super::vhost::cases::{Case, Rules};
use super::vhost::rig::{Cycles, Rig};
use crate::report::{Peer, Report, Row, Spread};
use anyhow::{Context, Result, ensure};
use contender::{Capture, Kind, Switch};
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::driver::sys::Pages;
use testbed::machine::placement_class;

/// Flows that each guest sends: the filter of one in a hundred takes one of them.
const FLOWS: u32 = 100;
/// Frames a second, of both guests together.
const PACE: f64 = 1e6;
const PACED: Duration = Duration::from_secs(2);
const FLOOD: Duration = Duration::from_millis(500);

/// What is captured of what the first guest's port sees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    /// Nobody looks.
    None,
    /// A filter that no frame passes.
    Nothing,
    /// A filter that one flow of a hundred passes.
    Hundredth,
    /// Every frame.
    All,
}

impl Mode {
    const EACH: [Self; 4] = [Self::None, Self::Nothing, Self::Hundredth, Self::All];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "no capture",
            Self::Nothing => "a filter that takes none",
            Self::Hundredth => "1 % captured",
            Self::All => "all captured",
        }
    }

    /// In libpcap's syntax. All frames go to port 9; the seventh flow of each guest has this source.
    const fn filter(self) -> &'static str {
        match self {
            Self::None | Self::All => "",
            Self::Nothing => "udp port 19",
            Self::Hundredth => "src host 10.0.0.7 or src host 20.0.0.7",
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Figure {
    Carried,
    Lost,
    Records,
    Cycles,
    Flood,
}

impl Figure {
    const fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Carried => ("of 1 Mpps, carried", "Mpps"),
            Self::Lost => ("of 1 Mpps, lost", "frames"),
            Self::Records => ("at 1 Mpps, records of the frames", "%"),
            Self::Cycles => ("at 1 Mpps, the switch's busy cycles a frame", "cycles"),
            Self::Flood => ("as much as it takes", "Mpps"),
        }
    }
}

type Figures = BTreeMap<(Mode, Figure), Vec<f64>>;

/// Runs it.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    testbed::testpmd::installed()?;
    let modes: Vec<Mode> =
        Mode::EACH.into_iter().filter(|mode| mode.name().contains(&common.only)).collect();
    ensure!(!modes.is_empty(), "--only: no case has {:?} in its name", common.only);
    let case = Case::new("captures", 64, Rules::Network, FLOWS);
    let mut of_all: Vec<(Kind, Figures)> = Kind::EACH.map(|kind| (kind, Figures::new())).into();
    let mut classes: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 1..=common.rounds {
        for (kind, figures) in &mut of_all {
            let at = || format!("round {round}: {}", kind.name());
            let mut bench = Bench::start(*kind, &case).with_context(at)?;
            for &mode in &modes {
                *classes.entry(placement_class()).or_default() += 1;
                let at = || format!("round {round}: {}, {}", kind.name(), mode.name());
                for (figure, value) in bench.measure(mode).with_context(at)? {
                    let (name, unit) = figure.name();
                    eprintln!("{}, {name}: {value:.2} {unit}", at());
                    figures.entry((mode, figure)).or_default().push(value);
                }
            }
        }
    }
    let classes: Vec<String> =
        classes.iter().map(|(class, count)| format!("{class}{count}")).collect();
    report.add(rows(of_all, &classes.join("+")))
}

/// A switch with its guests.
struct Bench<'c> {
    rig: Rig<Switch>,
    case: &'c Case,
    cycles: Cycles,
}

impl<'c> Bench<'c> {
    fn start(kind: Kind, case: &'c Case) -> Result<Self> {
        let cycles = Cycles::measure();
        let start = |sockets: &_| Switch::start(kind, sockets, &case.rules.text());
        let rig = Rig::around(case, Pages::Plain, cycles, start)?;
        Ok(Self { rig, case, cycles })
    }

    fn measure(&mut self, mode: Mode) -> Result<Vec<(Figure, f64)>> {
        let mut figures = self.paced(mode)?;
        let capture = self.capture(mode)?;
        let totals = self.rig.flood(FLOOD);
        capture.map(Capture::end).transpose()?;
        figures.push((Figure::Flood, self.cycles.rate(totals.received, totals.cycles) / 1e6));
        Ok(figures)
    }

    fn paced(&mut self, mode: Mode) -> Result<Vec<(Figure, f64)>> {
        let capture = self.capture(mode)?;
        let before = self.rig.switch.work()?;
        let (totals, check) = self.rig.verify(self.case, PACE, PACED);
        let after = self.rig.switch.work()?;
        ensure!(check.damaged == 0, "frames came with other bytes: {:?}", check.example);
        let carried = self.cycles.rate(totals.received, totals.cycles) / 1e6;
        let mut figures = vec![(Figure::Carried, carried), (Figure::Lost, check.lost as f64)];
        if let Some((before, after)) = before.zip(after) {
            figures.push((Figure::Cycles, after.since(before).cycles_per_frame()));
        }
        if let Some(capture) = capture {
            // Each frame passes the first guest's port once: it comes in there, or leaves.
            let written = capture.end()?;
            figures.push((Figure::Records, 100.0 * written as f64 / totals.sent.max(1) as f64));
        }
        Ok(figures)
    }

    fn capture(&self, mode: Mode) -> Result<Option<Capture>> {
        let wanted = mode != Mode::None;
        wanted.then(|| self.rig.switch.capture(mode.filter())).transpose()
    }
}

/// For each mode and figure a row beside each peer that has it, or one alone.
fn rows(of_all: Vec<(Kind, Figures)>, classes: &str) -> Vec<Row> {
    let mut of_all = of_all.into_iter();
    let Some((_, ours)) = of_all.next() else { return Vec::new() };
    let peers: Vec<(Kind, Figures)> = of_all.collect();
    let beside = |key, figures: Vec<f64>| {
        let with = peers.iter().filter_map(move |(kind, of_peer)| {
            let spread = Spread::of(of_peer.get(&key)?.clone());
            Some(Peer { name: kind.name(), spread })
        });
        let with: Vec<Option<Peer>> = with.map(Some).collect();
        let with = if with.is_empty() { vec![None] } else { with };
        with.into_iter().map(move |peer| row(key, Spread::of(figures.clone()), peer, classes))
    };
    ours.into_iter().flat_map(|(key, figures)| beside(key, figures)).collect()
}

fn row((mode, figure): (Mode, Figure), ours: Spread, peer: Option<Peer>, classes: &str) -> Row {
    let (name, unit) = figure.name();
    let over = |peer: &Peer| match figure {
        Figure::Cycles => Some(peer.spread.median / ours.median),
        Figure::Carried | Figure::Flood => Some(ours.median / peer.spread.median),
        Figure::Lost | Figure::Records => None,
    };
    Row {
        case: format!("{}: {name}", mode.name()),
        unit,
        cores: classes.into(),
        ours,
        ratio: peer.as_ref().and_then(over),
        peer,
        goal: None,
    }
}
