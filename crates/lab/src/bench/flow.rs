//! `suiro bench flow`: the classifier alone, case by case, without a port or a system call in the measured part.

use super::Common;
use crate::report::{Report, Row, Spread};
use anyhow::{Result, ensure};
use flow::bench::{CASES, Case, Measured, measure};
use std::net::Ipv4Addr;
use testbed::machine::placement_class;
use wire::build::{Frame, Ipv4, Tcp};
use wire::{Head, Key, Layers, parse_into};

/// Rounds of 2^18 packets within each of the command's rounds.
const ROUNDS: usize = 3;

/// Frames parsed together.
const FRAMES: u16 = 32;
const PARSE_ROUNDS: usize = 10_001;

/// All rounds of one case.
struct Figures {
    last: Measured,
    classify: Spread,
    whole: Spread,
    cores: &'static str,
}

pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    println!(
        "{:<36} {:>8} {:>8} {:>10} {:>22} {:>22} {:>7} {:>6} {:>8} {:>10}",
        "cycles per packet",
        "rules",
        "flows",
        "template",
        "classify",
        "and run actions",
        "probes",
        "bound",
        "B/entry",
        "c/flow-mod"
    );
    let mut figures = Vec::new();
    for case in CASES.iter().filter(|case| case.name.contains(&common.only)) {
        let one = rounds(case, common.rounds)?;
        print(&one);
        figures.push(one);
    }
    let parse = parse_cycles();
    println!("parse, Ethernet + IPv4 + TCP: {parse:.1} cycles");
    print_range("look up", &figures, |one| one.classify.median);
    print_range("classify: parse and look up", &figures, |one| parse + one.classify.median);
    print_range("parse, look up and run actions", &figures, |one| parse + one.whole.median);
    report.add(
        figures.iter().flat_map(|one| {
            [row(one, "look up", one.classify), row(one, "with actions", one.whole)]
        }),
    )
}

fn rounds(case: &Case, count: u32) -> Result<Figures> {
    let cores = placement_class();
    testbed::sys::pin(1);
    let all: Vec<Measured> =
        (0..count).map(|_| measure(case, ROUNDS, &testbed::sys::cycles)).collect();
    testbed::sys::unpin();
    let classify = Spread::of(all.iter().map(|one| one.cycles_to_classify).collect());
    let whole = Spread::of(all.iter().map(|one| one.cycles).collect());
    let last = all.into_iter().next_back().expect("there is at least one round");
    ensure!(
        last.probes <= f64::from(last.probe_bound),
        "{}: {} probes per packet, above the stated bound of {}",
        last.name,
        last.probes,
        last.probe_bound
    );
    Ok(Figures { last, classify, whole, cores })
}

fn print(figures: &Figures) {
    let last = &figures.last;
    let show =
        |spread: Spread| format!("{:.1} [{:.1}..{:.1}]", spread.median, spread.min, spread.max);
    println!(
        "{:<36} {:>8} {:>8} {:>10} {:>22} {:>22} {:>7.2} {:>6} {:>8.0} {:>10.0}",
        last.name,
        last.rules,
        last.flows,
        last.template,
        show(figures.classify),
        show(figures.whole),
        last.probes,
        last.probe_bound,
        last.bytes_per_entry,
        last.cycles_per_flow_mod
    );
}

/// From the best case to the worst: what an attacker can gain by choosing rules and traffic.
fn print_range(what: &str, figures: &[Figures], of: impl Fn(&Figures) -> f64) {
    let by_cost = |a: &&Figures, b: &&Figures| of(a).total_cmp(&of(b));
    let (Some(best), Some(worst)) =
        (figures.iter().min_by(by_cost), figures.iter().max_by(by_cost))
    else {
        return;
    };
    let ratio = of(worst) / of(best);
    println!(
        "{what}: worst over best {ratio:.1}x ({} over {}); promised: 4x",
        worst.last.name, best.last.name
    );
}

/// Cycles to make a key of a frame's head: median over rounds of a worker's batch, heads in the first-level cache as they are there.
fn parse_cycles() -> f64 {
    let tcp = |number: u16| {
        let (src, dst) = (Ipv4Addr::from_bits(u32::from(number)), Ipv4Addr::new(10, 0, 0, 1));
        let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4 { src, dst, ..Default::default() });
        Head::copy_of(&frame.tcp(Tcp { src: number, dst: 80, ..Default::default() }).finish())
    };
    let heads: Vec<Head> = (0..FRAMES).map(tcp).collect();
    let (mut key, mut layers) = (Key::default(), Layers::default());
    let round = |_| {
        let start = testbed::sys::cycles();
        for head in &heads {
            parse_into(head, &mut key, &mut layers);
            std::hint::black_box((&mut key, &mut layers));
        }
        (testbed::sys::cycles() - start) as f64 / f64::from(FRAMES)
    };
    Spread::of((0..PARSE_ROUNDS).map(round).collect()).median
}

fn row(figures: &Figures, what: &str, ours: Spread) -> Row {
    let case = format!("{}, {what}", figures.last.name);
    Row {
        case,
        unit: "cycles",
        cores: figures.cores.into(),
        ours,
        peer: None,
        ratio: None,
        goal: None,
    }
}
