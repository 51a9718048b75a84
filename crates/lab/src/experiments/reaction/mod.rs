//! `vse-reaction`: how long is a flow left on a core that has become overloaded?
//!
//! A flow runs steadily; by suiro's policy, with moves, it is on some core. Then that core gets more to do than it can ([`overload`]). Measured is the time from there until a frame of the flow
//! is processed on another core: taken by the stage's program, at the frame, on the clock that the overload's begin was taken on.
//! Where another program of the machine held every other core at that time, there was nowhere to go: such overloads are shown apart ([`witness`]).
//! The flow has come to the other core for good if it changes core once in an overload, and every datagram is to come in its order.

mod overload;
mod witness;

use super::findings::{Findings, Goal};
use super::paper::Key;
use super::steering::{Steering, Told};
use super::trial::{Lab, prepare};
use super::{Experiment, Settings};
use anyhow::{Result, ensure};
use overload::{Bench, FLOW, Kind, NEIGHBOUR, OTHER, Taken};
use testbed::machine::placement_class;

/// Overloads of each kind in a round; five rounds are a hundred.
const A_ROUND: u32 = 20;

/// The promise.
const GOAL_MS: f64 = 10.0;

/// What was overloaded, how, and what came of it.
#[derive(Default)]
struct Case {
    name: String,
    class: &'static str,
    taken: Vec<Taken>,
}

/// Runs it.
///
/// # Errors
/// The step that failed, or suiro is not among the contenders.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let hosts = prepare(settings, 3)?;
    let mut lab = Lab::new(settings, &hosts)?;
    ensure!(lab.wants(Steering::Vse), "only suiro moves flows: leave out --steering, or name vse");
    let cases = all(&mut lab)?;
    for case in &cases {
        note(&mut lab, case);
    }
    let goals = cases.iter().flat_map(goals).collect();
    lab.findings(experiment, goals)
}

/// A neighbour on one core makes the policy put the flow elsewhere; first it is beside the interrupted core, then on it.
fn all(lab: &mut Lab<'_>) -> Result<Vec<Case>> {
    let vms = [FLOW, OTHER, NEIGHBOUR].map(|number| lab.vm(number, None, 0.0));
    let (rx, away) = (lab.hosts.layout.rx, lab.hosts.layout.others()[0]);
    let ports = [lab.any_port(), lab.any_port(), lab.any_port()];
    let lab = &*lab;
    let told = Told { vms: &vms, fixed: Some((OTHER, away)), moves: true, ..Told::default() };
    let _in_place = lab.put(Steering::Vse, told)?;
    let mut bench = Bench::new(lab, ports, away)?;
    let mut cases: Vec<Case> = Vec::new();
    // Another flow of too much for the interrupted core would fill that core's own queues, in front of any choice.
    for (neighbour, kinds) in [(away, &[Kind::Thread][..]), (rx, &[Kind::Thread, Kind::Flow])] {
        lab.send_to(NEIGHBOUR, neighbour)?;
        bench.rest()?;
        for turn in 0..lab.settings.rounds * A_ROUND {
            for &kind in kinds {
                let class = placement_class();
                let Some(taken) = bench.overload(kind)? else {
                    eprintln!("turn {turn}: {}: the flow had just left; not counted", kind.name());
                    continue;
                };
                let place = if taken.from == rx { "the interrupted core" } else { "another core" };
                let name = format!("{} on {place}", kind.name());
                eprintln!("turn {turn}: {name}: {taken}");
                let at = cases.iter().position(|case| case.name == name).unwrap_or_else(|| {
                    cases.push(Case { name, class, taken: Vec::new() });
                    cases.len() - 1
                });
                cases[at].taken.push(taken);
            }
        }
    }
    Ok(cases)
}

impl Case {
    /// Milliseconds of the overloads, shortest first; of all, or of those in which another core was free. One that the flow did not leave counts with its whole length.
    fn ms(&self, fits: impl Fn(&Taken) -> bool) -> Vec<f64> {
        let mut all: Vec<f64> =
            self.taken.iter().filter(|taken| fits(taken)).map(Taken::ms).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn sum(&self, of: impl Fn(&Taken) -> u64) -> f64 {
        self.taken.iter().map(of).sum::<u64>() as f64
    }

    fn key(&self, quantity: &'static str) -> Key {
        let steering = Steering::Vse.name().into();
        Key { case: self.name.clone(), steering, quantity, vm: None, size: None }
    }
}

/// What so many of a hundred stayed below.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).clamp(1, sorted.len().max(1));
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// Whether the flow could have gone elsewhere.
const fn had_a_choice(taken: &Taken) -> bool {
    taken.held_by.is_none()
}

fn note(lab: &mut Lab<'_>, case: &Case) {
    for taken in &case.taken {
        lab.sheet.add(case.key("reaction"), "ms", taken.ms(), case.class);
    }
    let (all, free) = (case.ms(|_| true), case.ms(had_a_choice));
    for (quantity, times, percent) in [
        ("reaction p50", &free, 50),
        ("reaction p90", &free, 90),
        ("reaction p99", &free, 99),
        ("reaction p99, also with no core free", &all, 99),
    ] {
        lab.sheet.add(case.key(quantity), "ms", percentile(times, percent), case.class);
    }
    lab.sheet.add(case.key("overloads"), "", all.len() as f64, case.class);
    let held = (all.len() - free.len()) as f64;
    lab.sheet.add(case.key("of them with no core free"), "", held, case.class);
    let changes = case.sum(|taken| taken.changes.into());
    lab.sheet.add(case.key("changes of core"), "", changes, case.class);
    lab.sheet.add(case.key("reordered"), "", case.sum(|taken| taken.late), case.class);
    lab.sheet.add(case.key("lost"), "", case.sum(|taken| taken.lost), case.class);
}

fn goals(case: &Case) -> [Goal; 2] {
    let free = case.ms(had_a_choice);
    [
        Goal::at_most(
            format!(
                "{}: p99 of {} reactions with another core free ({} without), ms",
                case.name,
                free.len(),
                case.taken.len() - free.len()
            ),
            percentile(&free, 99),
            GOAL_MS,
        ),
        Goal::at_most(
            format!("{}: datagrams out of order", case.name),
            case.sum(|taken| taken.late),
            0.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(ms: Option<u64>) -> Taken {
        Taken { ns: ms.map(|ms| ms * 1_000_000), ..Taken::default() }
    }

    #[test]
    fn a_flow_that_did_not_leave_counts_with_the_whole_overload() {
        let mut case =
            Case { taken: (1..=99).map(|ms| taken(Some(ms))).collect(), ..Case::default() };
        let ms = |case: &Case, percent| percentile(&case.ms(had_a_choice), percent);
        assert_eq!((ms(&case, 50), ms(&case, 99)), (50.0, 99.0));
        case.taken.push(taken(None));
        assert_eq!(ms(&case, 99), 99.0);
        assert_eq!(ms(&case, 100), overload::OVERLOAD.as_secs_f64() * 1e3);
        assert_eq!(percentile(&[], 99), 0.0);
    }

    #[test]
    fn overloads_without_a_free_core_are_no_part_of_the_promise_and_are_told() {
        let held = Taken { held_by: Some("kdamond.0".into()), ..taken(Some(80)) };
        let case = Case { name: "it".into(), taken: vec![taken(Some(4)), held], class: "CCX" };
        let [reaction, order] = goals(&case);
        assert!(reaction.is_met && order.is_met);
        assert_eq!(reaction.value, 4.0);
        assert!(reaction.claim.contains("1 reactions with another core free (1 without)"));
    }
}
