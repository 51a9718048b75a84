//! Cases of a benchmark that sets contenders side by side.
//!
//! Each case has a measurement and its contenders. A round starts every contender afresh, in turn, so that drift of the machine
//! meets all alike (A B C A B C …). The first contender is suiro's; the ratio is taken to each of the others.

use super::Common;
use crate::report::{Peer, Report, Row, Spread};
use anyhow::Result;
use std::collections::BTreeMap;
use testbed::machine::placement_class;
use testbed::peer::{Attach, Contend, Contender, Switch};

/// Whether more or less of a figure is better.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
}

/// One row of rows.
pub struct Case<C: Contend = Contender> {
    pub name: &'static str,
    pub unit: &'static str,
    pub better: Better,
    pub ours: C,
    /// The others, each with the ratio that was promised.
    pub peers: Vec<(C, Option<f64>)>,
    pub measure: fn(&C::Running) -> Result<f64>,
}

/// suiro, attached like this.
pub const fn suiro(attach: Attach) -> Contender {
    Contender { switch: Switch::Suiro, attach }
}

/// Open vSwitch, with large segments or without.
pub const fn ovs(attach: Attach, tso: bool) -> Contender {
    Contender { switch: Switch::Ovs { tso }, attach }
}

/// The Linux bridge as it comes.
pub const BRIDGE: Contender =
    Contender { switch: Switch::Bridge { offloads: true }, attach: Attach::Kernel };

/// Runs the cases that `common` asks for.
pub fn run<C: Contend>(cases: Vec<Case<C>>, common: &Common, report: &mut Report) -> Result<()> {
    for case in cases.into_iter().filter(|case| case.name.contains(&common.only)) {
        report.add(measure(&case, common.rounds)?)?;
    }
    Ok(())
}

/// All rounds of one case; one row per peer.
fn measure<C: Contend>(case: &Case<C>, rounds: u32) -> Result<Vec<Row>> {
    let contenders: Vec<C> = std::iter::once(case.ours)
        .chain(case.peers.iter().map(|&(contender, _)| contender))
        .collect();
    let mut figures = vec![Vec::new(); contenders.len()];
    let mut classes: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 1..=rounds {
        for (contender, figures) in contenders.iter().zip(&mut figures) {
            *classes.entry(placement_class()).or_default() += 1;
            let running = contender.start()?;
            let figure = (case.measure)(&running)?;
            eprintln!(
                "round {round}/{rounds}  {}: {} {figure:.3} {}",
                case.name,
                contender.name(),
                case.unit
            );
            figures.push(figure);
        }
    }
    let mut spreads = figures.into_iter().map(Spread::of);
    let ours = spreads.next().expect("we are the first contender");
    let cores = classes
        .iter()
        .map(|(class, count)| format!("{class}{count}"))
        .collect::<Vec<_>>()
        .join("+");
    Ok(case
        .peers
        .iter()
        .zip(spreads)
        .map(|(&peer, spread)| row(case, ours, peer, spread, &cores))
        .collect())
}

fn row<C: Contend>(
    case: &Case<C>,
    ours: Spread,
    (peer, goal): (C, Option<f64>),
    spread: Spread,
    cores: &str,
) -> Row {
    Row {
        case: case.name.into(),
        unit: case.unit,
        cores: cores.into(),
        ours,
        peer: Some(Peer { name: peer.name(), spread }),
        ratio: Some(ratio(case.better, ours, spread)),
        goal,
    }
}

/// How many times better ours is.
pub fn ratio(better: Better, ours: Spread, peer: Spread) -> f64 {
    match better {
        Better::More => ours.median / peer.median,
        Better::Less => peer.median / ours.median,
    }
}
