//! No frame passes one that came before it: not at a move either, and not one that came before the flow was known to the rung.

use crate::world::{World, frame, now, rule};
use offload::{Provider, Side};

const FLOW: u16 = 7;

#[test]
fn a_flow_does_not_rise_past_a_frame_that_came_before_it_was_known() {
    let Some(mut world) = World::new("before") else { return };
    world.tables.add(&rule(FLOW, None, None), now());
    let early = frame(FLOW, 100);
    world.queue(&early);
    let handle = world.raise(FLOW);
    assert_eq!(world.send(&frame(FLOW, 60)), (true, false), "one is in the queue still");
    world.quiet();
    assert_eq!(world.send(&frame(FLOW, 60)), (true, false), "and still");
    world.take(&early);
    assert_eq!(world.tc.side(handle), Side::Worker);
    world.quiet();
    assert_eq!(world.send(&frame(FLOW, 60)), (true, true));
}
