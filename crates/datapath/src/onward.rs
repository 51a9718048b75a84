//! Frames that have crossed as many vlinks as a pass allows ([`HOPS`](crate::crossing::HOPS)): they go on in a later pass of the worker.
//!
//! So a path may have any number of switches up to [`PASSES`] times the bound of a pass, and a loop of switches costs its owner time and
//! nobody's frames: between two passes all other sources have their round.
//!
//! ## Invariants
//!
//! * **Bounds**: a lane holds [`LANE_FRAMES`] frames and [`LANE_BYTES`]; what comes beyond is dropped (`queue_full`). After [`PASSES`]
//!   passes a frame is dropped (`vlink_loop`).
//! * **Fair**: frames that came in at different ports wait in different lanes, as far as there are lanes (McKenney's stochastic fair queueing, 1990), and
//!   lanes take turns. A storm fills its own.
//! * **Order**: frames of one ingress port leave in the order in which they came.
//! * Memory is taken when frames wait, and kept for the next ones.

use crate::id::{PortAt, PortIx, SwitchIx};
use port::Body;
use std::collections::VecDeque;
use wire::{BATCH, Offload};

/// Most passes of one frame: 1024 vlinks in a row. Chosen: three times the longest path that anybody has asked for.
pub(crate) const PASSES: u8 = 64;

/// Chosen: tenants of a host that have paths of more than 16 switches, with room.
const LANES: usize = 64;
/// Frames of a lane. Chosen: two batches.
const LANE_FRAMES: usize = 2 * BATCH;
/// Bytes of a lane: four of the largest frames.
const LANE_BYTES: usize = 256 << 10;
/// Buffers larger than this are not kept. Chosen: an Ethernet frame of any MTU that cards have.
const KEPT: usize = 10 << 10;

/// A frame's past: what a pass says of frames that wait after it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Past {
    /// Where it came in.
    pub(crate) switch: SwitchIx,
    /// Of the port that it came in by.
    pub(crate) lane: u8,
    /// Passes behind it.
    pub(crate) passes: u8,
}

impl Past {
    /// Of a frame that came in here.
    pub(crate) fn at(switch: SwitchIx, port: u32) -> Self {
        // Fibonacci hashing: neighbours in number are not neighbours in lane.
        let mixed = (switch.0 ^ port.rotate_left(16)).wrapping_mul(0x9e37_79b9);
        Self { switch, lane: (mixed >> 26) as u8 % LANES as u8, passes: 0 }
    }
}

/// Where a frame goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The switch that it enters.
    pub(crate) switch: SwitchIx,
    /// By this port.
    pub(crate) into: PortIx,
    /// Which may be another one's place by then.
    pub(crate) at: PortAt,
}

/// A frame that waits.
pub(crate) struct Waiting {
    pub(crate) place: Place,
    pub(crate) past: Past,
    pub(crate) offload: Offload,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Default)]
struct Lane {
    frames: VecDeque<Waiting>,
    bytes: usize,
}

/// All that wait at one worker.
pub(crate) struct Onward {
    lanes: Box<[Lane]>,
    waiting: usize,
    /// Whose turn it is.
    turn: usize,
    free: Vec<Vec<u8>>,
}

impl Default for Onward {
    fn default() -> Self {
        let lanes = std::iter::repeat_with(Lane::default).take(LANES).collect();
        Self { lanes, waiting: 0, turn: 0, free: Vec::new() }
    }
}

