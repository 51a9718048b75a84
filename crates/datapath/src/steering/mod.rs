//! # steering: frames go to the worker that their flow is placed on
//!
//! **Question answered**: a queue is polled by one worker; how do its flows spread over all workers, by the same rules and policies as in
//! the kernel, and move between them without a frame overtaking another of its flow?
//!
//! ```text
//!   rx worker                                                    target worker
//!   rx ─▶ parse ─▶ unit ─▶ own? ────────────▶ pass
//!                    │      other's ─▶ ring ══════════▶ head out of the ring ─▶ pass (bodies stay in the ring)
//!                    │      on the move ─▶ hold ─┐            │
//!                    └──────── through? ◀────────┴── through ◀┘ all of it has left the worker
//! ```
//!
//! A *unit* (the flows of an entry, or a group of flows) has a *wish*, one word that all workers share: the worker that policy or entry
//! say. A worker that receives frames of the unit gives them to the unit's *place*, which is its own note and follows the wish when no
//! order is lost. A frame that is handed over is copied whole, once; the target runs the same pass that the rx worker would have
//! run. Received frames count at the port by the rx worker; what is lost on the way counts as the switch's drops.
//!
//! ## Order
//!
//! Claim: two frames of one flow that one queue delivered in an order leave every destination in that order, whatever moves happen.
//!
//! 1. A flow is in one unit (entries and groups are functions of the headers that tell flows apart), and a queue has one worker. So both
//!    frames, *a* and *b*, pass [`Handover::sort`] of one worker, in order.
//! 2. Same place, not held: both go through one ring, or through consecutive passes of the rx worker: FIFO.
//! 3. Otherwise the place changed in between. It does so only when the old place is *through* with the unit ([`Handover::is_through`]): the
//!    position behind the unit's last frame in the old ring has been published as `through` by the old worker, which does that after
//!    the pass in which the frame left and only while none of its ports has frames waiting in queues (rates). So *a* has left when *b*
//!    is given to the new place; acquire and release of `through` and of the new ring's `put` make that visible to the new worker. For the rx
//!    worker itself the position is a number of passes.
//! 4. Held: while a unit has frames in a hold, all later ones go to the same hold, which is FIFO; it is emptied into the new place only
//!    when the old one is through, or, given up, into the old place, behind what is there. Only an empty hold is left.
//! 5. Entries change: flows may change units, so 1. does not hold across the change. Each worker lets its steered queues alone until every
//!    place is through with all that it gave for the switch, and only then takes the new entries. After 1 ms frames that only wait in
//!    queues of ports (rates) no longer hold up a change: this is the one way to reorder a flow, and it needs a rule that changes, a
//!    flow that changes worker by it, and a port with rates.
//!
//! To leave is to be taken by the destination's `tx`. Where halves of different workers are different queues of a NIC, the NIC may transmit
//! in another order what lies in two of them at the same moment.
//!
//! Fragments: the first has ports, the others have not; both go by addresses and protocol alone. Order between a flow's fragments
//! and its whole packets is not kept.
//!
//! ## Invariants
//!
//! * A full ring costs frames of that target only: they are dropped (`handover_full`), counted for the target and the unit. Frames for
//!   other workers and own ones go on. The rx worker never waits.
//! * A move costs nothing while the old worker keeps up. With [`DropToDrain`](place::steering::Urgency::DropToDrain) up to [`HOLDS`] units have frames wait, up to
//!   [`HOLD_BYTES`] each; more are dropped (`hold_full`); after [`GIVE_UP_NS`] the move is given up until the next wish.
//! * Nothing is allocated after start of steering. Memory: [`RING_BYTES`] for each ordered pair of workers and [`HOLDS`] holds for each
//!   worker, from the first steered switch to the last; for each steered switch 0.5 MiB of units, and 1.2 MiB for each worker.
//! * A switch that is not steered costs one branch for each batch, a worker without steering one for each turn.
//! * A panic at the target costs the frames of its round, like any other; the ring goes on.

mod choosing;
mod classifier;
mod holds;
mod key;
mod options;
mod record;
mod sort;
mod units;

pub(crate) use choosing::Choosing;
pub(crate) use classifier::{Classifier, ENTRY_FIRST, FCF_FIRST, TooManyMasks};
pub(crate) use holds::Release;
pub(crate) use record::Label;
pub(crate) use sort::Arrival;
pub(crate) use units::{ENTRIES_MAX, Shared};

pub use choosing::Placed;
pub use options::{SteeringEntry, SteeringError};
pub use units::SteeredUnit;

use crate::id::{SwitchId, SwitchIx};
use crate::sys::ring::ring;
use crate::waker::Waker;
use flow::Nanos;
use holds::Hold;
use record::{Reader, Writer};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use units::NOWHERE;
use wire::{BATCH, Head};

