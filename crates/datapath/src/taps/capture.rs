//! The reading end of a capture: all workers' records, in the order of time.

use super::record::Reader;
use super::share::{Chooser, Purse};
use super::{Captured, Filter, Point, Share, Tap};
use crate::counters::Count;
use crate::sys::ring::ring;
use flow::Nanos;
use std::fmt;
use std::sync::Arc;
use wire::BATCH;

/// A capture's number; none has it twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CaptureId(pub u32);

impl fmt::Display for CaptureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capture {}", self.0)
    }
}

/// What one worker counts at one point.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) matched: Count,
    pub(crate) lost: Count,
    pub(crate) over_budget: Count,
    pub(crate) not_looked: Count,
    pub(crate) spent_ns: Count,
}

/// What was counted at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// Records that there should be.
    pub matched: u64,
    /// Of those, how many found no room.
    pub lost: u64,
    /// Of those, for how many there was no time in the budget.
    pub over_budget: u64,
    /// Frames that were not even looked at, for twice the budget was spent.
    pub not_looked: u64,
    /// Workers' time that it took, in nanoseconds.
    pub spent_ns: u64,
}

impl Counted {
    /// Records that are missing.
    pub fn missing(&self) -> u64 {
        self.lost + self.over_budget
    }
}

/// What a capture is to see.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Where.
    pub points: &'a [Point],
    /// Which frames.
    pub filter: Filter,
    /// Most bytes of each that are kept.
    pub snap: usize,
    /// Bytes of each worker's ring, a power of two.
    pub ring: usize,
    /// Which part of them, and what that may cost.
    pub share: Share,
}

/// A capture under way. [`crate::Datapath::end_capture`] ends it; what was seen until then can be taken afterwards.
pub struct Capture {
    id: CaptureId,
    points: Arc<[Point]>,
    /// By worker.
    readers: Vec<Reader>,
    counts: Vec<Arc<[Counts]>>,
}

/// Makes a capture, and a tap for each of so many workers.
pub(crate) fn begin(id: CaptureId, wanted: &Wanted<'_>, workers: usize) -> (Capture, Vec<Tap>) {
    let Wanted { points, filter, snap, ring: bytes, share } = wanted;
    let (points, snap, bytes) = (*points, *snap, *bytes);
    let points: Arc<[Point]> = points.into();
    let mut capture = Capture { id, points, readers: Vec::new(), counts: Vec::new() };
    let taps = std::iter::repeat_with(|| {
        let (ring, reader) = ring(bytes);
        let points = Arc::clone(&capture.points);
        let counts: Arc<[Counts]> = points.iter().map(|_| Counts::default()).collect();
        capture.readers.push(reader);
        capture.counts.push(Arc::clone(&counts));
        let lost = vec![0; points.len()];
        let pending = Vec::with_capacity(BATCH);
        let (filter, chooser, purse) = (filter.clone(), Chooser::new(share), Purse::new(share));
        Tap { id, points, filter, chooser, purse, snap, ring, counts, lost, pending }
    });
    let taps = taps.take(workers).collect();
    (capture, taps)
}

impl Capture {
    /// Its number.
    pub fn id(&self) -> CaptureId {
        self.id
    }

    /// Its points, in the order in which records number them.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Takes up to `limit` records of before `until`, the oldest first; returns how many there were. A worker shows a record some time after it
    /// was made, at most the length of a round: what comes later than that is out of order.
    pub fn take(
        &mut self,
        until: Nanos,
        limit: usize,
        mut each: impl FnMut(Captured<'_>),
    ) -> usize {
        for reader in &mut self.readers {
            reader.look();
        }
        let mut walks: Vec<_> = self.readers.iter().map(Reader::records).collect();
        let mut taken = 0;
        while taken < limit {
            let next = walks.iter_mut().enumerate();
            let next = next.filter_map(|(worker, walk)| Some((walk.peek()?[0], worker, walk)));
            let Some((at, worker, walk)) = next.min_by_key(|&(at, ..)| at) else { break };
            if at > until.0 {
                break;
            }
            if let Some((words, bytes)) = walk.next() {
                each(Captured::read(worker, words, bytes));
                taken += 1;
            }
        }
        let positions: Vec<u64> = walks.iter().map(|walk| walk.position()).collect();
        for (reader, position) in self.readers.iter_mut().zip(positions) {
            reader.release(position);
        }
        taken
    }

    /// What was counted at a point so far.
    pub fn counted(&self, point: usize) -> Counted {
        let mut sum = Counted::default();
        for counts in &self.counts {
            // Lost first: what is lost meanwhile has matched already.
            sum.lost += counts[point].lost.get();
            sum.over_budget += counts[point].over_budget.get();
            sum.matched += counts[point].matched.get();
            sum.not_looked += counts[point].not_looked.get();
            sum.spent_ns += counts[point].spent_ns.get();
        }
        sum
    }
}
