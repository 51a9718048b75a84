//! `suiro bench isolation`: what is left to one tenant while another one of the same host attacks.
//!
//! **Question answered**: does a tenant pay for itself?
//!
//! Two guests of a switch send 10,000 datagrams a second and TCP of 500 Mbit/s, first in quiet, then beside each attack on another switch of the same
//! node. A figure is what is left, in percent of the quiet one of the same start. suiro has one worker for both, then two; Open vSwitch's userspace
//! datapath has one poll thread for both. Attackers' programs run at the lowest priority on the guests' core: what they take there is no switch's doing.

mod attacks;
mod side;
mod soak;
mod victim;

use super::Common;
use super::cases::{ovs, suiro};
use crate::report::{Peer, Report, Row, Spread};
use anyhow::{Context, Result, ensure};
use attacks::{Attack, Scene};
use clap::Args;
use side::Side;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use testbed::machine::placement_class;
use testbed::netns::Namespace;
use testbed::peer::{Attach, Contend, Contender, Switch};
use victim::Seen;

/// `suiro bench isolation`.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Instead of figures: all attacks at once for so many minutes, while other tenants come and go. It fails if the node ends, grows without end,
    /// or counts otherwise than the guests' interfaces
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    soak: Option<u32>,
}

impl Options {
    /// Whether there will be a table.
    pub fn has_report(&self) -> bool {
        self.soak.is_none()
    }
}

/// All attacks at once.
///
/// # Errors
/// What did not hold.
pub fn soak(options: &Options) -> Result<()> {
    soak::run(options.soak.unwrap_or(1), &options.common.only)
}

/// What must be left.
const GOAL: f64 = 95.0;

const BOTH: Contender = Contender { switch: Switch::SuiroOnBoth, attach: Attach::Tap };

/// What is measured of the victim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Figure {
    Datagrams,
    Tcp,
    Silence,
}

impl Figure {
    const EACH: [Self; 3] = [Self::Datagrams, Self::Tcp, Self::Silence];

    const fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Datagrams => ("datagrams left", "%"),
            Self::Tcp => ("TCP left", "%"),
            Self::Silence => ("longest silence", "ms"),
        }
    }

    fn of(self, quiet: &Seen, beside: &Seen) -> f64 {
        match self {
            Self::Datagrams => 100.0 * beside.datagrams_per_s / quiet.datagrams_per_s,
            Self::Tcp => 100.0 * beside.gbits / quiet.gbits,
            Self::Silence => beside.silence.as_secs_f64() * 1e3,
        }
    }
}

/// Runs it.
///
/// # Errors
/// A step failed; less than the goal is no error, it stands in the report.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    let attacks = attacks::ALL.iter().filter(|attack| attack.name.contains(&common.only));
    for attack in attacks {
        let mut figures: BTreeMap<(usize, Figure), Vec<f64>> = BTreeMap::new();
        let mut classes: BTreeMap<&str, u32> = BTreeMap::new();
        let contenders = [suiro(Attach::Tap), BOTH, ovs(Attach::Tap, true)];
        let contenders = &contenders[..if attack.takes_suiro { 2 } else { 3 }];
        for round in 1..=common.rounds {
            for (at, contender) in contenders.iter().enumerate() {
                *classes.entry(placement_class()).or_default() += 1;
                let name = contender.name();
                let (quiet, beside) = measure(*contender, attack)
                    .with_context(|| format!("{}, {name}", attack.name))?;
                for figure in Figure::EACH {
                    let (what, unit) = figure.name();
                    let value = figure.of(&quiet, &beside);
                    eprintln!("round {round}  {}: {name}: {what} {value:.1} {unit}", attack.name);
                    figures.entry((at, figure)).or_default().push(value);
                }
            }
        }
        let classes = classes.iter().map(|(class, count)| format!("{class}{count}"));
        let classes = classes.collect::<Vec<_>>().join("+");
        let spread = |at, figure| figures.get(&(at, figure)).map(|all| Spread::of(all.clone()));
        for figure in Figure::EACH {
            let (what, unit) = figure.name();
            let row = |more: &str, ours, peer| Row {
                case: format!("{}: {what}{more}", attack.name),
                unit,
                cores: classes.clone(),
                ours,
                peer,
                ratio: None,
                goal: None,
            };
            let peer = spread(2, figure).map(|spread| Peer { name: contenders[2].name(), spread });
            let same = spread(0, figure).map(|ours| row("", ours, peer));
            let other = spread(1, figure).map(|ours| row(", two workers", ours, None));
            report.add(same.into_iter().chain(other))?;
        }
    }
    let is_low = |row: &&Row| row.unit == "%" && row.ours.median < GOAL;
    for row in report.rows().iter().filter(is_low) {
        eprintln!("below {GOAL} %: {} ({:.1} %)", row.case, row.ours.median);
    }
    Ok(())
}

/// What the victim has in quiet, and beside the attack.
fn measure(contender: Contender, attack: &Attack) -> Result<(Seen, Seen)> {
    let inside = Namespace::create("bad")?;
    let running = contender.start()?;
    let side = match contender.switch {
        Switch::Ovs { .. } => Side::Ovs(&running),
        _ => Side::Suiro(&running),
    };
    let scene = Scene { side, inside: &inside, number: 0 };
    (attack.prepare)(&scene).context("preparing the attack")?;
    let quiet = victim::see(&running.guests)?;
    ensure!(quiet.gbits > 0.0, "the victim has no TCP in quiet");
    let over = AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        let attacks = scope.spawn(|| {
            attacks::give_way();
            (attack.run)(&scene, &over)
        });
        let seen = victim::see(&running.guests);
        over.store(true, Ordering::Relaxed);
        attacks.join().expect("an attack does not panic").context("attacking")?;
        seen
    })?;
    Ok((quiet, beside))
}