/// Bytes of the ring from one worker to another. Chosen: 4096 small frames or 320 of full size, which a worker at 200 ns each is done
/// with in 0.8 ms; seven large ones of 64 KiB.
pub(crate) const RING_BYTES: usize = 512 << 10;
/// Units that may have frames wait for a move at a time, at one worker: a round of the agent's moves.
const HOLDS: usize = 8;
/// Bytes of one hold: 2048 small frames, those of a unit of 1 Mpps in 2 ms.
const HOLD_BYTES: usize = 256 << 10;
/// A move that waits for longer is given up: the reaction to overload must be over by then (design.md §5).
const GIVE_UP_NS: u64 = 10_000_000;
/// After so long, frames that wait in queues of ports no longer hold up a change of entries.
const PATIENCE_NS: u64 = 1_000_000;
/// No hold.
const NO_HOLD: u8 = u8::MAX;

/// One unit as the rx worker knows it.
#[derive(Clone, Copy)]
struct Unit {
    /// Behind its last frame, in the ring to its place; of the own worker, in passes.
    last: u64,
    /// The core table by which no core was found for it.
    asked: u32,
    /// The wish that was given up: how often it was changed.
    given_up: Option<units::Wish>,
    place: u16,
    hold: u8,
}

impl Unit {
    const NEW: Self = Self { last: 0, asked: 0, given_up: None, place: NOWHERE, hold: NO_HOLD };
}

/// One steered switch at one worker.
pub(crate) struct Steered {
    id: SwitchId,
    pub(crate) shared: Arc<Shared>,
    classifier: Arc<Classifier>,
    units: Box<[Unit]>,
    /// By worker, behind the last frame of the switch given to it.
    last: Box<[u64]>,
    change: Option<Change>,
}

/// Answer to a change of steering. What it gives back is dropped by the thread that asked.
pub(crate) enum Settled {
    /// Done; the entries that were.
    Classifier(#[expect(dead_code, reason = "only dropped, by the asking thread")] Arc<Classifier>),
    /// Done; what the worker knew of the switch.
    Steered(#[expect(dead_code, reason = "only dropped, by the asking thread")] Box<Steered>),
}

/// Entries to come, or (`None`) the end, and who waits for it.
struct Change {
    classifier: Option<Arc<Classifier>>,
    reply: Sender<Settled>,
    since: Option<Nanos>,
}

impl Steered {
    pub(crate) fn new(id: SwitchId, shared: Arc<Shared>, classifier: Arc<Classifier>) -> Self {
        let last = vec![0; shared.cores.len()].into();
        let units = vec![Unit::NEW; units::UNITS].into();
        Self { id, shared, classifier, units, last, change: None }
    }
}

/// What comes from another worker.
pub(crate) struct Inlet {
    pub(crate) reader: Reader,
    /// The round under way: what of the ring it takes, and how many frames.
    pub(crate) round: Option<(u64, u64)>,
}

/// A worker's part in steering; there is none while nothing is steered.
pub(crate) struct Handover {
    me: u16,
    peers: Box<[Arc<Waker>]>,
    /// By worker; none to itself.
    out: Box<[Option<Writer>]>,
    pub(crate) inlets: Box<[Option<Inlet>]>,
    pub(crate) holds: Box<[Hold]>,
    switches: Vec<Option<Box<Steered>>>,
    /// Passes of own frames that are over.
    passes: u64,
    /// So many of them, and all before, have left this worker.
    through: u64,
    changing: usize,
    /// When a frame came from another worker last.
    heard: Nanos,
    /// Memory for headers in a tunnel.
    inner: Head,
}

/// Makes every worker's part, all connected.
pub(crate) fn connect(wakers: &[Arc<Waker>]) -> Vec<Handover> {
    let count = wakers.len();
    let none = || (0..count).map(|_| (0..count).map(|_| None).collect()).collect::<Vec<Vec<_>>>();
    let (mut out, mut inlets) =
        (none(), (0..count).map(|_| (0..count).map(|_| None).collect()).collect::<Vec<Vec<_>>>());
    for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
        if from != to {
            let (writer, reader) = ring(RING_BYTES);
            out[from][to] = Some(writer);
            inlets[to][from] = Some(Inlet { reader, round: None });
        }
    }
    let parts = out.into_iter().zip(inlets).enumerate();
    parts
        .map(|(me, (out, inlets))| Handover {
            me: me as u16,
            peers: wakers.into(),
            out: out.into(),
            inlets: inlets.into(),
            holds: (0..HOLDS).map(|_| Hold::new(HOLD_BYTES)).collect(),
            switches: Vec::new(),
            passes: 0,
            through: 0,
            changing: 0,
            heard: Nanos::default(),
            inner: Head::default(),
        })
        .collect()
}

impl Handover {
    /// Takes up a switch.
    pub(crate) fn add(&mut self, ix: SwitchIx, steered: Box<Steered>) {
        let at = ix.0 as usize;
        if self.switches.len() <= at {
            self.switches.resize_with(at + 1, || None);
        }
        self.switches[at] = Some(steered);
    }

