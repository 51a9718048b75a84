//! What is under way between a tunnel's port and the switch of its underlay.
//!
//! A flow that leaves or comes by a tunnel is handed from one switch to the other in the worker's memory, by lanes. Nothing of it is under way
//! there when every frame that had entered a lane has left it, and been sent.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lanes, and how many frames went through each.
pub struct Passage(Box<[Lane]>);

#[derive(Default)]
struct Lane {
    entered: AtomicU64,
    left: AtomicU64,
}

impl Passage {
    /// Of so many lanes, empty.
    pub fn new(lanes: usize) -> Self {
        Self((0..lanes).map(|_| Lane::default()).collect())
    }

    /// A frame is about to enter a lane.
    pub fn enter(&self, lane: usize) {
        self.0[lane].entered.fetch_add(1, Ordering::AcqRel);
    }

    /// Frames were sent or dropped behind a lane, or found no room in it.
    pub fn leave(&self, lane: usize, frames: u64) {
        self.0[lane].left.fetch_add(frames, Ordering::AcqRel);
    }

    /// How many frames entered each lane so far.
    pub(super) fn entered(&self) -> Vec<u64> {
        self.0.iter().map(|lane| lane.entered.load(Ordering::Acquire)).collect()
    }

    /// Whether all of those have left.
    pub(super) fn has_let_through(&self, entered: &[u64]) -> bool {
        let left = self.0.iter().map(|lane| lane.left.load(Ordering::Acquire));
        left.zip(entered).all(|(left, &entered)| left >= entered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_through_when_each_lane_let_through_what_had_entered() {
        let passage = Passage::new(2);
        passage.enter(0);
        passage.enter(1);
        let mark = passage.entered();
        passage.enter(1);
        passage.leave(1, 1);
        assert!(!passage.has_let_through(&mark));
        passage.leave(0, 1);
        assert!(passage.has_let_through(&mark) && !passage.has_let_through(&passage.entered()));
    }
}