impl Onward {
    /// Whether none waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Lets a frame wait, whose past is up to this pass; false: its lane is full.
    pub(crate) fn push(
        &mut self,
        place: Place,
        past: Past,
        (head, body, offload): (&[u8], Body<'_>, &Offload),
    ) -> bool {
        let lane = &mut self.lanes[usize::from(past.lane)];
        let len = head.len() + body.len();
        if lane.frames.len() >= LANE_FRAMES || lane.bytes + len > LANE_BYTES {
            return false;
        }
        let mut bytes = self.free.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(head);
        bytes.resize(len, 0);
        body.copy_to(0, &mut bytes[head.len()..]);
        let past = Past { passes: past.passes + 1, ..past };
        lane.frames.push_back(Waiting { place, past, offload: *offload, bytes });
        lane.bytes += len;
        self.waiting += 1;
        true
    }

    /// Takes up to `most` frames out that enter one switch by one port: the first ones of the lane whose turn it is.
    pub(crate) fn take(&mut self, most: usize, taken: &mut Vec<Waiting>) {
        let turns = (0..LANES).map(|step| (self.turn + step) % LANES);
        let Some(at) = turns.into_iter().find(|&at| !self.lanes[at].frames.is_empty()) else {
            return;
        };
        self.turn = at + 1;
        let Lane { frames, bytes } = &mut self.lanes[at];
        let first = frames.front().map(|waiting| waiting.place);
        while taken.len() < most && frames.front().map(|waiting| waiting.place) == first {
            let Some(waiting) = frames.pop_front() else { break };
            *bytes -= waiting.bytes.len();
            self.waiting -= 1;
            taken.push(waiting);
        }
    }

    /// Takes memory back.
    pub(crate) fn recycle(&mut self, taken: &mut Vec<Waiting>) {
        let kept =
            taken.drain(..).map(|waiting| waiting.bytes).filter(|bytes| bytes.capacity() <= KEPT);
        self.free.extend(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::SwitchId;
    use proptest::prelude::*;

    fn place(switch: u32) -> Place {
        let at = PortAt { switch: SwitchId(switch), port: 1 };
        Place { switch: SwitchIx(switch), into: PortIx(switch), at }
    }

    fn push(onward: &mut Onward, lane: u8, switch: u32, frame: &[u8]) -> bool {
        let (head, body) = frame.split_at(frame.len() / 2);
        let past = Past { lane, ..Past::default() };
        onward.push(place(switch), past, (head, Body::private(body), &Offload::default()))
    }

    #[test]
    fn a_storm_fills_its_own_lane_and_lanes_take_turns() {
        let mut onward = Onward::default();
        let stormy = (0..1000).filter(|_| push(&mut onward, 3, 7, &[1; 100])).count();
        assert_eq!(stormy, LANE_FRAMES);
        assert!(push(&mut onward, 4, 8, &[2; 100]));
        let mut seen = Vec::new();
        let mut taken = Vec::new();
        while !onward.is_empty() {
            onward.take(BATCH, &mut taken);
            seen.push((taken[0].place.switch.0, taken.len()));
            onward.recycle(&mut taken);
        }
        assert_eq!(seen, [(7, BATCH), (8, 1), (7, BATCH)]);
    }

    #[test]
    fn large_frames_fill_a_lane_by_their_bytes() {
        let mut onward = Onward::default();
        let large = vec![0; 65_000];
        assert_eq!((0..10).filter(|_| push(&mut onward, 0, 1, &large)).count(), 4);
        let mut taken = Vec::new();
        onward.take(BATCH, &mut taken);
        onward.recycle(&mut taken);
        assert!(onward.free.is_empty(), "their memory is not kept");
    }

    proptest! {
        /// Against one queue for each lane.
        #[test]
        fn frames_of_a_lane_leave_whole_and_in_order(
            frames in prop::collection::vec((0..4u8, 0..3u32, 0..300usize), 0..200), most in 1..40usize,
        ) {
            let (mut onward, mut kept) = (Onward::default(), vec![Vec::new(); 4]);
            for (index, (lane, switch, len)) in frames.into_iter().enumerate() {
                let frame = vec![index as u8; len];
                if push(&mut onward, lane, switch, &frame) {
                    kept[usize::from(lane)].push((switch, frame));
                }
            }
            let (mut out, mut taken) = (vec![Vec::new(); 4], Vec::new());
            while !onward.is_empty() {
                onward.take(most, &mut taken);
                prop_assert!(!taken.is_empty() && taken.len() <= most);
                prop_assert!(taken.iter().all(|one| one.place == taken[0].place && one.past.passes == 1));
                for one in &taken {
                    out[usize::from(one.past.lane)].push((one.place.switch.0, one.bytes.clone()));
                }
                onward.recycle(&mut taken);
            }
            prop_assert_eq!(out, kept);
        }
    }
}
