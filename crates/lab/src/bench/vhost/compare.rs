//! One case: both switches in turn, then a check of every frame.

use super::Plan;
use super::cases::{Case, Of, Promise, SCALING};
use super::rig::{Rig, Window};
use crate::report::{Peer, Row, Spread};
use anyhow::Result;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use testbed::peer::vhost::Kind;

/// Windows of a contender's turn.
const WINDOWS: usize = 2;

/// Windows of a class that make a figure: a median of fewer says what the host did in them.
const ENOUGH: usize = 5;

/// The host may keep the cores in one class for most of one contender's turns; then there are more rounds, up to so many times those
/// asked for.
const PATIENCE: u32 = 3;

/// Share of its capacity at which a switch's frames are checked one by one, and for how long.
const CHECKED_LOAD: f64 = 0.5;

const CHECKED_TIME: Duration = Duration::from_secs(1);

/// The windows of a contender, by placement class.
#[derive(Default)]
pub struct Windows(pub BTreeMap<&'static str, Vec<Window>>);

impl Windows {
    /// Takes one more, and prints it.
    pub fn add(&mut self, round: u32, case: &str, kind: Kind, window: Window) {
        eprintln!(
            "round {round}  {case}: {} {:.2} Mpps, {:.1} busy cycles a frame, switch idle {:.0} %, driver busy {:.0} %, upcalls {:.3} %, {}",
            kind.name(),
            window.mpps,
            window.busy_cycles,
            100.0 * window.switch_idle,
            100.0 * window.driver_busy,
            100.0 * window.upcalls,
            window.class,
        );
        self.0.entry(window.class).or_default().push(window);
    }

    fn counts(&self) -> Counts {
        self.0.iter().map(|(&class, windows)| (class, windows.len())).collect()
    }
}

/// How often each placement class was seen.
pub type Counts = BTreeMap<&'static str, usize>;

/// Something that takes turns.
pub trait Contends {
    /// Which switch.
    fn kind(&self) -> Kind;
    /// What it has shown so far.
    fn windows(&self) -> &Windows;
    /// Measures once more, with the others stopped.
    fn turn(&mut self, round: u32) -> Result<()>;
}

/// Lets them take turns for so many rounds, or for more while a class is known well of one contender alone.
pub fn alternate(rounds: u32, contenders: &mut [impl Contends]) -> Result<()> {
    let mut round = 0;
    while goes_on(round, rounds..=PATIENCE * rounds, ENOUGH, || counts(contenders)) {
        round += 1;
        contenders.iter_mut().try_for_each(|contender| contender.turn(round))?;
    }
    Ok(())
}

fn counts(contenders: &[impl Contends]) -> Vec<Counts> {
    contenders.iter().map(|contender| contender.windows().counts()).collect()
}

/// Whether another turn is due after so many, of those that all have and those that they have at most. What was measured does not matter,
/// only how often, so that no switch gains by it.
pub fn goes_on(
    done: u32,
    turns: RangeInclusive<u32>,
    enough: usize,
    counts: impl FnOnce() -> Vec<Counts>,
) -> bool {
    done < *turns.start() || (done < *turns.end() && is_uneven(&counts(), enough))
}

/// Whether a class was seen often enough by one contender and not by another.
fn is_uneven(counts: &[Counts], enough: usize) -> bool {
    counts.iter().flatten().any(|(class, &seen)| {
        seen >= enough
            && counts.iter().any(|counts| counts.get(class).is_none_or(|&seen| seen < enough))
    })
}

/// A contender of a case.
pub struct Contender<'a> {
    kind: Kind,
    pub case: &'a Case,
    rig: Rig,
    windows: Windows,
}

impl Contends for Contender<'_> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn windows(&self) -> &Windows {
        &self.windows
    }

    fn turn(&mut self, round: u32) -> Result<()> {
        self.rig.switch.thaw()?;
        for _ in 0..WINDOWS {
            if let Some(window) = self.rig.window()? {
                self.windows.add(round, self.case.name, self.kind, window);
            }
        }
        self.rig.switch.freeze()
    }
}

/// Rows of a case: for each placement class frames a second, busy cycles and idle share; and frames that came through wrongly.
pub fn run(plan: &Plan, case: &Case) -> Result<Vec<Row>> {
    let mut contenders = Vec::new();
    for &kind in &plan.kinds {
        contenders.push(Contender::start(plan, kind, case)?);
    }
    alternate(plan.rounds, &mut contenders)?;
    let mut rows = rows(case.name, case.promise, &contenders);
    for contender in &mut contenders {
        rows.extend(contender.check()?);
    }
    Ok(rows)
}

impl<'a> Contender<'a> {
    /// Started with its guests, and stopped until its turn.
    pub fn start(plan: &Plan, kind: Kind, case: &'a Case) -> Result<Self> {
        let rig = Rig::start(kind, case, plan.pages, plan.cycles)?;
        rig.switch.freeze()?;
        Ok(Self { kind, case, rig, windows: Windows::default() })
    }

