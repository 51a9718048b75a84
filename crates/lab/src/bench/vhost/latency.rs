//! How long a frame takes through the switch at three loads.
//!
//! Frames are sent evenly whatever becomes of them, and timed from the moment when they were due ([`Pace`](testbed::driver::latency::Pace)).
//! A load is a share of what a switch can carry in the placement class of the moment, measured right before, with frames that are timed as well, lest the driver be the limit
//! at 90 %: the host's pace changes within seconds. Frames that were due while the driver was kept from its core, or shortly after, do not count
//! ([`Times`](testbed::driver::latency::Times)): most that took long are among them, with any switch; p99 with them stands beside.
//! Because that is more frames a second for the faster switch, ours is also measured at the peer's loads, frame for frame. The switches
//! take turns of a second or so, so that what the host does to one it does to the other.

use super::Plan;
use super::cases::cases;
use super::compare::{Counts, goes_on};
use super::rig::{Rig, Timed};
use crate::report::{Peer, Row, Spread};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::iter::repeat_n;
use testbed::driver::latency::Histogram;
use testbed::machine::placement_class;
use testbed::peer::vhost::Kind;

/// As `--only` may name it.
pub const NAME: &str = "64 B latency";

/// Loads in percent of capacity, and the windows of a turn at each. The first is that of a switch that would like to sleep, and has a promise: a window's p99 is there whatever
/// the host did in it, 1 us to some milliseconds, so it takes many windows to tell two switches apart.
const LOADS: [(u32, usize); 3] = [(1, 6), (50, 1), (90, 1)];

/// The figure that has a promise.
const P99: &str = "p99";

const SHARES: [(&str, f64); 3] = [("p50", 0.5), (P99, 0.99), ("p99.9", 0.999)];

/// The figure beside these: of all frames.
const WHOLE: &str = "p99 with the driver's absences";

/// The figure beside the times: frames that were due and never came.
const LOST: &str = "lost";

/// Of p99 at the lowest load: at most 1.3 times the peer's, which polls.
const GOAL: f64 = 0.77;

/// Windows that are tried until the host lets one be.
const TRIES: usize = 4;

/// Turns of each switch in a round. Each window gives a figure: a virtual machine's processors are taken away for milliseconds
/// now and then. What the driver loses so is left out; what the switch loses spoils a window's highest percentiles, but not the median of
/// many windows'.
const TURNS: u32 = 20;

/// Windows at the lowest load that make a figure.
const ENOUGH: usize = 12;

/// There may be so many times the rounds asked for until each switch has as many.
const PATIENCE: u32 = 2;

/// Whose capacity a load is a share of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Capacity {
    Own,
    Peers,
}

/// What a figure is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    class: &'static str,
    capacity: Capacity,
    load: u32,
    figure: &'static str,
}

/// A switch, what it can carry by placement class, as measured last, in frames a second, and its figures.
struct Contender {
    kind: Kind,
    rig: Rig,
    carries: BTreeMap<&'static str, f64>,
    figures: BTreeMap<Key, Vec<f64>>,
}

pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    let case = cases().into_iter().next().context("there are cases")?;
    let mut contenders = Vec::new();
    for &kind in &plan.kinds {
        let rig = Rig::start(kind, &case, plan.pages, plan.cycles)?;
        rig.switch.freeze()?;
        let (carries, figures) = (BTreeMap::new(), BTreeMap::new());
        contenders.push(Contender { kind, rig, carries, figures });
    }
    let mut turn = 0;
    let turns = plan.rounds * TURNS..=PATIENCE * plan.rounds * TURNS;
    while goes_on(turn, turns.clone(), ENOUGH, || counts(&contenders)) {
        let round = turn / TURNS + 1;
        turn += 1;
        contenders.iter_mut().try_for_each(|contender| contender.turn(plan, round))?;
        if let [ours, peer, ..] = &mut contenders[..] {
            ours.at_loads_of(peer, plan, round)?;
        }
    }
    Ok(rows(&contenders))
}

/// How often each class was seen at the lowest load: by each switch at its own, and by ours at the peer's.
fn counts(contenders: &[Contender]) -> Vec<Counts> {
    let own = contenders.iter().map(|contender| contender.counts(Capacity::Own));
    let beside = contenders.split_first().filter(|(_, peers)| !peers.is_empty());
    own.chain(beside.map(|(ours, _)| ours.counts(Capacity::Peers))).collect()
}

