//! A tap: what one worker does for one capture.
//!
//! A frame is wanted (filter, then choice), then afforded (the purse), then written (the ring). Each step counts what ends there: matched = taken +
//! lost + over budget.

use super::record::{Front, Writer};
use super::share::{Chooser, Purse};
use super::{CaptureId, Counts, Filter, Point};
use crate::clock::Clock;
use crate::id::PortAt;
use port::Body;
use std::sync::Arc;

/// What one worker does for one capture.
pub(crate) struct Tap {
    pub(super) id: CaptureId,
    pub(super) points: Arc<[Point]>,
    pub(super) filter: Filter,
    /// Which of those that the filter takes.
    pub(super) chooser: Chooser,
    /// What it may cost.
    pub(super) purse: Purse,
    /// Most bytes of a frame that are kept.
    pub(super) snap: usize,
    pub(super) ring: Writer,
    /// This worker's counts, by point.
    pub(super) counts: Arc<[Counts]>,
    /// Records lost at each point since its last one.
    pub(super) lost: Vec<u32>,
    /// Records of frames whose batch is on its way: it is not known yet which rung takes it.
    pub(super) pending: Vec<u64>,
}

/// The bytes of a record.
pub(super) struct Bytes<'f> {
    /// Of the frame in a tunnel's packet, which is shown outside; none of any other.
    pub(super) inside: &'f [u8],
    pub(super) head: &'f [u8],
    pub(super) body: Body<'f>,
}

impl<'f> Bytes<'f> {
    pub(super) fn of(head: &'f [u8], body: Body<'f>) -> Self {
        Self { inside: &[], head, body }
    }
}

impl Tap {
    /// Shows what was written, once all of it is known.
    pub(super) fn publish(&mut self) {
        if self.pending.is_empty() {
            self.ring.publish();
        }
    }

    /// Does what a point has to do for so many frames, and charges the time to the capture. When that has spent too much, they are not looked at.
    pub(super) fn charged(
        &mut self,
        clock: &dyn Clock,
        (point, frames): (usize, usize),
        work: impl FnOnce(&mut Self),
    ) {
        let begin = clock.now();
        self.purse.fill(begin);
        if !self.purse.may_look() {
            return self.counts[point].not_looked.add(frames as u64);
        }
        work(self);
        let spent = clock.now().since(begin);
        self.purse.spend(spent);
        self.counts[point].spent_ns.add(spent);
    }

    /// Whether a frame at this port and point is one of those that it is to show.
    pub(super) fn wants(
        &mut self,
        (at, point): (PortAt, usize),
        head: &[u8],
        body: Body<'_>,
    ) -> bool {
        self.filter.takes(at, head, body) && self.chooser.takes((at, point), head, body)
    }

    /// Counts a frame that it is to show, and says whether there is time for its record.
    pub(super) fn affords(&mut self, point: usize) -> bool {
        let counts = &self.counts[point];
        counts.matched.add(1);
        let is_afforded = self.purse.may_write();
        if !is_afforded {
            counts.over_budget.add(1);
            self.lost[point] = self.lost[point].saturating_add(1);
        }
        is_afforded
    }

    /// Shows a frame, or counts it as lost: then it says no.
    pub(super) fn put(&mut self, point: usize, front: Front, bytes: Bytes<'_>) -> bool {
        self.affords(point) && self.write(point, front, bytes)
    }

    /// Writes a record, or counts it as lost: then it says no.
    pub(super) fn write(
        &mut self,
        point: usize,
        front: Front,
        Bytes { inside, head, body }: Bytes<'_>,
    ) -> bool {
        let counts = &self.counts[point];
        let head = &head[..head.len().min(self.snap)];
        let more = body.len().min(self.snap - head.len());
        let lost = &mut self.lost[point];
        let len = inside.len() + head.len() + more;
        let Some(bytes) = self.ring.reserve(front.words(*lost), len) else {
            *lost = lost.saturating_add(1);
            counts.lost.add(1);
            return false;
        };
        let (before, bytes) = bytes.split_at_mut(inside.len());
        before.copy_from_slice(inside);
        let (first, rest) = bytes.split_at_mut(head.len());
        first.copy_from_slice(head);
        body.copy_to(0, rest);
        self.ring.commit();
        *lost = 0;
        true
    }
}
