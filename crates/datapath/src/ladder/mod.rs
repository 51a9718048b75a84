//! # The ladder: the ordered ways in which a batch is worked off
//!
//! **Question answered**: how much must be done for each frame of this batch?
//!
//! A switch that forwards all that one port receives to one other needs one search a batch, not one a frame.
//! Rungs are tried from the top; the first that can take the batch takes it, and none changes what becomes of a frame:
//!
//! | rung | it takes a batch if | for each frame | frames |
//! |---|---|---|---|
//! | `port` | the ingress port alone decides | nothing | unread or received |
//! | `pattern` | all bits that tables match are those of an earlier frame | a comparison | unread or received |
//! | `uniform` | every frame hits an entry of one program, which leads to one port | key, search, edit in place | received |
//! | `whole` | all frames turn out to leave by one port, as long as they came | the pipeline | received |
//! | `pass` | always | the pipeline, and a place in the port's list | received |
//!
//! A batch that leaves whole by a vlink enters the switch at the other end as a batch, and the ladder begins anew there. It counts at the
//! lowest rung that it needed.
//!
//! *Unread* frames are still in a guest's memory ([`RxQueue::rx_unread`]): their destination copies them from there.
//!
//! ## Rules
//!
//! 1. [`Round::may`](round::Round) says which rungs may be tried: one place for all that is true of ingress and batch.
//! 2. [`Exit`] says whether a batch may leave by a port: one place for all that is true of the way out.
//! 3. A rung that answers `None` has counted and changed nothing. A bridge may have renewed ages, as it will again.
//! 4. Each frame counts at the rung that took it, in [`WorkerBlock::rungs`](crate::counters::WorkerBlock).
//! 5. A rung that is switched off hands its frames to the next. `pass` is always on.
//!
//! Steering stays above: the worker sorts a steered switch's batch, and its own frames take `pass`.

mod pass;
mod pattern;
mod port;
mod round;
mod uniform;
mod unread;
mod vlink;
mod whole;

pub(crate) use pass::{Done, Work};
pub(crate) use round::Round;
pub(crate) use unread::Forwarded;

use crate::clock::Clock;
use crate::engine::Engine;
#[cfg(doc)]
use crate::exit::Exit;
use crate::rung::Rung;
use ::port::{RxBatch, RxQueue, Sent, Unread};
use whole::Decided;

impl<C: Clock> Engine<C> {
    /// Forwards unread frames, from the first on; the others are to be received.
    pub(crate) fn climb_unread(&mut self, round: &Round<'_>, frames: Unread<'_>) -> Forwarded {
        let begin = self.clock.cycles();
        let mut taken = None;
        if round.may(Rung::Port) {
            taken = self.port_unread(round, frames).map(|sent| (Rung::Port, sent));
        }
        if taken.is_none() && round.may(Rung::Pattern) {
            taken = self.pattern_unread(round, frames).map(|sent| (Rung::Pattern, sent));
        }
        match taken {
            Some((rung, sent)) if sent.frames > 0 => {
                self.took(rung, sent);
                Forwarded::since(begin, self.clock.cycles(), sent)
            }
            _ => Forwarded::default(),
        }
    }

    /// Takes a received batch of `source` to its destinations.
    pub(crate) fn climb(
        &mut self,
        round: &Round<'_>,
        received: &mut RxBatch,
        source: &dyn RxQueue,
    ) -> Done {
        let batch = round.batch(received);
        let mut taken = None;
        if batch.may(Rung::Port) {
            taken = self.port(round, &batch, received).map(|to| (Rung::Port, to));
        }
        if taken.is_none() && batch.may(Rung::Pattern) {
            taken = self.pattern(round, &batch, received).map(|to| (Rung::Pattern, to));
        }
        if taken.is_none() && batch.may(Rung::Uniform) {
            taken = self.uniform(round, &batch, received).map(|to| (Rung::Uniform, to));
        }
        if let Some((rung, to)) = taken {
            round.counters(self.number).rx.add(batch.sum);
            return self.leave(round, (rung, to), batch.sum, (received, source));
        }
        match self.frame_by_frame(round, batch.may(Rung::Whole), received, source) {
            Decided::Sent(done) => done,
            Decided::Whole(to) => self.send_whole(round.now, to, (received, source)),
        }
    }

    /// Counts frames at the rung that took them.
    #[inline]
    fn took(&self, rung: Rung, sent: Sent) {
        self.last.set(Some(rung));
        self.counters.rungs[rung as usize].add(sent);
    }
}
