//! For random switches and frames, the answer is what really happens.

use super::world::{Arrival, Plan, a_plan, a_rule, an_arrival, ports};
use super::{NOW, Resolved, Seen, To, key_of, seen, told};
use crate::Pipeline;
use crate::action::Action;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{Field, Key, WORDS};

const ALL: Key = Key([u64::MAX; WORDS]);

/// Whether edits may have revealed what a frame's key does not say.
fn reveals(answer: &Resolved, plan: &Plan) -> bool {
    let pops = |action: &Action| {
        !matches!(action, Action::Output(_) | Action::Group(_) | Action::SetQueue(_))
    };
    let edits = plan.rules.iter().any(|rule| {
        rule.instructions.apply.iter().chain(&rule.instructions.write).any(pops)
            || rule.instructions.meter.is_some()
    });
    matches!(answer.exit, To::Depends(_)) && (edits || !answer.entries.is_empty())
}

/// Whether a TTL ran out that the key does not say.
fn ran_out(told: Option<&Seen>, real: &Seen) -> bool {
    real.ran_out || told.is_some_and(|told| told.ran_out)
}

fn resolved(pipeline: &mut Pipeline, (frame, in_port): &Arrival, known: &Key) -> Resolved {
    pipeline.snapshot().resolve(&key_of(frame, *in_port), known, NOW)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn it_is_what_becomes_of_the_frame(plan in a_plan(), arrivals in vec(an_arrival(), 1..6)) {
        let mut pipeline = plan.pipeline();
        for arrival in arrivals {
            let answer = resolved(&mut pipeline, &arrival, &ALL);
            let real = seen(&mut pipeline, &arrival);
            match told(&pipeline, &answer, &arrival) {
                told if answer.decrements && ran_out(told.as_ref(), &real) => {}
                Some(told) => prop_assert_eq!(told, real, "{:?}", answer),
                None => prop_assert!(reveals(&answer, &plan), "{:?}", answer),
            }
        }
    }

    #[test]
    fn it_is_the_same_for_all_frames_with_the_bits_that_it_looked_at(
        plan in a_plan(),
        arrivals in vec(an_arrival(), 2..12),
    ) {
        let mut pipeline = plan.pipeline();
        let answer = resolved(&mut pipeline, &arrivals[0], &ALL);
        let key = key_of(&arrivals[0].0, arrivals[0].1).masked(&answer.looked_at);
        for arrival in &arrivals {
            if !key.matches(&answer.looked_at, &key_of(&arrival.0, arrival.1)) {
                continue;
            }
            if !pipeline.snapshot().holds(&answer.stamp, NOW) {
                break; // a frame's source was learned
            }
            let (told, real) = (told(&pipeline, &answer, arrival), seen(&mut pipeline, arrival));
            if answer.decrements && ran_out(told.as_ref(), &real) {
                continue;
            }
            if let Some(told) = told {
                prop_assert_eq!(told, real, "{:?}", answer);
            }
        }
    }

    #[test]
    fn less_that_is_known_never_makes_another_answer(
        plan in a_plan(),
        arrivals in vec(an_arrival(), 1..6),
        missing in vec(0..Field::ALL.len(), 0..6),
    ) {
        let mut pipeline = plan.pipeline();
        let mut known = ALL;
        missing.iter().for_each(|&at| known.set(Field::ALL[at], 0));
        for arrival in arrivals {
            let (all, some) = (
                resolved(&mut pipeline, &arrival, &ALL),
                resolved(&mut pipeline, &arrival, &known),
            );
            match some.exit {
                To::Depends(field) => {
                    let is_given = known.get(field) == field.full();
                    prop_assert!(!is_given || reveals(&some, &plan), "{:?}", some);
                }
                _ => {
                    prop_assert_eq!(some.looked_at.without(&known), Key::default());
                    prop_assert_eq!(Resolved { looked_at: all.looked_at, ..some }, all);
                }
            }
        }
    }

    #[test]
    fn it_holds_until_what_it_rests_on_changes(
        plan in a_plan(),
        arrivals in vec(an_arrival(), 1..4),
        changes in vec((a_rule(), 0u8..8), 1..6),
    ) {
        let mut pipeline = plan.pipeline();
        let answers: Vec<_> =
            arrivals.iter().map(|arrival| resolved(&mut pipeline, arrival, &ALL)).collect();
        for (rule, kind) in changes {
            match kind {
                0 => pipeline.set_ports(ports().into_iter().skip(1).collect()),
                1 => pipeline.mac_table().flush(),
                _ => drop(pipeline.flow_mod(&rule, NOW)),
            }
            for (arrival, answer) in arrivals.iter().zip(&answers) {
                let now = resolved(&mut pipeline, arrival, &ALL);
                if pipeline.snapshot().holds(&answer.stamp, NOW) {
                    let same = Resolved { stamp: answer.stamp.clone(), ..now };
                    prop_assert_eq!(without_generations(same), without_generations(answer.clone()));
                }
            }
        }
    }
}

/// The answer without which snapshot gave it.
fn without_generations(mut answer: Resolved) -> Resolved {
    answer.entries.iter_mut().for_each(|hit| hit.generation = 0);
    answer
}
