//! `suiro steer top`: cores by stage, interfaces, and the busiest units.

use super::show::Sums;
use crate::args::TopArgs;
use crate::commands::Context;
use crate::failure::Failure;
use crate::table::{Table, dash, short};
use crate::top::{Watched, watch};
use api::steer::{SteerView, UnitView};
use serde::Serialize;
use std::collections::BTreeMap;

/// Units shown where there is room for all. Chosen: a screen.
const UNITS: usize = 20;

/// Everything at one moment.
struct Look {
    all: SteerView,
    units: Vec<UnitView>,
}

/// What happens per second.
#[derive(Serialize)]
struct Rates {
    seconds: f64,
    cores: Vec<CoreRates>,
    interfaces: Vec<InterfaceRates>,
    units: Vec<UnitRates>,
}

/// A core: shares of its time in percent, by stage.
#[derive(Serialize)]
struct CoreRates {
    core: u16,
    role: String,
    percent: BTreeMap<String, f64>,
    frames_per_s: f64,
    units: usize,
    pinned: Vec<String>,
}

/// An interface.
#[derive(Serialize)]
struct InterfaceRates {
    name: String,
    hook: Option<String>,
    sent_per_s: f64,
    stayed_per_s: f64,
    dropped_per_s: f64,
    moves_per_s: f64,
    fault: Option<String>,
}

/// A unit.
#[derive(Serialize)]
struct UnitRates {
    on: String,
    unit: u32,
    rule: Option<String>,
    core: Option<u16>,
    frames_per_s: f64,
    reason: Option<String>,
}

/// Looks until interrupted, or once.
pub fn run(context: &Context, args: &TopArgs) -> Result<(), Failure> {
    watch::<Steering>(context, args)
}

/// Steering, watched.
struct Steering;

impl Watched for Steering {
    type Look = Look;
    type Rates = Rates;
    const ORDERS: &'static [&'static str] = &["load"];

    fn look(context: &Context) -> Result<Look, Failure> {
        let all = super::look(context)?;
        Ok(Look { all, units: context.client.get("/v1/steer/units")? })
    }

    fn between(before: &Look, now: &Look) -> Rates {
        between(before, now)
    }

    fn page(rates: &Rates, _: &str) -> String {
        page(rates, UNITS)
    }
}

fn between(before: &Look, now: &Look) -> Rates {
    let seconds = now.all.at_ns.saturating_sub(before.all.at_ns).max(1) as f64 / 1e9;
    // A counter that began anew has no rate yet.
    let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
    let cores = now.all.cores.iter().map(|core| {
        let was = before.all.cores.iter().find(|was| was.core == core.core).unwrap_or(core);
        let percent = core.spent_ns.iter().map(|(stage, &ns)| {
            let spent = rate(was.spent_ns.get(stage).copied().unwrap_or(ns), ns);
            (stage.clone(), (spent / 1e7).min(100.0))
        });
        CoreRates {
            core: core.core,
            role: core.role.clone(),
            percent: percent.collect(),
            frames_per_s: rate(was.frames, core.frames),
            units: core.units,
            pinned: core.pinned.clone(),
        }
    });
    let interfaces = now.all.interfaces.iter().map(|view| {
        let was = before.all.interfaces.iter().find(|was| was.name == view.name).unwrap_or(view);
        let (a, b) = (Sums::of(was), Sums::of(view));
        InterfaceRates {
            name: view.name.clone(),
            hook: view.hook.clone(),
            sent_per_s: rate(a.sent, b.sent),
            stayed_per_s: rate(a.stayed, b.stayed),
            dropped_per_s: rate(a.dropped, b.dropped),
            moves_per_s: rate(was.moves, view.moves),
            fault: view.fault.as_ref().map(|fault| fault.cause.clone()),
        }
    });
    let known: BTreeMap<_, u64> =
        before.units.iter().map(|unit| ((&unit.on, unit.unit), unit.frames)).collect();
    let units = now.units.iter().map(|unit| UnitRates {
        on: unit.on.clone(),
        unit: unit.unit,
        rule: unit.rule.clone(),
        core: unit.core,
        frames_per_s: rate(known.get(&(&unit.on, unit.unit)).copied().unwrap_or(0), unit.frames),
        reason: unit.reason.clone(),
    });
    let (cores, interfaces) = (cores.collect(), interfaces.collect());
    let mut units: Vec<UnitRates> = units.filter(|unit| unit.frames_per_s > 0.0).collect();
    units.sort_by(|a, b| b.frames_per_s.total_cmp(&a.frames_per_s));
    Rates { seconds, cores, interfaces, units }
}

fn page(rates: &Rates, units: usize) -> String {
    format!(
        "{}\n{}\n{}",
        cores(&rates.cores),
        interfaces(&rates.interfaces),
        busiest(&rates.units, units)
    )
}

fn cores(cores: &[CoreRates]) -> String {
    let mut table = Table::new(&[
        "CORE",
        "ROLE",
        ">DRIVER%",
        ">PACKET%",
        ">VHOST%",
        ">GUEST%",
        ">OTHER%",
        ">IDLE%",
        ">FRAMES/S",
        ">UNITS",
        "PINNED",
    ]);
    for core in cores {
        let stage =
            |name: &str| format!("{:.1}", core.percent.get(name).copied().unwrap_or_default());
        table.row(vec![
            core.core.to_string(),
            core.role.clone(),
            stage("driver"),
            stage("packet"),
            stage("vhost"),
            stage("guest"),
            stage("other"),
            stage("idle"),
            short(core.frames_per_s),
            core.units.to_string(),
            dash(Some(core.pinned.join(" ")).filter(|text| !text.is_empty())),
        ]);
    }
    table.to_string()
}

fn interfaces(interfaces: &[InterfaceRates]) -> String {
    if interfaces.is_empty() {
        return "no interface is steered: suiro steer attach INTERFACE\n".into();
    }
    let mut table = Table::new(&[
        "INTERFACE",
        "HOOK",
        ">SENT/S",
        ">STAYED/S",
        ">DROPPED/S",
        ">MOVES/S",
        "FAULT",
    ]);
    for view in interfaces {
        table.row(vec![
            view.name.clone(),
            dash(view.hook.as_deref()),
            short(view.sent_per_s),
            short(view.stayed_per_s),
            short(view.dropped_per_s),
            short(view.moves_per_s),
            view.fault.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}

fn busiest(units: &[UnitRates], most: usize) -> String {
    if units.is_empty() {
        return "no frames\n".into();
    }
    let mut table = Table::new(&["UNIT", ">CORE", ">FRAMES/S", "WHY", "RULE"]);
    for unit in units.iter().take(most) {
        table.row(vec![
            format!("{}:{}", unit.on, unit.unit),
            dash(unit.core),
            short(unit.frames_per_s),
            unit.reason.clone().unwrap_or_default(),
            unit.rule.clone().unwrap_or_else(|| "flow group".into()),
        ]);
    }
    let more = units.len().saturating_sub(most);
    let rest = if more > 0 { format!("and {more} more\n") } else { String::new() };
    table.to_string() + &rest
}