    /// Compares every frame with what it must be, below capacity. Its row is of our own frames only; the peer's are printed.
    pub fn check(&mut self) -> Result<Option<Row>> {
        let case = self.case;
        let slowest = self.windows.0.values().flatten().map(|window| window.mpps).reduce(f64::min);
        let Some(slowest) = slowest else { return Ok(None) };
        self.rig.switch.thaw()?;
        let rungs = self.rig.switch.rungs()?;
        let rate = slowest * 1e6 * CHECKED_LOAD;
        let (totals, check) = self.rig.verify(case, rate, CHECKED_TIME);
        self.rig.switch.freeze()?;
        eprintln!(
            "checked  {}: {}: {} sent, {} right, {} lost, {} reordered, {} damaged",
            case.name,
            self.kind.name(),
            totals.sent,
            check.good,
            check.lost,
            check.reordered,
            check.damaged
        );
        if let Some(shares) = shares(&rungs) {
            eprintln!("by rung  {}: {}: {shares}", case.name, self.kind.name());
        }
        check.example.iter().for_each(|example| eprintln!("damaged  {example}"));
        let wrong = (check.lost + check.reordered + check.damaged) as f64;
        Ok((self.kind == Kind::Suiro).then(|| Row {
            case: format!("{}: wrong of {} checked", case.name, totals.sent),
            unit: "frames",
            cores: "-".into(),
            ours: Spread::of(vec![wrong]),
            peer: None,
            ratio: None,
            goal: Some(0.0),
        }))
    }
}

/// The rungs that took frames, and their shares; `None` if there are none.
fn shares(rungs: &[(String, u64)]) -> Option<String> {
    let all: u64 = rungs.iter().map(|(_, frames)| frames).sum();
    let share = |(name, frames): &(String, u64)| {
        (*frames > 0).then(|| format!("{name} {:.2} %", 100.0 * *frames as f64 / all as f64))
    };
    (all > 0).then(|| rungs.iter().filter_map(share).collect::<Vec<_>>().join(", "))
}

/// A figure of a window, and whether more of it is better; nobody wins by idling.
type Figure = (&'static str, &'static str, fn(&Window) -> f64, Option<bool>);

const FIGURES: [Figure; 3] = [
    ("", "Mpps", |window| window.mpps, Some(true)),
    (", busy cycles a frame", "c", |window| window.busy_cycles, Some(false)),
    (", switch idle", "%", |window| 100.0 * window.switch_idle, None),
];

/// Rows of one case, ours beside the peer's.
pub fn rows(case: &str, promise: Option<Promise>, contenders: &[impl Contends]) -> Vec<Row> {
    let Some((ours, peer)) = contenders.split_first() else { return Vec::new() };
    let mut rows = Vec::new();
    for (&class, windows) in &ours.windows().0 {
        for figure in FIGURES {
            let peer = peer.first();
            let peer = peer.and_then(|peer| Some((peer.kind(), peer.windows().0.get(class)?)));
            rows.push(row((case, promise), class, figure, windows, peer));
        }
    }
    rows
}

fn row(
    (case, promise): (&str, Option<Promise>),
    class: &str,
    (suffix, unit, of, more_is_better): Figure,
    ours: &[Window],
    peer: Option<(Kind, &Vec<Window>)>,
) -> Row {
    let ours = Spread::of(ours.iter().map(of).collect());
    let peer = peer.map(|(kind, windows)| Peer {
        name: kind.name(),
        spread: Spread::of(windows.iter().map(of).collect()),
    });
    let ratio = peer.as_ref().zip(more_is_better).map(|(peer, more)| match more {
        true => ours.median / peer.spread.median,
        false => peer.spread.median / ours.median,
    });
    let meant = |promise: &Promise| more_is_better == Some(promise.of == Of::Rate);
    let goal = promise.filter(meant).and_then(|promise| promise.in_class(class));
    Row { case: format!("{case}{suffix}"), unit, cores: class.into(), ours, peer, ratio, goal }
}

impl Promise {
    fn in_class(self, class: &str) -> Option<f64> {
        match class {
            "CCX" => Some(self.near),
            "FAR" => Some(self.far),
            _ => None,
        }
    }
}

/// What many flows leave of the rate at few, ours and the peer's, for each class in which both were measured.
pub fn scaling(rows: &[Row]) -> Vec<Row> {
    let find =
        |case: &str, class: &str| rows.iter().find(|row| row.case == case && row.cores == class);
    let mut made = Vec::new();
    for (name, many, few, goal) in SCALING {
        for many in rows.iter().filter(|row| row.case == many) {
            let Some(few) = find(few, &many.cores) else { continue };
            let share = |many: Spread, few: Spread| Spread::of(vec![many.median / few.median]);
            let peer = many.peer.as_ref().zip(few.peer.as_ref()).map(|(many, few)| Peer {
                name: many.name.clone(),
                spread: share(many.spread, few.spread),
            });
            let ours = share(many.ours, few.ours);
            made.push(Row {
                case: name.into(),
                unit: "",
                cores: many.cores.clone(),
                ours,
                peer,
                ratio: Some(ours.median),
                goal: Some(goal),
            });
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts<const N: usize>(each: [&[(&'static str, usize)]; N]) -> Vec<Counts> {
        each.into_iter().map(|counts| counts.iter().copied().collect()).collect()
    }

    #[test]
    fn a_class_that_one_contender_met_is_waited_for() {
        let even = || counts([&[("CCX", 5), ("FAR", 4)], &[("CCX", 6)]]);
        let uneven = || counts([&[("CCX", 10)], &[("CCX", 6), ("FAR", 5)]]);
        let short = || counts([&[("CCX", 10), ("FAR", 4)], &[("CCX", 5), ("FAR", 5)]]);
        assert!(goes_on(4, 5..=15, 5, even), "not all rounds are over");
        assert!(!goes_on(5, 5..=15, 5, even));
        assert!(goes_on(5, 5..=15, 5, uneven) && goes_on(14, 5..=15, 5, uneven));
        assert!(goes_on(5, 5..=15, 5, short));
        assert!(!goes_on(15, 5..=15, 5, uneven), "patience is over");
        assert!(!goes_on(5, 5..=15, 5, || counts([&[("CCX", 10)]])), "nobody to wait for");
    }
}
