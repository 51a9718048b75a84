//! Timeouts of entries whose frames all go by the rung, and what their end tells.

use crate::world::{World, frame, name, now, rule};
use flow::{FlowMod, Nanos, RemovedReason};
use offload::{Engine, Policy, ProviderName, Rule};

const FLOW: u16 = 7;
const SECOND: u64 = 1_000_000_000;

/// The flow is on the rung, by an engine that puts every flow there.
fn offloaded(world: &mut World) -> Engine {
    let mut engine = Engine::default();
    engine.set_slots(&[ProviderName::Tc], 16);
    engine.set_on(true);
    engine.set_policies(vec![Policy { rule: Rule::First, ..Policy::default_cost() }]);
    engine.saw(name(FLOW), (1, 60), now());
    for _ in 0..3 {
        engine.turn(&mut [&mut world.tc], &mut world.tables, now());
    }
    world.quiet();
    assert!(world.send(&frame(FLOW, 60)).1, "it has risen");
    engine
}

fn later(seconds: f64) -> Nanos {
    Nanos(now().0.saturating_add_signed((seconds * SECOND as f64) as i64))
}

#[test]
fn an_entry_is_in_use_while_its_frames_go_by_the_rung() {
    let Some(mut world) = World::new("idle") else { return };
    // Unused, it would have gone a second ago.
    world.tables.add(&FlowMod { idle_timeout_s: 5, ..rule(FLOW, None, None) }, later(-6.0));
    let mut engine = offloaded(&mut world);
    for len in [60, 100, 200] {
        assert!(world.send(&frame(FLOW, len)).1);
    }
    engine.read(&mut [&mut world.tc], &mut world.tables);
    assert_eq!(world.tables.pipeline.expire(later(4.5)), []);
    let gone = world.tables.pipeline.expire(later(5.5));
    assert_eq!((gone.len(), gone[0].reason), (1, RemovedReason::IdleTimeout));
    assert_eq!((gone[0].flow.packets, gone[0].flow.bytes), (4, 60 + 60 + 100 + 200));
}

#[test]
fn an_entry_whose_flow_is_on_the_rung_and_sends_nothing_goes_in_time() {
    let Some(mut world) = World::new("unused") else { return };
    world.tables.add(&FlowMod { idle_timeout_s: 5, ..rule(FLOW, None, None) }, now());
    let mut engine = offloaded(&mut world);
    // Two seconds of readings that bring nothing do not keep it.
    for _ in 0..4 {
        engine.read(&mut [&mut world.tc], &mut world.tables);
    }
    assert_eq!(world.tables.pipeline.expire(later(5.5)).len(), 1);
}

#[test]
fn a_hard_timeout_ends_a_flow_on_the_rung_and_tells_all_its_frames() {
    let Some(mut world) = World::new("hard") else { return };
    world.tables.add(&FlowMod { hard_timeout_s: 5, ..rule(FLOW, None, None) }, now());
    let mut engine = offloaded(&mut world);
    (0..10).for_each(|_| _ = world.send(&frame(FLOW, 100)));
    engine.read(&mut [&mut world.tc], &mut world.tables);
    let gone = world.tables.pipeline.expire(later(5.1));
    assert_eq!((gone.len(), gone[0].reason), (1, RemovedReason::HardTimeout));
    assert_eq!((gone[0].flow.packets, gone[0].flow.bytes), (11, 60 + 1000));

    // The tables are published, and the flow comes back before a barrier is answered.
    let before = world.tables.renew();
    engine.changed(crate::world::SWITCH, &mut [&mut world.tc], &mut world.tables, now());
    drop(before);
    assert!(!world.send(&frame(FLOW, 100)).1, "nobody's frame goes by the rung");
    assert!(!engine.has_stays());
}
