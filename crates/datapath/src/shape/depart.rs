//! Departures: what waits in a port's queues leaves when it may, and the worker knows when to look again.

use super::ring::Stored;
use super::{QueueShared, Shaper};
use crate::local::{LocalPort, PortIx, PortShared};
use crate::touch::{Touch, Touching};
use arrayvec::ArrayVec;
use flow::Nanos;
use port::{Drops, TxFrame, TxQueue};
use wire::DropReason;

/// Frames in one call of a destination.
const RUN: usize = port::BATCH;

/// Frames of one port that leave before the worker goes on with its other ports: some tens of microseconds of copying.
const TURN: usize = 16 * RUN;

/// What is at hand when frames leave.
pub(crate) struct Sending<'a> {
    pub(crate) worker: usize,
    pub(crate) now: Nanos,
    pub(crate) drops: &'a mut Drops,
    pub(crate) touching: &'a Touching,
}

/// The ports of a worker with frames that wait.
pub(crate) struct Backlog {
    ports: Vec<PortIx>,
    /// When the first of them must be looked at.
    next: Nanos,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { ports: Vec::new(), next: Nanos(u64::MAX) }
    }
}

impl Backlog {
    /// Makes sure that so many ports fit; when a port gets queues only.
    pub(crate) fn reserve(&mut self, ports: usize) {
        self.ports.reserve(ports.saturating_sub(self.ports.len()));
    }

    /// When to look at it, if there is any; [`Nanos`] in the past is now.
    #[inline]
    pub(crate) fn next(&self) -> Option<Nanos> {
        (!self.ports.is_empty()).then_some(self.next)
    }

    /// The port has frames that wait.
    pub(crate) fn list(&mut self, ix: PortIx, shaper: &mut Shaper) {
        if !std::mem::replace(&mut shaper.listed, true) {
            self.ports.push(ix);
        }
        self.next = self.next.min(shaper.wake);
    }

    /// The port is gone, or its shaper.
    pub(crate) fn forget(&mut self, ix: PortIx) {
        self.ports.retain(|&other| other != ix);
    }

    /// After a panic nothing that was noted of times counts.
    pub(crate) fn look_again(&mut self) {
        self.next = Nanos(0);
    }

    /// Sends what may leave by now.
    pub(crate) fn depart(&mut self, ports: &mut [Option<LocalPort>], cx: &mut Sending<'_>) {
        self.next = Nanos(u64::MAX);
        let mut at = 0;
        while let Some(&ix) = self.ports.get(at) {
            let port = ports.get_mut(ix.0 as usize).and_then(Option::as_mut);
            let wake = port.and_then(|port| look(port, ix, cx));
            match wake {
                Some(wake) => {
                    self.next = self.next.min(wake);
                    at += 1;
                }
                None => drop(self.ports.swap_remove(at)),
            }
        }
    }
}

/// A port's way out.
pub(crate) struct Exit<'a> {
    pub(crate) ix: PortIx,
    pub(crate) shared: &'a PortShared,
    pub(crate) queue: &'a mut dyn TxQueue,
    /// Why nothing may leave, if so.
    pub(crate) shut: Option<DropReason>,
}

impl Exit<'_> {
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
        let before = cx.touching.replace(Touch::Tx(self.ix));
        let sent = self.queue.tx(frames, cx.drops);
        cx.touching.set(before);
        let counters = &self.shared.counters[cx.worker];
        counters.tx.add(sent);
        counters.tx_drops.take(cx.drops);
        queue.counters[cx.worker].count(frames.len() as u64, sent);
    }

    /// Counts a frame of the queue that does not leave.
    pub(crate) fn lose(&self, queue: &QueueShared, reason: DropReason, worker: usize) {
        self.shared.counters[worker].tx_drops.add(reason, 1);
        queue.counters[worker].errors.add(1);
    }
}

/// Serves one port if its time has come; `None` when no frame waits there any more.
fn look(port: &mut LocalPort, ix: PortIx, cx: &mut Sending<'_>) -> Option<Nanos> {
    let (mut exit, shaper) = port.exit(ix)?;
    if shaper.wake <= cx.now {
        depart(shaper, &mut exit, cx);
    }
    shaper.listed = !shaper.is_idle();
    shaper.listed.then_some(shaper.wake)
}

/// Sends what may leave now, [`TURN`] frames at most, and notes when to look again.
pub(crate) fn depart(shaper: &mut Shaper, exit: &mut Exit<'_>, cx: &mut Sending<'_>) {
    if let Some(reason) = exit.shut {
        while let Some((lane, _)) = shaper.pop_any() {
            exit.lose(shaper.queue(lane), reason, cx.worker);
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
        send_run(shaper, lane, &run, exit, cx);
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
    exit: &mut Exit<'_>,
    cx: &mut Sending<'_>,
) {
    let frames: ArrayVec<TxFrame<'_>, RUN> =
        run.iter().map(|stored| shaper.frame(lane, stored)).collect();
    exit.send(shaper.queue(lane), &frames, cx);
    drop(frames);
    shaper.arrived(run.len());
}

/// Sends all that waits, whatever the rates say: the queues are gone.
pub(crate) fn dissolve(shaper: &mut Shaper, exit: &mut Exit<'_>, cx: &mut Sending<'_>) {
    while let Some((lane, stored)) = shaper.pop_any() {
        match exit.shut {
            Some(reason) => exit.lose(shaper.queue(lane), reason, cx.worker),
            None => exit.send(shaper.queue(lane), &[shaper.frame(lane, &stored)], cx),
        }
    }
}
