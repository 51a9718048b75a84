//! # A port's queues: rates that are kept (OpenFlow 1.3.5 §5.12 `set_queue`, §7.2.2)
//!
//! **Question answered**: which frame leaves next by a port with queues, when, and which one is too much?
//!
//! A port with queues (or a rate) has a [`Shaper`] at every worker: for each queue a [`Ring`] of frames that wait, and its credit of the
//! rates. What workers share of a queue is two [`bucket::Timeline`]s and the counters ([`QueueShared`]). A port without any has no shaper, and
//! pays one predictable branch.
//!
//! ## The rule
//!
//! 1. A queue with a `max` sends nothing while its credit of `max` is used up.
//! 2. A queue whose credit of `min` is open sends before all others, whatever the port's credit says; what it sends is charged to the port.
//!    The guarantees fit into the port's rate ([`api::PortQueues::check`]), so that debt stays below what all of them save up in [`bucket::DEPTH`].
//! 3. What the port has left is shared equally by all queues that want more, queue 0 like any other: start-time fair queueing (Goyal, Vin,
//!    Cheng 1996) within a worker, so two queues that wait differ by at most one frame of each; among workers, first come, first served.
//!
//! Queue 0 is where packets go for which no queue was chosen, or one that the port does not have; it is there whether or not it was configured.
//!
//! ## Invariants
//!
//! * **Order**: a frame never passes an earlier one of its queue at the same worker, and a flow is one worker's.
//! * **Bounds**: a queue holds at one worker at most 1024 frames and [`BACKLOG_MS`] worth of its rate, from 128 KiB to 1 MiB. What comes
//!   beyond is dropped (`queue_full`). All memory is allocated when the queue is configured.
//! * **Nothing is lost below the rate**: a full queue is served before a frame is dropped.
//! * **Real bytes**: a large (GSO) frame costs what its segments have on the wire, headers included; no frame counts its FCS.
//! * **Wake-ups**: a worker with frames that wait comes back in time (module `backlog`), and at most every [`PAUSE`]; one without is not woken.

mod bucket;
mod counters;
mod depart;
mod ring;
mod shared;

#[cfg(test)]
mod past_tests;
#[cfg(test)]
mod tests;

pub use counters::QueueCounters;
pub(crate) use depart::{Departure, Sending, depart, dissolve};
pub(crate) use shared::{PortQueuesShared, QueueShared};

use api::BitRate;
use bucket::Credit;
use flow::Nanos;
use port::{Drops, TxFrame};
use ring::{Ring, Stored};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::{DropReason, Gso, Head, segment};

/// What a queue may hold, in time at its rate. Chosen: as long as a TCP sender across a continent needs to notice; more only adds delay.
const BACKLOG_MS: u64 = 50;

/// Bytes that a queue may hold. At least one 64 KiB segment and as much again; at most what 64 queues on many ports can have.
const RING_BYTES: Range<u64> = 128 << 10..1 << 20;

/// A worker looks at a backlog at most this often: at 10 Gbit/s that is a batch of 80 full frames a time, and far below what a rate can save
/// up ([`bucket::DEPTH`]).
const PAUSE: u64 = 100_000;

/// A queue at one worker.
struct Lane {
    id: u32,
    shared: Arc<QueueShared>,
    ring: Ring,
    max: Option<Credit>,
    min: Option<Credit>,
    /// Virtual time at which its last frame of the port's rest ended.
    finish: u64,
}

impl Lane {
    fn may_send(&mut self, now: Nanos) -> bool {
        self.max.as_mut().is_none_or(|credit| credit.is_open(&self.shared.max, now))
    }

    fn is_guaranteed(&mut self, now: Nanos) -> bool {
        self.min.as_mut().is_some_and(|credit| credit.is_open(&self.shared.min, now))
    }

    /// Lets a frame wait; false when there is no room for it.
    fn push(&mut self, frame: &TxFrame<'_>, wire_len: u32, since: Nanos, worker: usize) -> bool {
        let fits = self.ring.push(frame, wire_len, since);
        if fits {
            self.shared.counters[worker].waiting.add(1);
        }
        fits
    }

    fn pop(&mut self, worker: usize) -> Option<Stored> {
        let stored = self.ring.pop()?;
        self.shared.counters[worker].waiting.sub(1);
        Some(stored)
    }
}

