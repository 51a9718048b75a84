//! Captures into service and out of it.

use super::registry::{PortEntry, Registry};
use super::{Command, Datapath, Handle};
use crate::id::{PortAt, SwitchId};
use crate::taps::{
    CAPTURES_MAX, Capture, CaptureId, Captured, Filter, Noted, Point, Side, Timing, Wanted, begin,
    begin_timing,
};
use flow::{Nanos, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Why a capture did not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CaptureError {
    /// As many run as may.
    #[error("{CAPTURES_MAX} captures run already")]
    TooMany,
    /// The same, of timings.
    #[error("frames are timed for {CAPTURES_MAX} already")]
    TooManyTimings,
}

impl Datapath {
    /// Sees frames from now on.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn capture(&self, wanted: &Wanted<'_>) -> Result<Capture, CaptureError> {
        let mut registry = self.registry();
        if registry.captures.len() >= CAPTURES_MAX {
            return Err(CaptureError::TooMany);
        }
        registry.last_capture += 1;
        let id = CaptureId(registry.last_capture);
        let (capture, taps) = begin(id, wanted, self.workers.len());
        registry.captures.push((id, wanted.points.into()));
        let mut taps = taps.into_iter();
        self.ask_all(|_, reply| {
            let tap = taps.next().expect("there is a tap for every worker");
            Command::Tap { tap: Box::new(tap), reply }
        });
        registry.show_taps();
        Ok(capture)
    }

    /// What was lost and the sample of what passed from a moment on, of that which a capture would see, in the order of time: as much as workers remember of
    /// it. `each` hears the numbers of the points as a capture's records have them.
    pub fn flight(&self, wanted: &Wanted<'_>, since: Nanos, mut each: impl FnMut(Captured<'_>)) {
        let of = |(number, handle): (usize, &Handle)| handle.mailbox.flight.since(number, since);
        let mut noted: Vec<Noted> = self.workers.iter().enumerate().flat_map(of).collect();
        noted.sort_by_key(|noted| noted.seen().at);
        let (mut tables, now) = (BTreeMap::new(), self.started.now());
        for noted in &noted {
            let seen = noted.seen();
            let point = wanted.points.iter().position(|point| point.sees_noted(&seen));
            if let Some(point) = point.filter(|_| wanted.filter.takes_noted(&seen)) {
                let switch = seen.port.switch;
                let tables = tables.entry(switch).or_insert_with(|| self.tables(switch));
                let then = tables.as_ref().and_then(|tables| noted.verdict(tables, now));
                each(Captured { point, verdict: then, ..seen });
            }
        }
    }

    /// The sample of what passed a worker from a moment on, the oldest first, without what rules did with it.
    pub fn passed(&self, worker: usize, since: Nanos, mut each: impl FnMut(Captured<'_>)) {
        let flight = &self.workers[worker].mailbox.flight;
        flight.passed_since(worker, since).iter().for_each(|noted| each(noted.seen()));
    }

    /// A switch's tables now, if it is in service.
    fn tables(&self, switch: SwitchId) -> Option<Arc<Snapshot>> {
        let registry = self.registry();
        registry.switches.get(&switch).map(|entry| entry.shared.tables.load_full())
    }

    /// Sees frames for a capture no more. What was seen can be taken still.
    pub fn end_capture(&self, capture: &Capture) {
        let mut registry = self.registry();
        registry.captures.retain(|&(id, _)| id != capture.id());
        registry.show_taps();
        self.ask_all(|_, reply| Command::Untap { id: capture.id(), reply });
    }
}

impl Datapath {
    /// Times frames from now on that come in at a switch's own ports.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn time(&self, switch: SwitchId, filter: &Filter) -> Result<Timing, CaptureError> {
        let mut registry = self.registry();
        if registry.timings.len() >= CAPTURES_MAX {
            return Err(CaptureError::TooManyTimings);
        }
        registry.last_capture += 1;
        let id = CaptureId(registry.last_capture);
        let (timing, timers) = begin_timing(id, (switch, filter), self.workers.len());
        registry.timings.push((id, switch));
        let mut timers = timers.into_iter();
        self.ask_all(|_, reply| {
            let timer = timers.next().expect("there is a timer for every worker");
            Command::Time { timer: Box::new(timer), reply }
        });
        registry.show_taps();
        Ok(timing)
    }

    /// Times frames no more. What was noted can be read still.
    pub fn end_timing(&self, timing: &Timing) {
        let mut registry = self.registry();
        registry.timings.retain(|&(id, _)| id != timing.id());
        registry.show_taps();
        self.ask_all(|_, reply| Command::Untime { id: timing.id(), reply });
    }
}

/// A capture under way: its number and points.
pub(super) type Running = (CaptureId, Arc<[Point]>);

impl Registry {
    /// Tells each port on which sides it is seen.
    fn show_taps(&self) {
        self.ports.iter().for_each(|(&at, entry)| self.show_tap(at, entry));
    }

    /// Tells a port on which sides it is seen.
    pub(super) fn show_tap(&self, at: PortAt, entry: &PortEntry) {
        let points = self.captures.iter().flat_map(|(_, points)| points.iter());
        let sides = points.fold(0, |sides, point| sides | point.sides_of(at));
        let is_timed = self.timings.iter().any(|&(_, switch)| switch == at.switch);
        let timed = if is_timed { Side::Timed as u8 } else { 0 };
        entry.shared.tapped.store(sides | timed, Relaxed);
    }
}
