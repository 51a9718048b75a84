//! Tx: the frames that wait go to their destinations, one call for each destination.

use crate::backlog::Backlog;
use crate::counters::Histogram;
use crate::exit::Exit;
use crate::heads::{HEADS, Waiting};
use crate::id::PortIx;
use crate::local::{LocalPort, Sink};
use crate::pending::{Chain, HeadRef, Pending};
use crate::shape::{Admission, Sending, depart, wire_len};
use crate::taps::{Side, Taps};
use crate::touch::{Touch, Touching};
use arrayvec::ArrayVec;
use flow::Nanos;
use port::{Body, Drops, TX_MAX, TxFrame};
use wire::{BATCH, DropReason};

/// What a transmission works on.
pub(crate) struct Transmit<'a> {
    pub(crate) worker: usize,
    pub(crate) now: Nanos,
    pub(crate) ports: &'a mut [Option<LocalPort>],
    pub(crate) pending: &'a mut Pending,
    /// Places that will still read each head, of those that may have several.
    pub(crate) users: &'a mut [u16; HEADS],
    /// The bodies of the batch's frames.
    pub(crate) bodies: &'a [Body<'a>],
    pub(crate) drops: &'a mut Drops,
    pub(crate) touching: &'a Touching,
    pub(crate) taps: &'a Taps,
    /// How long frames wait in queues.
    pub(crate) queued: &'a Histogram,
    /// Ports where frames wait beyond the pass.
    pub(crate) backlog: &'a mut Backlog,
}

impl Transmit<'_> {
    /// Sends every waiting frame that `frame_of` has; the others go on waiting.
    ///
    /// One that goes on waiting while a later frame to the same port leaves is one of several copies of its packet, and a
    /// program treats all packets of a flow alike: the frames of one flow and one output stay in order.
    #[inline]
    pub(crate) fn flush<'h>(&mut self, frame_of: impl Fn(HeadRef) -> Option<Waiting<'h>>) {
        let before = self.touching.get();
        let dirty = self.pending.take_dirty();
        for &to in &dirty {
            self.flush_port(to, &frame_of);
        }
        self.pending.return_dirty(dirty);
        self.touching.set(before);
    }

    fn flush_port<'h>(&mut self, to: PortIx, frame_of: &impl Fn(HeadRef) -> Option<Waiting<'h>>) {
        let Some(Some(port)) = self.ports.get_mut(to.0 as usize) else { return };
        if port.shaper.is_some() {
            return self.flush_shaped(to, frame_of);
        }
        let exit = Exit::of(port);
        let ids = port.wants_tunnel_ids;
        let LocalPort { shared, sink: Sink::Queue(queue), chain, .. } = port else { return };
        let counters = &shared.counters[self.worker];
        let mut waiting = std::mem::take(chain);
        let mut frames = ArrayVec::<TxFrame<'_>, TX_MAX>::new();
        let (touching, taps, now) = (self.touching, self.taps, self.now);
        let mut send = |frames: &mut ArrayVec<TxFrame<'_>, TX_MAX>, drops: &mut Drops| {
            if shared.is_tapped(Side::Tx) {
                taps.sent(shared.at, now, frames);
            }
            touching.set(Touch::Tx(to));
            counters.tx.add(queue.tx(frames, shared.at(drops)));
            counters.tx_drops.take(drops);
            frames.clear();
        };
        while let Some(places) = self.pending.pop(&mut waiting) {
            if frames.remaining_capacity() < places.len() {
                send(&mut frames, self.drops);
            }
            for place in places {
                let entry = self.pending.at(place);
                let Some(frame) = frame_of(entry.head()) else {
                    self.pending.push(to, chain, entry);
                    continue;
                };
                if entry.is_counted() {
                    self.users[usize::from(entry.head().0)] -= 1;
                }
                // Pushed where it is made: a frame that is copied would be read while it is still being written.
                match check(exit, &frame) {
                    Ok(()) => frames.push(frame.to_send(self.bodies, ids)),
                    Err(reason) => {
                        self.drops.at(shared.at).lose(reason, &frame.to_send(self.bodies, ids));
                    }
                }
            }
        }
        if !frames.is_empty() {
            send(&mut frames, self.drops);
        }
        counters.tx_drops.take(self.drops);
    }

    /// As [`Transmit::flush_port`], for a port with queues: what may not leave now is copied and waits.
    #[inline(never)]
    fn flush_shaped<'h>(&mut self, to: PortIx, frame_of: &impl Fn(HeadRef) -> Option<Waiting<'h>>) {
        let Some(Some(port)) = self.ports.get_mut(to.0 as usize) else { return };
        let exit = Exit::of(port);
        let ids = port.wants_tunnel_ids;
        let mut waiting = std::mem::take(&mut port.chain);
        let mut left = Chain::default();
        let Some((mut departure, shaper)) = port.departure(to) else { return };
        let (worker, now) = (self.worker, self.now);
        let (touching, taps, queued) = (self.touching, self.taps, self.queued);
        let mut cx = Sending { worker, now, drops: self.drops, touching, taps, queued };
        // Frames of one lane that leave at once, uncopied.
        let (mut run, mut run_lane) = (ArrayVec::<TxFrame<'_>, BATCH>::new(), 0);
        while let Some(places) = self.pending.pop(&mut waiting) {
            for place in places {
                let entry = self.pending.at(place);
                let Some(waiting) = frame_of(entry.head()) else {
                    self.pending.push(to, &mut left, entry);
                    continue;
                };
                if entry.is_counted() {
                    self.users[usize::from(entry.head().0)] -= 1;
                }
                let lane = entry.lane();
                let frame = waiting.to_send(self.bodies, ids);
                departure.show(shaper.queue(lane), Side::Rx, &[frame], &cx);
                if let Err(reason) = check(exit, &waiting) {
                    departure.lose(shaper.queue(lane), reason, &frame, &mut cx);
                    continue;
                }
                let wire_len = wire_len(waiting.head, &frame);
                let mut admission = shaper.admit(lane, &frame, wire_len, now);
                if admission == Admission::Full {
                    // What left before it goes first, and then there may be room.
                    departure.send(shaper.queue(run_lane), &run, &mut cx);
                    run.clear();
                    depart(shaper, &mut departure, &mut cx);
                    admission = shaper.admit(lane, &frame, wire_len, now);
                }
                match admission {
                    Admission::Go => {
                        if lane != run_lane || run.is_full() {
                            departure.send(shaper.queue(run_lane), &run, &mut cx);
                            run.clear();
                        }
                        run_lane = lane;
                        run.push(frame);
                    }
                    Admission::Held => {}
                    Admission::Full => {
                        let queue = shaper.queue(lane);
                        departure.lose(queue, DropReason::QueueFull, &frame, &mut cx);
                    }
                }
            }
        }
        departure.send(shaper.queue(run_lane), &run, &mut cx);
        if !shaper.is_idle() {
            self.backlog.list(to, shaper);
            depart(shaper, &mut departure, &mut cx);
            self.backlog.list(to, shaper);
        }
        port.chain = left;
    }
}

/// Checks a frame that waits against the port's state.
#[inline]
fn check(exit: Result<Exit, DropReason>, frame: &Waiting<'_>) -> Result<(), DropReason> {
    exit?.check(frame.head, frame.offload, frame.frame_len)
}
