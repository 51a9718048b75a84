//! # Taps: frames seen on their way through a worker
//!
//! **Question answered**: who looks at frames while they pass, and what does that cost those who do not?
//!
//! A *capture* wants the frames of some [`Point`]s. Each worker has a *tap* for it: the points, and the writing end of a ring of records.
//! [`Capture`] holds the reading ends of all workers' rings and brings their records into the order of time.
//!
//! | point | where it is seen | bytes |
//! |---|---|---|
//! | port, rx | behind `rx`, before the ladder | as they came |
//! | port, tx | at the call of the destination | as they leave: all edits done |
//! | vlink | where a frame enters the switch at its other end: tx of the one, rx of the other | the same for both |
//! | a tunnel's outside | before the datagram's system call, and behind it | headers that we make, and the payload as it is on the wire |
//! | controller | where a packet-in is queued, and before a packet-out's actions | as the frame is then |
//! | queue | where a frame comes to it, whether or not it has to wait, where it leaves, and where it is lost | as it leaves the port |
//! | drops | [`port::Drops::lose`] | the frame at hand; a number where nobody has it |
//!
//! | passed | a round: one frame in 32 of those that came in | the first 160; none of unread ones |
//!
//! What is lost, and one in 32 of the frames that pass, is noted besides, always, in a worker's own memory ([`Flight`]): who captures can have what was before.
//!
//! ## Invariants
//!
//! * Without a capture a batch costs one test of a byte at its ingress port, and one at each port that it leaves by.
//! * A tapped port takes no unread frames and sends none: they are received, and then seen.
//! * A full ring loses records, never frames. Each point counts: matched = taken + lost + over budget, exactly.
//! * A capture has a budget of each worker's time, which is charged to it alone (`share`). When it is spent there are no more records; when twice of it is
//!   spent, frames are not looked at, and counted.
//! * The list of taps is changed and used by its worker alone (by [`Command`](crate::command::Command)). Its lock is contended only where
//!   a thread seals a watched tunnel's packets: for the time of a record.
//! * What a guest changes while it is copied may differ in the record from what is sent: the head is private, a longer body is not.

mod capture;
mod filter;
mod flight;
mod losses;
mod point;
mod record;
mod share;
mod sieve;
mod tap;
mod timer;
mod verdict;

pub use capture::{Capture, CaptureId, Counted, Wanted};
pub use filter::Filter;
pub use point::{Point, Sides};
pub use record::{Captured, What};
pub use sieve::Sieve;
pub use timer::{Stage, Timing};
pub use verdict::{Verdict, Whither};

use crate::clock::Clock;
pub(crate) use crate::id::Side;
use crate::id::{PortAt, SwitchId};
use crate::rung::Rung;
use crate::shared::PortShared;
pub(crate) use capture::{Counts, begin};
use flight::EVERY;
pub(crate) use flight::{Flight, Noted, Passing, Passings, Turns};
use flow::{Nanos, PacketIn, PortNo, Snapshot};
use port::{Body, LossTap, RxBatch, RxQueue, Slot, TxFrame};
use record::{Front, WAY, way_with};
pub use share::{Every, Share};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tap::Bytes;
pub(crate) use tap::Tap;
pub(crate) use timer::{Spent, Timer, begin as begin_timing};
use verdict::{Verdicts, key_of};

/// Most captures at a time: each frame of a tapped port is shown to all of them.
pub(crate) const CAPTURES_MAX: usize = 8;

/// All of a worker's.
pub(crate) struct Taps {
    /// Whether there is any.
    is_on: AtomicBool,
    list: Mutex<Vec<Tap>>,
    /// Whether frames are timed, and for whom.
    is_timing: AtomicBool,
    timers: Mutex<Vec<Timer>>,
    verdicts: Mutex<Verdicts>,
    clock: Arc<dyn Clock>,
    /// Who sees losses whatever is captured.
    always: Option<Arc<dyn LossTap>>,
    /// What was lost lately.
    flight: Arc<Flight>,
}

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Taps({})", self.list().len())
    }
}

