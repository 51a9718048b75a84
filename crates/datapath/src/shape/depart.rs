//! Departures: what waits in a port's queues leaves when it may.

use super::ring::Stored;
use super::{QueueShared, Shaper};
use crate::counters::Histogram;
use crate::id::PortIx;
use crate::shared::PortShared;
use crate::taps::{Side, Taps};
use crate::touch::{Touch, Touching};
use arrayvec::ArrayVec;
use flow::Nanos;
use port::{Drops, TxFrame, TxQueue};
use wire::DropReason;

/// Frames in one call of a destination.
const RUN: usize = wire::BATCH;

/// Frames of one port that leave before the worker goes on with its other ports: some tens of microseconds of copying.
const TURN: usize = 16 * RUN;

/// What is at hand when frames leave.
pub(crate) struct Sending<'a> {
    pub(crate) worker: usize,
    pub(crate) now: Nanos,
    pub(crate) drops: &'a mut Drops,
    pub(crate) touching: &'a Touching,
    pub(crate) taps: &'a Taps,
    /// How long frames wait, at this worker.
    pub(crate) queued: &'a Histogram,
}

/// A port with queues while frames leave by it.
pub(crate) struct Departure<'a> {
    pub(crate) ix: PortIx,
    pub(crate) shared: &'a PortShared,
    pub(crate) queue: &'a mut dyn TxQueue,
    /// Why nothing may leave, if so.
    pub(crate) shut: Option<DropReason>,
}

impl Departure<'_> {
    /// Hands frames of one queue to the destination, and counts them.
    pub(crate) fn send(
        &mut self,
        queue: &QueueShared,
        frames: &[TxFrame<'_>],
        cx: &mut Sending<'_>,
    ) {
        if frames.is_empty() {
            return;
        }
        if self.shared.is_tapped(Side::Tx) {
            cx.taps.sent(self.shared.at, cx.now, frames);
        }
        self.show(queue, Side::Tx, frames, cx);
        let before = cx.touching.replace(Touch::Tx(self.ix));
        let sent = self.queue.tx(frames, self.shared.at(cx.drops));
        cx.touching.set(before);
        let counters = &self.shared.counters[cx.worker];
        counters.tx.add(sent);
        counters.tx_drops.take(cx.drops);
        queue.counters[cx.worker].count(frames.len() as u64, sent);
    }

    /// Shows frames that come to the queue, or leave it, to captures that look there.
    #[inline]
    pub(crate) fn show(
        &self,
        queue: &QueueShared,
        side: Side,
        frames: &[TxFrame<'_>],
        cx: &Sending<'_>,
    ) {
        if self.shared.is_tapped(Side::Queue) {
            cx.taps.queued((self.shared.at, queue.id), side, cx.now, frames);
        }
    }

    /// Ends a frame of the queue that does not leave.
    #[cold]
    pub(crate) fn lose(
        &self,
        queue: &QueueShared,
        reason: DropReason,
        frame: &TxFrame<'_>,
        cx: &mut Sending<'_>,
    ) {
        cx.drops.at(self.shared.at).lose(reason, frame);
        if self.shared.is_tapped(Side::Queue) {
            cx.taps.queue_lost((self.shared.at, queue.id), reason, frame);
        }
        self.shared.counters[cx.worker].tx_drops.take(cx.drops);
        queue.counters[cx.worker].errors.add(1);
    }
}

/// Sends what may leave now, [`TURN`] frames at most, and notes when to look again.
pub(crate) fn depart(shaper: &mut Shaper, departure: &mut Departure<'_>, cx: &mut Sending<'_>) {
    if let Some(reason) = departure.shut {
        while let Some((lane, stored)) = shaper.pop_any() {
            departure.lose(shaper.queue(lane), reason, &shaper.frame(lane, &stored), cx);
        }
        return;
    }
    let mut budget = TURN;
    let mut next = pop(shaper, &mut budget, cx.now);
    while let Some((lane, first)) = next {
        let mut run = ArrayVec::<Stored, RUN>::new();
        run.push(first);
        next = None;
        while next.is_none() && !run.is_full() {
            match pop(shaper, &mut budget, cx.now) {
                Some((same, stored)) if same == lane => run.push(stored),
                Some(other) => next = Some(other),
                None => break,
            }
        }
        send_run(shaper, lane, &run, departure, cx);
        next = next.or_else(|| pop(shaper, &mut budget, cx.now));
    }
    shaper.wake = if budget == 0 { cx.now } else { shaper.next_look(cx.now) };
}

fn pop(shaper: &mut Shaper, budget: &mut usize, now: Nanos) -> Option<(u8, Stored)> {
    *budget = budget.checked_sub(1)?;
    shaper.pop(now)
}

fn send_run(
    shaper: &mut Shaper,
    lane: u8,
    run: &ArrayVec<Stored, RUN>,
    departure: &mut Departure<'_>,
    cx: &mut Sending<'_>,
) {
    let frames: ArrayVec<TxFrame<'_>, RUN> =
        run.iter().map(|stored| shaper.frame(lane, stored)).collect();
    departure.send(shaper.queue(lane), &frames, cx);
    if cx.taps.is_timing() {
        for (stored, frame) in run.iter().zip(&frames) {
            cx.taps.note_queued(departure.shared.at, frame, cx.now.since(stored.since));
        }
    }
    drop(frames);
    run.iter().for_each(|stored| note_wait(shaper.queue(lane), stored, cx));
    shaper.arrived(run.len());
}

/// Notes how long a frame waited that has left.
fn note_wait(queue: &QueueShared, stored: &Stored, cx: &Sending<'_>) {
    let ns = cx.now.since(stored.since);
    queue.counters[cx.worker].waits.note(ns, 1);
    cx.queued.note(ns, 1);
}

/// Sends all that waits, whatever the rates say: the queues are gone.
pub(crate) fn dissolve(shaper: &mut Shaper, departure: &mut Departure<'_>, cx: &mut Sending<'_>) {
    while let Some((lane, stored)) = shaper.pop_any() {
        let (queue, frame) = (shaper.queue(lane), shaper.frame(lane, &stored));
        match departure.shut {
            Some(reason) => departure.lose(queue, reason, &frame, cx),
            None => {
                departure.send(queue, &[frame], cx);
                note_wait(queue, &stored, cx);
            }
        }
    }
}