impl Contender {
    fn counts(&self, of: Capacity) -> Counts {
        let promised = |key: &Key| (key.capacity, key.load, key.figure) == (of, LOADS[0].0, P99);
        let figures = self.figures.iter().filter(|(key, _)| promised(key));
        figures.map(|(key, figures)| (key.class, figures.len())).collect()
    }

    /// Measures what it carries now, and then its times at shares of that.
    fn turn(&mut self, plan: &Plan, round: u32) -> Result<()> {
        self.rig.switch.thaw()?;
        if let Some((class, rate)) = self.carries_now() {
            self.carries.insert(class, rate);
            self.at_loads_in(class, Capacity::Own, rate, plan, round);
        }
        self.rig.switch.freeze()
    }

    fn carries_now(&mut self) -> Option<(&'static str, f64)> {
        (0..TRIES).find_map(|_| self.rig.carries())
    }

    /// Measures at the peer's loads, if it is known what the peer carries in the class of this moment.
    fn at_loads_of(&mut self, peer: &Self, plan: &Plan, round: u32) -> Result<()> {
        let class = placement_class();
        let Some(&rate) = peer.carries.get(class) else { return Ok(()) };
        self.rig.switch.thaw()?;
        // As in a turn: what fell due while it was stopped is done by then.
        self.carries_now();
        self.at_loads_in(class, Capacity::Peers, rate, plan, round);
        self.rig.switch.freeze()
    }

    fn at_loads_in(
        &mut self,
        class: &'static str,
        capacity: Capacity,
        rate: f64,
        plan: &Plan,
        round: u32,
    ) {
        for load in LOADS.into_iter().flat_map(|(load, windows)| repeat_n(load, windows)) {
            // In another class the switch carries something else, and this would be another load.
            let timed = self.rig.timed(rate * f64::from(load) / 100.0);
            let Some(timed) = timed.filter(|timed| timed.class == class) else { continue };
            let us =
                |times: &Histogram, share| plan.cycles.us(times.percentile(share).unwrap_or(0));
            let settled = timed.times.settled();
            let [p50, p99, p999] = SHARES.map(|(name, share)| (name, us(settled, share)));
            let times = [p50, p99, p999, (WHOLE, us(&timed.times.whole(), 0.99))];
            eprintln!(
                "round {round}  {NAME} at {load} % of {} capacity, {:.1} Mpps: {} {}, {:.3} % lost, {class}",
                if capacity == Capacity::Own { "its own" } else { "the peer's" },
                rate / 1e6,
                self.kind.name(),
                times.map(|(name, us)| format!("{name} {us:.2} us")).join(", "),
                100.0 * timed.lost(),
            );
            self.add(capacity, load, &timed, times);
        }
    }

    fn add(
        &mut self,
        capacity: Capacity,
        load: u32,
        timed: &Timed,
        times: [(&'static str, f64); 4],
    ) {
        let lost = (LOST, 100.0 * timed.lost());
        for (figure, value) in times.into_iter().chain([lost]) {
            let key = Key { class: timed.class, capacity, load, figure };
            self.figures.entry(key).or_default().push(value);
        }
    }
}

fn rows(contenders: &[Contender]) -> Vec<Row> {
    let Some((ours, peers)) = contenders.split_first() else { return Vec::new() };
    let peer_of = |key: &Key| {
        let peer = peers.first()?;
        let figures = peer.figures.get(&Key { capacity: Capacity::Own, ..*key })?;
        Some(Peer { name: peer.kind.name(), spread: Spread::of(figures.clone()) })
    };
    ours.figures.iter().map(|(key, figures)| row(*key, figures, peer_of(key))).collect()
}

fn row(key: Key, figures: &[f64], peer: Option<Peer>) -> Row {
    let Key { class, capacity, load, figure } = key;
    let ours = Spread::of(figures.to_vec());
    let whose = if capacity == Capacity::Own { "capacity" } else { "the peer's capacity" };
    let is_time = figure != LOST;
    let ratio = peer.as_ref().filter(|_| is_time).map(|peer| peer.spread.median / ours.median);
    Row {
        case: format!("{NAME} {figure} at {load} % of {whose}"),
        unit: if is_time { "us" } else { "%" },
        cores: class.into(),
        ours,
        ratio,
        peer,
        goal: ((load, figure) == (LOADS[0].0, P99)).then_some(GOAL),
    }
}
