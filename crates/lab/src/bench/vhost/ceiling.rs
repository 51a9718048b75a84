//! What the driver could do at most: its two guests, and between them the least that a switch can be.
//!
//! Two rows for each layout of rings. With indices only the driver's own work is left; with the frames moved the lines travel between
//! the cores as well, which no switch can avoid. Their ratio is to the fastest switch of the same run.

use super::Plan;
use super::rig::{WARM_UP, WINDOW, on_the_generators_core};
use crate::report::{Peer, Row, Spread};
use anyhow::Result;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use testbed::driver::echo::{Echo, Effort};
use testbed::driver::flows::{Pattern, order};
use testbed::driver::frontend::{Device, Shape};
use testbed::driver::lean::Lean;
use testbed::driver::ring::Kind as Layout;
use testbed::driver::traffic::{Touch, Traffic};
use testbed::machine::placement_class;
use testbed::peer::SWITCH_CORE;
use testbed::sys::pin;

/// As `--only` may name it.
pub const NAME: &str = "64 B driver ceiling";

/// Twice the switch: then the driver is idle half of the time.
const GOAL: f64 = 2.0;

/// Windows for each round asked for.
const WINDOWS: u32 = 4;

/// What is measured: layout, effort, name, and the switches' case that it is the ceiling of.
const CASES: [(Layout, Effort, &str, &str); 4] = [
    (Layout::Split, Effort::Indices, "split", "64 B port forward"),
    (Layout::Split, Effort::Frames, "split, frames moved", "64 B port forward"),
    (Layout::Packed, Effort::Indices, "packed", "64 B port forward, packed ring"),
    (Layout::Packed, Effort::Frames, "packed, frames moved", "64 B port forward, packed ring"),
];

/// Rows of the ceiling, beside the fastest switch in `results`, if one was measured.
pub fn run(plan: &Plan, results: &[Row]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (layout, effort, name, case) in CASES {
        for (class, figures) in measure(plan, layout, effort)? {
            let ours = Spread::of(figures);
            let peer = fastest(results, case, class);
            rows.push(Row {
                case: format!("{NAME}, {name}"),
                unit: "Mpps",
                cores: class.into(),
                ours,
                ratio: peer.as_ref().map(|peer| ours.median / peer.spread.median),
                goal: peer.is_some().then_some(GOAL),
                peer,
            });
        }
    }
    Ok(rows)
}

/// The faster switch of a case in a class.
fn fastest(results: &[Row], case: &str, class: &str) -> Option<Peer> {
    let row = results.iter().find(|row| row.case == case && row.cores == class)?;
    let ours = Peer { name: "suiro".into(), spread: row.ours };
    let both = std::iter::once(ours).chain(row.peer.clone());
    both.max_by(|a, b| a.spread.median.total_cmp(&b.spread.median))
}

/// Mpps by placement class.
fn measure(
    plan: &Plan,
    layout: Layout,
    effort: Effort,
) -> Result<BTreeMap<&'static str, Vec<f64>>> {
    let shape =
        Shape { ring: layout, frame: 64, buffer: 1536, pages: plan.pages, ..Shape::default() };
    let guests = [Device::alone(&shape)?, Device::alone(&shape)?];
    let echo = Echo::between(&guests, layout, effort);
    let traffic = Traffic {
        frame: 64,
        touch: Touch::Head,
        segment: None,
        pattern: Pattern::Addresses,
        order: order(1000),
    };
    let mut lean = Lean::new(guests, traffic);
    let stop = AtomicBool::new(false);
    let figures = std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(SWITCH_CORE);
            echo.run(&stop);
        });
        let mut figures: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for _ in 0..plan.rounds * WINDOWS {
            if let Some((class, mpps)) = window(plan, &mut lean) {
                eprintln!("{NAME}, {layout:?}, {effort:?}: {mpps:.1} Mpps, {class}");
                figures.entry(class).or_default().push(mpps);
            }
        }
        stop.store(true, Ordering::Relaxed);
        figures
    });
    Ok(figures)
}

fn window(plan: &Plan, lean: &mut Lean) -> Option<(&'static str, f64)> {
    let mut flood = |time| on_the_generators_core(|| lean.flood(plan.cycles.of(time)));
    flood(WARM_UP);
    let class = placement_class();
    let totals = flood(WINDOW);
    let mpps = plan.cycles.rate(totals.received, totals.cycles) / 1e6;
    (placement_class() == class).then_some((class, mpps))
}
