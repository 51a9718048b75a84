//! What keeps a flow on the worker changes: it is looked at again then, and not by and by.

use crate::world::{MS, SWITCH, Test, name};
use flow::{Nanos, SwitchId};
use offload::{
    Declined, FlowReason, MoveReason, Policy, PortReason, ProviderName, Refusal, Rule, Stage,
};

/// The underlay's.
const BEYOND: SwitchId = SwitchId(9);
const NOBODYS: SwitchId = SwitchId(7);

/// A test in which flows leave at their first frame.
fn eager() -> Test {
    let mut test = Test::new(8);
    test.engine.set_policies(vec![Policy { rule: Rule::First, ..Policy::default_cost() }]);
    test
}

fn steered() -> Option<Refusal> {
    Some(Declined::from(MoveReason::Steered).into())
}

impl Test {
    fn turns(&mut self, count: u32) {
        for _ in 0..count {
            self.send(1, 10);
            self.turn();
        }
    }

    fn stage(&self) -> Option<Stage> {
        self.engine.why(&name(1)).unwrap().line.stage
    }

    /// Nanoseconds until the flow is tried again.
    fn wait_ns(&self) -> u64 {
        let next = self.engine.why(&name(1)).and_then(|told| told.line.next);
        next.unwrap().since(Nanos(self.now))
    }

    fn is_up(&self) -> bool {
        self.rung_of(1) == Some(ProviderName::Tc)
    }
}

/// A flow that was refused three times, the next time 4 s after the last.
fn refused(test: &mut Test) {
    test.turns(200);
    assert!(test.wait_ns() > 2_500 * MS && !test.is_up(), "{}", test.wait_ns());
}

#[test]
fn a_flow_that_the_underlays_rules_refuse_is_tried_again_when_they_change_and_when_no_others_do() {
    let mut test = eager();
    test.switch.refusal = Some(Refusal::beyond(FlowReason::Dropped, BEYOND));
    refused(&mut test);
    let before = test.wait_ns();
    test.changed(NOBODYS);
    assert_eq!(test.wait_ns(), before, "one tenant's rules wake nobody else's flows");
    test.changed(SWITCH);
    assert_eq!(test.wait_ns(), 0, "its own switch's do");
    refused(&mut test);

    test.switch.refusal = None;
    test.changed(BEYOND);
    test.turns(3);
    assert!(test.is_up(), "{:?}", test.declined(1));
    test.assert_conserved();
}

#[test]
fn a_flow_whose_exit_is_down_at_the_underlay_is_tried_again_when_that_changes() {
    let mut test = eager();
    (test.switch.exit, test.rung.is_down) = (BEYOND, true);
    refused(&mut test);
    assert_eq!(test.declined(1), Some(PortReason::Down.into()));
    test.rung.is_down = false;
    test.changed(BEYOND);
    test.turns(3);
    assert!(test.is_up(), "{:?}", test.declined(1));
    test.assert_conserved();
}

#[test]
fn a_flow_that_fell_for_the_underlays_rules_is_tried_again_when_they_change() {
    let mut test = eager();
    test.switch.exit = BEYOND;
    test.turns(20);
    assert!(test.is_up());
    test.switch.refusal = Some(Refusal::beyond(FlowReason::Dropped, BEYOND));
    test.changed(BEYOND);
    assert!(test.slots.lock().unwrap().is_empty(), "it is down when that returns");
    refused(&mut test);
    test.switch.refusal = None;
    test.changed(BEYOND);
    test.turns(3);
    assert!(test.is_up());
    test.assert_conserved();
}

#[test]
fn steering_brings_flows_back_before_it_begins_and_lets_them_leave_as_soon_as_it_ends() {
    let mut test = eager();
    test.turns(20);
    assert!(test.is_up());
    test.switch.refusal = steered();
    test.changed(SWITCH);
    assert!(test.slots.lock().unwrap().is_empty(), "none is on the rung when that returns");
    assert_eq!(test.declined(1), Some(MoveReason::Steered.into()));
    refused(&mut test);
    assert_eq!(test.declined(1), Some(MoveReason::Steered.into()));

    test.switch.refusal = None;
    test.changed(SWITCH);
    assert_eq!(test.wait_ns(), 0);
    test.turns(3);
    assert!(test.is_up());
    assert_eq!(test.engine.moves(), (2, 0), "moves, flaps");
    test.assert_conserved();
}

#[test]
fn a_flow_that_is_being_installed_when_steering_begins_does_not_rise() {
    for turns in [1, 2] {
        let mut test = eager();
        test.turns(turns);
        let is_on_its_way = matches!(test.stage(), Some(Stage::Installed | Stage::Rising));
        assert!(is_on_its_way, "{:?}", test.stage());
        test.switch.refusal = steered();
        test.changed(SWITCH);
        assert!(test.slots.lock().unwrap().is_empty(), "{:?}", test.stage());
        test.turns(5);
        assert_eq!(test.declined(1), Some(MoveReason::Steered.into()));
        assert_eq!(test.engine.moves().0, 0);
        test.assert_conserved();
    }
}