impl Taps {
    /// None; `always` sees what is lost.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        always: Option<Arc<dyn LossTap>>,
        flight: Arc<Flight>,
    ) -> Arc<Self> {
        let list = Mutex::new(Vec::with_capacity(CAPTURES_MAX));
        let timers = Mutex::new(Vec::with_capacity(CAPTURES_MAX));
        let (is_on, is_timing) = (AtomicBool::new(false), AtomicBool::new(false));
        let verdicts = Mutex::default();
        Arc::new(Self { is_on, list, is_timing, timers, verdicts, clock, always, flight })
    }

    /// Sees frames by one more.
    pub(crate) fn add(&self, tap: Tap) {
        self.list().push(tap);
        self.is_on.store(true, Relaxed);
    }

    /// Ends one, whose records are all published.
    pub(crate) fn remove(&self, id: CaptureId) -> Option<Tap> {
        let mut list = self.list();
        let place = list.iter().position(|tap| tap.id == id)?;
        let tap = list.swap_remove(place);
        self.is_on.store(!list.is_empty(), Relaxed);
        Some(tap)
    }

    /// Whether there is any.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Times frames for one more.
    pub(crate) fn add_timer(&self, timer: Timer) {
        self.timers().push(timer);
        self.is_timing.store(true, Relaxed);
    }

    /// Times them no more.
    pub(crate) fn remove_timer(&self, id: CaptureId) -> Option<Timer> {
        let mut timers = self.timers();
        let place = timers.iter().position(|timer| timer.id() == id)?;
        let timer = timers.swap_remove(place);
        self.is_timing.store(!timers.is_empty(), Relaxed);
        Some(timer)
    }

    /// Whether frames are timed.
    #[inline]
    pub(crate) fn is_timing(&self) -> bool {
        self.is_timing.load(Relaxed)
    }

    /// Looks which frames of a round are timed, that came in at a switch.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_timed<'f>(
        &self,
        switch: SwitchId,
        frames: impl Iterator<Item = (PortNo, &'f [u8], Body<'f>)> + Clone,
    ) {
        self.timers().iter_mut().for_each(|timer| timer.look(switch, frames.clone()));
    }

    /// Notes what the round took that was looked at last. `waits`: for how long each of its frames had waited for this worker.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_timed(&self, spent: Spent, waits: impl Iterator<Item = u64> + Clone) {
        self.timers().iter_mut().for_each(|timer| timer.note(spent, waits.clone()));
    }

    /// Notes how long a frame waited in a queue of a port that it has left.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_queued(&self, at: PortAt, frame: &TxFrame<'_>, ns: u64) {
        self.timers().iter().for_each(|timer| timer.queued(at, (frame.head, frame.body), ns));
    }

    fn timers(&self) -> MutexGuard<'_, Vec<Timer>> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frames that came in at a port, as they came, to go through these tables. [`Taps::decided`] says what took them.
    #[cold]
    #[inline(never)]
    pub(crate) fn received(
        &self,
        at: PortAt,
        now: Nanos,
        (batch, source): (&RxBatch, &dyn RxQueue),
        tables: Option<&Snapshot>,
    ) {
        let is_tunnel = batch.has_tunnel_ids();
        let frames = batch.frames().iter().map(|slot| {
            let frame = slot.to_send(source);
            match is_tunnel {
                true => TxFrame { tunnel_id: slot.tunnel_id, tun_dst: slot.tun_src, ..frame },
                false => frame,
            }
        });
        self.each((at, Side::Rx), now, frames, (tables, true));
    }

    /// The frames that [came in](Taps::received) last have all left, and this rung took them.
    #[cold]
    #[inline(never)]
    pub(crate) fn decided(&self, rung: Option<Rung>, wait: Nanos) {
        for tap in self.list().iter_mut() {
            for begun in tap.pending.drain(..) {
                tap.ring.amend(begun, WAY, |way| way_with(way, rung, wait));
            }
            tap.ring.publish();
        }
    }

    /// The frames of a batch that have their turn to be noted, as they came, to go through these tables. `turn` is of all that came, `unread` of which went on
    /// before the batch.
    #[inline(never)]
    pub(crate) fn begin_notes(
        (at, now): (PortAt, Nanos),
        (batch, source): (&RxBatch, &dyn RxQueue),
        (turn, unread): (usize, usize),
        tables: Option<&Snapshot>,
    ) -> Passings {
        let is_tunnel = batch.has_tunnel_ids();
        let turns = (turn..).step_by(EVERY).skip_while(|turn| *turn < unread);
        let frames = turns.map_while(|turn| batch.frames().get(turn - unread));
        let passing = |frame| Passing::of_frame((at, now), (frame, source), tables, is_tunnel);
        frames.map(passing).take(Passings::new().capacity()).collect()
    }

    /// Notes so many frames that went on unread.
    #[inline(never)]
    pub(crate) fn note_unread(&self, at: PortAt, now: Nanos, frames: usize, rung: Option<Rung>) {
        self.note(&Passing::of_unread((at, now), frames), rung, Nanos::default());
    }

    /// Notes a frame whose batch has left: this rung took it.
    #[inline(never)]
    pub(crate) fn note(&self, passing: &Passing, rung: Option<Rung>, wait: Nanos) {
        self.flight.note_passed(passing, rung, wait);
        if self.is_on() {
            self.show_passed(passing, rung, wait);
        }
    }

    #[cold]
    fn show_passed(&self, passing: &Passing, rung: Option<Rung>, wait: Nanos) {
        let (_, at) = passing.front.place();
        let (bytes, is_unread) = (passing.bytes(), passing.bytes().is_empty());
        for tap in self.list().iter_mut() {
            let point = tap.points.iter().position(|point| point.sees_passed(at));
            let Some(point) = point else { continue };
            tap.charged(&*self.clock, (point, 1), |tap| {
                let is_wanted = match is_unread {
                    true => tap.filter.takes_all(),
                    false => tap.wants((at, point), bytes, Body::default()),
                };
                let front = passing.front.at_point(point);
                if is_wanted && tap.put(point, front, Bytes::of(bytes, Body::default())) {
                    tap.ring.amend(tap.ring.begun(), WAY, |way| way_with(way, rung, wait));
                    tap.publish();
                }
            });
        }
    }

    /// Received frames that leave by a port as they lie.
    #[cold]
    #[inline(never)]
    pub(crate) fn sent_whole(
        &self,
        at: PortAt,
        now: Nanos,
        (slots, source): (&[Slot], &dyn RxQueue),
    ) {
        let frames = slots.iter().map(|slot| slot.to_send(source));
        self.each((at, Side::Tx), now, frames, (None, false));
    }

    /// Frames that a port is about to send.
    #[cold]
    #[inline(never)]
    pub(crate) fn sent(&self, at: PortAt, now: Nanos, frames: &[TxFrame<'_>]) {
        self.each((at, Side::Tx), now, frames.iter().copied(), (None, false));
    }

    /// Frames that come to a port's queue ([`Side::Rx`]) or leave it ([`Side::Tx`]).
    #[cold]
    #[inline(never)]
    pub(crate) fn queued(
        &self,
        (at, queue): (PortAt, u32),
        side: Side,
        now: Nanos,
        frames: &[TxFrame<'_>],
    ) {
        let sees = |point: &Point| point.sees_queue(at, queue);
        self.show(sees, (at, side), now, frames.iter().copied(), (None, false));
    }

    /// A frame that crossed a vlink: it left by the one end and comes in by the other.
    #[cold]
    #[inline(never)]
    pub(crate) fn crossed(
        &self,
        (left, came): (Option<&PortShared>, &PortShared),
        now: Nanos,
        frame: TxFrame<'_>,
        tables: Option<&Snapshot>,
    ) {
        for (end, side) in [(left, Side::Tx), (Some(came), Side::Rx)] {
            if let Some(end) = end.filter(|end| end.is_tapped(side)) {
                let tables = tables.filter(|_| side == Side::Rx);
                self.each((end.at, side), now, std::iter::once(frame), (tables, false));
            }
        }
    }

    /// A packet-in: a frame that came in there, as it is now, and what sends it.
    #[cold]
    #[inline(never)]
    pub(crate) fn packet_in(&self, at: PortAt, now: Nanos, frame: &TxFrame<'_>, why: &PacketIn) {
        let verdict =
            Verdict { table: why.table, cookie: Some(why.cookie), to: Whither::Controller };
        self.controller((at, Side::Tx), now, frame, Some(verdict));
    }

    /// A packet-out, which counts as come in there.
    #[cold]
    #[inline(never)]
    pub(crate) fn packet_out(&self, at: PortAt, now: Nanos, frame: &TxFrame<'_>) {
        self.controller((at, Side::Rx), now, frame, None);
    }

    fn controller(
        &self,
        (at, side): (PortAt, Side),
        now: Nanos,
        frame: &TxFrame<'_>,
        verdict: Option<Verdict>,
    ) {
        for tap in self.list().iter_mut() {
            let sees = |point: &Point| point.sees_controller(at.switch);
            let Some(point) = tap.points.iter().position(sees) else { continue };
            tap.charged(&*self.clock, (point, 1), |tap| {
                if tap.wants((at, point), frame.head, frame.body) {
                    let front = Front::of_frame((point, at), side, now, frame).with(verdict);
                    tap.put(point, front, Bytes::of(frame.head, frame.body));
                    tap.publish();
                }
            });
        }
    }

    /// Frames that pass a port: those that come in go through `tables`, and may be on their way still.
    fn each<'f>(
        &self,
        (at, side): (PortAt, Side),
        now: Nanos,
        frames: impl Iterator<Item = TxFrame<'f>> + Clone,
        tables: (Option<&Snapshot>, bool),
    ) {
        self.show(|point| point.sees(at, side), (at, side), now, frames, tables);
    }

    /// Frames, at the first point of each capture that sees them.
    fn show<'f>(
        &self,
        sees: impl Fn(&Point) -> bool,
        (at, side): (PortAt, Side),
        now: Nanos,
        frames: impl Iterator<Item = TxFrame<'f>> + Clone,
        (tables, are_pending): (Option<&Snapshot>, bool),
    ) {
        for tap in self.list().iter_mut() {
            let Some(point) = tap.points.iter().position(&sees) else { continue };
            let (frames, (count, _)) = (frames.clone(), frames.size_hint());
            tap.charged(&*self.clock, (point, count), |tap| {
                for frame in frames {
                    if !tap.wants((at, point), frame.head, frame.body) || !tap.affords(point) {
                        continue;
                    }
                    let verdict = tables.and_then(|tables| self.verdict(tables, at, now, &frame));
                    let front = Front::of_frame((point, at), side, now, &frame).with(verdict);
                    let is_there = tap.write(point, front, Bytes::of(frame.head, frame.body));
                    if is_there && are_pending {
                        tap.pending.push(tap.ring.begun());
                    }
                }
                tap.publish();
            });
        }
    }

    /// What rules do with a frame.
    fn verdict(
        &self,
        tables: &Snapshot,
        at: PortAt,
        now: Nanos,
        frame: &TxFrame<'_>,
    ) -> Option<Verdict> {
        let key = key_of(at, frame.head, (frame.tunnel_id, frame.tun_dst));
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.of(tables, at, now, &key)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Tap>> {
        // A panic in the midst of a record leaves it unfinished and unseen.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