    /// Whether frames of the switch are steered.
    #[inline]
    pub(crate) fn steers(&self, ix: SwitchIx) -> bool {
        self.switches.get(ix.0 as usize).is_some_and(Option::is_some)
    }

    /// Whether its frames are to be let alone for now.
    #[inline]
    pub(crate) fn pauses(&self, ix: SwitchIx) -> bool {
        self.changing > 0
            && self
                .switches
                .get(ix.0 as usize)
                .is_some_and(|switch| switch.as_ref().is_some_and(|switch| switch.change.is_some()))
    }

    /// Has the switch's entries changed, or (`None`) its steering ended, as soon as no order is lost; who waits is answered then.
    pub(crate) fn change(
        &mut self,
        ix: SwitchIx,
        classifier: Option<Arc<Classifier>>,
        reply: Sender<Settled>,
    ) {
        if let Some(Some(switch)) = self.switches.get_mut(ix.0 as usize) {
            switch.change = Some(Change { classifier, reply, since: None });
            self.changing += 1;
        }
    }

    /// A pass of own frames of a steered switch is over.
    pub(crate) fn passed(&mut self) {
        self.passes += 1;
    }

    /// Nothing of this worker waits in queues of ports: what was taken and passed has left.
    pub(crate) fn pass_through(&mut self) {
        self.through = self.passes;
        self.inlets.iter_mut().flatten().for_each(|inlet| inlet.reader.pass_through());
    }

    /// Frames came from another worker.
    pub(crate) fn hear(&mut self, now: Nanos) {
        self.heard = now;
    }

    /// Whether the worker must not sleep: something waits here, or frames came lately.
    pub(crate) fn is_awake(&self, now: Nanos, spin: u64) -> bool {
        self.changing > 0 || now.since(self.heard) < spin || self.holds.iter().any(Hold::is_taken)
    }

    /// Whether other workers have given nothing.
    pub(crate) fn has_heard_all(&self) -> bool {
        self.inlets.iter().flatten().all(|inlet| inlet.reader.is_empty())
    }

    /// Whether a place is through with everything up to a position.
    fn is_through(&self, place: u16, last: u64) -> bool {
        match self.out.get(usize::from(place)).and_then(Option::as_ref) {
            Some(writer) => last <= writer.through(),
            None => last <= self.through,
        }
    }

    /// Likewise, but what waits in queues of ports is let be.
    fn is_taken(&self, place: u16, last: u64) -> bool {
        match self.out.get(usize::from(place)).and_then(Option::as_ref) {
            Some(writer) => last <= writer.taken(),
            None => last <= self.passes,
        }
    }

    /// Ends changes that lose no order any more. Returns the switch whose steering ended with them.
    pub(crate) fn settle_changes(&mut self, now: Nanos) -> Option<(Box<Steered>, Sender<Settled>)> {
        if self.changing == 0 {
            return None;
        }
        for at in 0..self.switches.len() {
            let Some(mut switch) = self.switches[at].take_if(|switch| switch.change.is_some())
            else {
                continue;
            };
            if let Some(change) = self.ended(SwitchIx(at as u32), &mut switch, now) {
                self.changing -= 1;
                let Some(classifier) = change.classifier else {
                    return Some((switch, change.reply));
                };
                let before = std::mem::replace(&mut switch.classifier, classifier);
                // Who asked may have gone.
                let _ = change.reply.send(Settled::Classifier(before));
            }
            self.switches[at] = Some(switch);
        }
        None
    }

    fn ended(&self, ix: SwitchIx, switch: &mut Steered, now: Nanos) -> Option<Change> {
        let since = *switch.change.as_mut()?.since.get_or_insert(now);
        let lenient = now.since(since) > PATIENCE_NS;
        let done = |(place, &last): (usize, &u64)| {
            self.is_through(place as u16, last) || lenient && self.is_taken(place as u16, last)
        };
        let held = self.holds.iter().any(|hold| hold.is_of(ix));
        if held || !switch.last.iter().enumerate().all(done) {
            return None;
        }
        switch.change.take()
    }

    /// Puts rings in order after a panic, and counts what it cost: `drops` of the switch of each lost frame.
    pub(crate) fn recover(&mut self, mut lose: impl FnMut(&Label, u64)) {
        self.out.iter_mut().flatten().for_each(Writer::publish);
        let inlets = self.inlets.iter_mut().flatten();
        for inlet in inlets.chain(self.holds.iter_mut().map(|hold| &mut hold.inlet)) {
            let Some((end, frames)) = inlet.round.take() else { continue };
            if let Some(words) = inlet.reader.records().peek() {
                lose(&Label::of(&words), frames);
            }
            inlet.reader.release(end);
        }
        self.passes += 1;
    }
}

const _: () = assert!(BATCH <= 64); // a word has a bit for every frame of a batch

#[cfg(test)]
mod tests;
