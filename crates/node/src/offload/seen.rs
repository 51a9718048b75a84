//! What captures see: flows that they would show come back to the worker before they begin, and leave again when they end.

use datapath::{CaptureId, Filter, Point, Sides, Wanted};
use offload::{FlowProgram, known};
use std::collections::HashMap;
use wire::Key;

/// What one capture wants.
#[derive(Clone)]
pub struct Seen {
    points: Box<[Point]>,
    filter: Filter,
}

impl From<&Wanted<'_>> for Seen {
    fn from(wanted: &Wanted<'_>) -> Self {
        Self { points: wanted.points.into(), filter: wanted.filter.clone() }
    }
}

impl Seen {
    /// Whether a worker would show it frames of a flow.
    pub(super) fn shows(&self, program: &FlowProgram) -> bool {
        self.points.iter().any(|point| is_passed(point, program)) && self.may_want(program)
    }

    /// Whether its filter may take them. What is edited, or in a tunnel, looks otherwise at each point.
    fn may_want(&self, program: &FlowProgram) -> bool {
        let is_changed = !program.edits.is_empty() || program.is_tunnelled();
        let known = if is_changed { Key::default() } else { known(&program.key) };
        self.filter.may_take(&program.key, &known)
    }
}

/// Whether frames of a flow pass a point, or may end there.
fn is_passed(point: &Point, program: &FlowProgram) -> bool {
    let through = |at| program.is_tunnelled() && program.ports().any(|port| port == at);
    match *point {
        Point::Port(at, sides) => {
            (at == program.from && sides != Sides::TX)
                || (at == program.exit && sides != Sides::RX)
                || through(at)
        }
        Point::Queue(at, queue) => (at == program.exit && queue == program.queue) || through(at),
        Point::Outside(at) => through(at),
        // What ends past the worker ends at a meter.
        Point::Drops(switch) => {
            !program.limits.is_empty() && switch.is_none_or(|switch| switch == program.from.switch)
        }
        Point::Controller(_) | Point::Passed(_) => false,
    }
}

/// What all captures want.
#[derive(Default)]
pub(super) struct AllSeen(HashMap<CaptureId, Seen>);

impl AllSeen {
    /// Whether one of them would show it frames of a flow.
    pub(super) fn shows(&self, program: &FlowProgram) -> bool {
        self.0.values().any(|seen| seen.shows(program))
    }

    /// One begins.
    pub(super) fn begins(&mut self, id: CaptureId, seen: Seen) {
        self.0.insert(id, seen);
    }

    /// One has ended.
    pub(super) fn ended(&mut self, id: CaptureId) {
        self.0.remove(&id);
    }
}
