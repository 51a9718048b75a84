//! The engine with a rung and a switch of our own: nothing is counted twice or lost, and steady traffic does not flap.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod retries;
mod world;

use flow::Nanos;
use offload::{
    Condition, Counts, Declined, MoveReason, Orphan, Policy, PolicyReason, Provider, ProviderName,
    Rule, Side, World,
};
use proptest::collection::vec;
use proptest::prelude::*;
use world::{MS, SWITCH, Test, name};

fn when(when: &str, until: Option<&str>) -> Policy {
    let when = Condition::when(when).unwrap();
    let until = Condition::until(until, &when).unwrap();
    Policy { name: "bulk".into(), rule: Rule::When { when, until }, ..Policy::default_cost() }
}

#[test]
fn a_heavy_flow_leaves_the_worker_and_comes_back_when_it_is_light() {
    let mut test = Test::new(8);
    test.engine.set_policies(vec![when("rate>=50M and packets>=100", Some("rate<5M"))]);
    for _ in 0..100 {
        test.send(1, 400); // 160 Mbit/s
        test.send(2, 1);
        test.turn();
    }
    assert_eq!((test.rung_of(1), test.rung_of(2)), (Some(ProviderName::Tc), None));
    assert!(matches!(
        test.declined(2),
        Some(Declined::Policy(PolicyReason::BelowThreshold {
            what: "rate",
            needs: 50_000_000,
            ..
        }))
    ));
    for _ in 0..150 {
        test.send(1, 1);
        test.turn();
    }
    assert_eq!(test.rung_of(1), None);
    test.assert_conserved();
}

#[test]
fn steady_traffic_does_not_flap() {
    for rate in [1, 30, 48, 52, 200] {
        let mut test = Test::new(8);
        test.engine.set_policies(vec![when("rate>=50M", Some("rate<40M"))]);
        for round in 0..3000u64 {
            test.send(1, rate * 5 / 2 + round % 2);
            test.turn();
        }
        let (moves, flaps) = test.engine.moves();
        assert!(moves <= 1 && flaps == 0, "{rate} Mbit/s: {moves} moves, {flaps} flaps");
    }
}

#[test]
fn who_falls_silent_while_it_rises_is_not_said_to_be_never_quiet() {
    let mut test = Test::new(8);
    test.engine.set_policies(vec![Policy { rule: Rule::First, ..Policy::default_cost() }]);
    test.send(1, 1);
    (0..100).for_each(|_| test.turn());
    assert_eq!(test.declined(1), Some(PolicyReason::NotSeen.into()));
    for _ in 0..5 {
        test.send(1, 1);
        test.turn();
    }
    assert_eq!(test.rung_of(1), Some(ProviderName::Tc), "it waits for nothing but frames");
    test.assert_conserved();
}

#[test]
fn a_changed_rule_brings_its_flows_back_before_it_answers() {
    let mut test = Test::new(8);
    test.engine.set_policies(vec![Policy { rule: Rule::First, ..Policy::default_cost() }]);
    for _ in 0..20 {
        test.send(1, 10);
        test.turn();
    }
    assert!(test.rung_of(1).is_some());
    test.switch.version += 1;
    test.changed(SWITCH);
    assert!(test.slots.lock().unwrap().is_empty());
    for _ in 0..20 {
        test.send(1, 10);
        test.turn();
    }
    assert!(test.rung_of(1).is_some(), "it goes up again at once");
    test.assert_conserved();
}

/// A new engine for a flow that an earlier one left on the rung, when its tunnel has no way yet.
fn left_without_way() -> Test {
    let mut test = Test::new(8);
    let (from, key) = name(1);
    let program = test.switch.program(&(from, key), Nanos(test.now)).unwrap();
    let handle = test.rung.install(&program).unwrap();
    test.rung.want(handle, Side::Rung).unwrap();
    test.send(1, 10);
    test.rung.left.push(Orphan {
        handle,
        from,
        key,
        exit: Some(program.exit),
        patch: offload::Patch::of(&program),
        around: None,
        limits: Default::default(),
        shapes: Default::default(),
        side: Side::Rung,
        counts: Counts::default(),
    });
    test.switch.has_way = false;
    let found = test.engine.adopt(&mut [&mut test.rung], &mut test.switch, Nanos(test.now));
    assert_eq!((found, test.engine.has_left()), (offload::TakenUp::default(), true));
    test
}

impl Test {
    fn take_up(&mut self) -> offload::TakenUp {
        self.now += 20 * MS;
        self.engine.take_up(&mut [&mut self.rung], &mut self.switch, Nanos(self.now))
    }
}

#[test]
fn a_flow_that_was_left_goes_on_until_its_way_is_there_and_counts_all_that_came_meanwhile() {
    let mut test = left_without_way();
    test.send(1, 5);
    assert!(test.take_up().stayed.is_empty() && test.rung_of(1) == Some(ProviderName::Tc));
    assert_eq!(test.declined(1), Some(MoveReason::Adopting.into()));
    test.switch.has_way = true;
    assert_eq!(test.take_up().stayed, [ProviderName::Tc]);
    assert!(!test.engine.has_left() && test.declined(1).is_none());
    test.send(1, 7);
    test.assert_conserved();
}

#[test]
fn a_flow_whose_way_does_not_come_is_the_workers_after_a_while_and_at_a_barrier_at_once() {
    let mut test = left_without_way();
    let ended = |test: &mut Test| test.take_up().ended == [MoveReason::Adopting.into()];
    assert!((0..149).all(|_| !ended(&mut test)) && ended(&mut test), "after 3 s");
    assert!(test.slots.lock().unwrap().is_empty() && !test.engine.has_stays());

    let mut test = left_without_way();
    let judged = test.engine.judge_left(&mut [&mut test.rung], &mut test.switch, Nanos(test.now));
    assert_eq!(judged.ended, [MoveReason::Adopting.into()]);
    assert!(test.slots.lock().unwrap().is_empty() && !test.engine.has_stays());
}

#[test]
fn when_slots_are_few_the_heaviest_have_them() {
    let mut test = Test::new(2);
    for _ in 0..400 {
        for at in 1..=4 {
            test.send(at, 20 * u64::from(at));
        }
        test.turn();
    }
    let up: Vec<u16> = (1..=4).filter(|&at| test.rung_of(at).is_some()).collect();
    assert_eq!(up, [3, 4]);
    test.assert_conserved();
}

#[test]
fn never_means_never() {
    let mut test = Test::new(2);
    test.engine.set_policies(vec![Policy { rule: Rule::Never, ..Policy::default_cost() }]);
    for _ in 0..50 {
        test.send(1, 1000);
        test.turn();
    }
    assert_eq!(test.declined(1), Some(PolicyReason::Never.into()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_is_counted_once(
        steps in vec((1u16..6, 0u64..2000, 0u8..20), 1..300),
        size in 1usize..4,
    ) {
        let mut test = Test::new(size);
        for (at, frames, what) in steps {
            test.send(at, frames);
            match what {
                0 => {
                    test.switch.version += 1;
                    test.changed(SWITCH);
                }
                1 => test.engine.set_on(false),
                2 => test.engine.set_on(true),
                3 => test.engine.set_policies(vec![when("pps>=1000", None)]),
                4 => test.engine.set_policies(vec![]),
                _ => test.turn(),
            }
        }
        test.assert_conserved();
    }
}