/// Whose bytes a departure takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Share {
    /// The queue's own.
    Guaranteed,
    /// The port's rest.
    Rest,
}

/// What becomes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// It leaves at once.
    Go,
    /// It waits.
    Held,
    /// There is no room for it.
    Full,
}

/// A port's queues at one worker.
pub(crate) struct Shaper {
    /// By number; the first is queue 0.
    lanes: Box<[Lane]>,
    worker: usize,
    port: Option<Credit>,
    shared: Arc<PortQueuesShared>,
    /// Frames that wait.
    waiting: usize,
    /// Start of the frame of the port's rest that left last.
    virtual_time: u64,
    /// When to look again at what waits.
    pub(crate) wake: Nanos,
    /// Whether the worker's backlog names this port.
    pub(crate) listed: bool,
    /// Taken out and not yet known to have left.
    in_flight: u64,
}

impl Shaper {
    /// Allocates the rings of a worker.
    pub(crate) fn new(shared: &Arc<PortQueuesShared>, worker: usize) -> Self {
        let rate = shared.rate;
        let lane = |queue: &Arc<QueueShared>| Lane {
            id: queue.id,
            ring: Ring::new(ring_bytes(queue.rates.max.into_iter().chain(rate).min())),
            max: queue.rates.max.map(Credit::new),
            min: queue.rates.min.map(Credit::new),
            finish: 0,
            shared: Arc::clone(queue),
        };
        Self {
            lanes: shared.queues.iter().map(lane).collect(),
            worker,
            port: rate.map(Credit::new),
            shared: Arc::clone(shared),
            waiting: 0,
            virtual_time: 0,
            wake: Nanos(0),
            listed: false,
            in_flight: 0,
        }
    }

    /// The lane of a queue; queue 0's if the port has none of that number.
    #[inline]
    pub(crate) fn lane(&self, queue: u32) -> u8 {
        self.lanes.binary_search_by_key(&queue, |lane| lane.id).unwrap_or(0) as u8
    }

    /// The queue's shared side.
    pub(crate) fn queue(&self, lane: u8) -> &QueueShared {
        &self.lanes[usize::from(lane)].shared
    }

    /// Whether any frame waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    /// Takes in a frame, which puts `wire_len` bytes on the wire. It is copied only if it has to wait.
    pub(crate) fn admit(
        &mut self,
        lane: u8,
        frame: &TxFrame<'_>,
        wire_len: u32,
        now: Nanos,
    ) -> Admission {
        let at = usize::from(lane);
        if self.waiting == 0
            && let Some(share) = self.share_of(at, now)
        {
            self.charge(at, share, wire_len, now);
            return Admission::Go;
        }
        if !self.lanes[at].push(frame, wire_len, now, self.worker) {
            return Admission::Full;
        }
        self.hold();
        Admission::Held
    }

    /// The lane whose frame leaves next, if one may leave now.
    fn next(&mut self, now: Nanos) -> Option<(usize, Share)> {
        let mut best: Option<(Share, u64, usize)> = None;
        for at in 0..self.lanes.len() {
            if self.lanes[at].ring.is_empty() {
                continue;
            }
            let Some(share) = self.share_of(at, now) else { continue };
            let candidate = (share, self.lanes[at].finish.max(self.virtual_time), at);
            if best.is_none_or(|best| candidate < best) {
                best = Some(candidate);
            }
        }
        best.map(|(share, _, at)| (at, share))
    }

    /// By which right a lane may send now.
    fn share_of(&mut self, at: usize, now: Nanos) -> Option<Share> {
        let lane = &mut self.lanes[at];
        if !lane.may_send(now) {
            return None;
        }
        if lane.is_guaranteed(now) {
            return Some(Share::Guaranteed);
        }
        let open =
            self.port.as_mut().is_none_or(|credit| credit.is_open(&self.shared.timeline, now));
        open.then_some(Share::Rest)
    }

