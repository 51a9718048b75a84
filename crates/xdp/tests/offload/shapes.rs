//! Greatest rates: a rung sends what may leave at once, and what must wait does so at the worker.

use crate::world::{World, frame, now, rule};
use flow::{BucketShape, RateUnit, SharedBucket, UNITS, units};
use offload::{Provider, Side};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use xdp::offload::{Past, Way};

const FLOW: u16 = 7;
const LEN: usize = 1514;
/// A byte takes a microsecond.
const BITS: u64 = 8_000_000;
/// A frame costs a seventh of it.
const BURST: u64 = 10_000_000 * UNITS;

fn world(test: &str) -> Option<World> {
    let mut world = World::new(test)?;
    world.tables.greatest = Some(BucketShape { burst: BURST, rate: BITS, unit: RateUnit::Bits });
    world.tables.add(&rule(FLOW, None, None), now());
    Some(world)
}

/// How far the rate is used up.
fn ahead(world: &World) -> u64 {
    let full_at = world.tables.limits.borrow()[0].full_at().load(Relaxed);
    flow::ahead(full_at, units(now()), BURST).unwrap_or(0)
}

/// Frames that leave by the rung until one goes to the worker.
fn until_one_waits(world: &mut World) -> u64 {
    (0..10_000).find(|_| world.send(&frame(FLOW, LEN)) == (true, false)).expect("a rate holds")
}

#[test]
fn what_must_wait_goes_to_the_worker_and_the_flow_is_up_again_when_nothing_waits() {
    let Some(mut world) = world("shapes") else { return };
    let held = Arc::new(AtomicU64::new(0));
    Past::Tc(world.exit.clone()).set_held(&held);
    let handle = world.raise(FLOW);
    let sent = until_one_waits(&mut world);
    assert!(sent >= 7, "{sent} used it up");
    let cost = LEN as u64 * 8 * 1_000_000_000 / BITS * UNITS;
    assert!(ahead(&world) <= BURST + cost, "one frame more than there was, at most");
    let counts = world.counts(handle);
    assert_eq!((counts.frames, counts.bytes, counts.limited), (sent, sent * LEN as u64, 0));
    assert_eq!(world.tc.side(handle), Side::Worker);

    // The worker has sent all that it got but for one frame.
    held.store(1, Relaxed);
    world.quiet();
    while ahead(&world) > BURST / 2 {
        std::hint::spin_loop();
    }
    assert_eq!(world.send(&frame(FLOW, LEN)), (true, false), "none passes the one that waits");
    held.store(0, Relaxed);
    assert_eq!(world.send(&frame(FLOW, LEN)), (true, false), "the worker has not said so");
    world.quiet();
    assert_eq!(world.send(&frame(FLOW, LEN)), (true, true));
    assert_eq!(world.tc.side(handle), Side::Rung);
}

#[test]
fn a_dead_nodes_flow_keeps_its_rate_and_its_side() {
    let Some(mut world) = world("shapesdead") else { return };
    let handle = world.raise(FLOW);
    assert_eq!(world.send(&frame(FLOW, LEN)), (true, true));
    let left = (0..1000).find(|_| {
        world.port.rehearse_hook(&frame(FLOW, LEN), 1).expect("the hook runs") == Way::Worker
    });
    assert!(left.is_some_and(|left| left >= 6), "{left:?}");
    assert_eq!(world.tc.side(handle), Side::Rung, "the next one may leave");
    while ahead(&world) > BURST / 2 {
        std::hint::spin_loop();
    }
    assert_eq!(world.port.rehearse_hook(&frame(FLOW, LEN), 1).expect("it runs"), Way::Rung);
}