    fn charge(&mut self, at: usize, share: Share, wire_len: u32, now: Nanos) {
        let (lane, bytes) = (&mut self.lanes[at], u64::from(wire_len));
        if let Some(credit) = &mut lane.max {
            credit.spend(bytes, &lane.shared.max, now);
        }
        if let Some(credit) = &mut self.port {
            credit.spend(bytes, &self.shared.timeline, now);
        }
        match (share, &mut lane.min) {
            (Share::Guaranteed, Some(credit)) => credit.spend(bytes, &lane.shared.min, now),
            _ => {
                self.virtual_time = lane.finish.max(self.virtual_time);
                lane.finish = self.virtual_time + bytes;
            }
        }
    }

    /// Takes the next frame out that may leave now: its lane, and where its bytes lie until the next admission.
    fn pop(&mut self, now: Nanos) -> Option<(u8, Stored)> {
        let (at, share) = self.next(now)?;
        let stored = self.lanes[at].pop(self.worker)?;
        self.let_go(1);
        self.in_flight += 1;
        self.charge(at, share, stored.wire_len, now);
        Some((at as u8, stored))
    }

    /// So many of those taken out were handed over.
    fn arrived(&mut self, frames: usize) {
        self.in_flight -= frames as u64;
    }

    /// Takes out a frame whether or not it may leave.
    fn pop_any(&mut self) -> Option<(u8, Stored)> {
        let at = self.lanes.iter().position(|lane| !lane.ring.is_empty())?;
        let stored = self.lanes[at].pop(self.worker)?;
        self.let_go(1);
        Some((at as u8, stored))
    }

    fn hold(&mut self) {
        self.waiting += 1;
        self.shared.held.fetch_add(1, Relaxed);
    }

    fn let_go(&mut self, frames: usize) {
        self.waiting -= frames;
        self.shared.held.fetch_sub(frames as u64, Relaxed);
    }

    fn frame(&self, lane: u8, stored: &Stored) -> TxFrame<'_> {
        self.lanes[usize::from(lane)].ring.frame(stored)
    }

    /// When to come back, after [`Shaper::pop`] had nothing that may leave.
    fn next_look(&self, now: Nanos) -> Nanos {
        let rest =
            self.port.as_ref().map_or(now, |credit| credit.ready(&self.shared.timeline, now));
        let ready = |lane: &Lane| {
            let own = lane.min.as_ref().map(|credit| credit.ready(&lane.shared.min, now));
            let allowed =
                lane.max.as_ref().map_or(now, |credit| credit.ready(&lane.shared.max, now));
            own.map_or(rest, |own| own.min(rest)).max(allowed)
        };
        let first = self.lanes.iter().filter(|lane| !lane.ring.is_empty()).map(ready).min();
        first.unwrap_or(now).max(Nanos(now.0 + PAUSE))
    }

    /// Takes over what waits in the shaper that this one follows, queue by queue; loses frames that find no room.
    pub(crate) fn inherit(&mut self, before: &mut Shaper, drops: &mut Drops) {
        while let Some((from, stored)) = before.pop_any() {
            let lane = self.lane(before.lanes[usize::from(from)].id);
            let into = &mut self.lanes[usize::from(lane)];
            let frame = before.frame(from, &stored);
            if into.push(&frame, stored.wire_len, stored.since, self.worker) {
                self.hold();
            } else {
                into.shared.counters[self.worker].errors.add(1);
                drops.lose(DropReason::QueueFull, &frame);
            }
        }
    }

    /// Frames that a panic caught on their way out.
    pub(crate) fn take_in_flight(&mut self) -> u64 {
        std::mem::take(&mut self.in_flight)
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        self.let_go(self.waiting);
    }
}

fn ring_bytes(rate: Option<BitRate>) -> usize {
    let wanted = rate.map_or(RING_BYTES.end, |rate| rate.get() / 8 / 1000 * BACKLOG_MS);
    wanted.clamp(RING_BYTES.start, RING_BYTES.end) as usize
}

/// Bytes that a frame puts on the wire: a large one repeats its headers with every segment.
#[inline]
pub(crate) fn wire_len(head: &Head, frame: &TxFrame<'_>) -> u32 {
    let len = frame.len() as u32;
    match frame.offload.gso {
        Gso::None => len,
        _ => segment::plan(head.bytes(), frame.len(), &frame.offload)
            .map_or(len, |cut| len + (cut.count() as u32 - 1) * cut.header_len() as u32),
    }
}
