//! Whole batches over a vlink: they enter the switch at its other end as a batch.
//!
//! What becomes of their frames is what becomes of frames that cross it one by one (`collect.rs`): the same MTU, the same bound of hops.

use super::pass::Done;
use super::round::Round;
use crate::clock::Clock;
use crate::crossing::HOPS;
use crate::engine::Engine;
use crate::exit::Exit;
use crate::id::PortIx;
use crate::local::{LocalPort, Sink};
use crate::rung::Rung;
use crate::taps::Side;
use flow::Nanos;
use port::{RxBatch, RxQueue, Sent};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl<C: Clock> Engine<C> {
    /// The exit of a port that a vlink joins to port `far`, if whole batches can leave by it now.
    pub(super) fn exit_over(
        &self,
        round: &Round<'_>,
        port: &LocalPort,
        far: PortIx,
    ) -> Option<Exit> {
        let is_open = round.hops < HOPS && self.world.port(far)?.shared.up.load(Relaxed);
        Exit::of(port).ok().filter(|_| is_open)
    }

    /// Sends a whole batch by a port: out of it, or over its vlink. `rung` has decided that.
    #[inline]
    pub(super) fn leave(
        &mut self,
        round: &Round<'_>,
        (rung, to): (Rung, PortIx),
        sum: Sent,
        (received, source): (&mut RxBatch, &dyn RxQueue),
    ) -> Done {
        match self.world.port(to).map(|port| &port.sink) {
            Some(&Sink::Vlink(far)) => self.cross(round, (rung, to, far), sum, (received, source)),
            _ => {
                self.took(rung.max(round.above), sum);
                self.send_whole(round.now, to, (received, source))
            }
        }
    }

    /// Takes a whole batch over a vlink, and up the ladder behind it.
    #[inline(never)]
    fn cross(
        &mut self,
        round: &Round<'_>,
        (rung, near, far): (Rung, PortIx, PortIx),
        sum: Sent,
        (received, source): (&mut RxBatch, &dyn RxQueue),
    ) -> Done {
        if let Some(near) = self.world.port(near) {
            near.shared.counters[self.number].tx.add(sum);
            if near.shared.is_tapped(Side::Tx) {
                let frames = (received.frames(), source);
                self.taps.sent_whole(near.shared.at, round.now, frames);
            }
        }
        let Some(LocalPort { shared, switch, .. }) = self.world.port(far) else {
            return Done::default();
        };
        let (far, switch) = (Arc::clone(shared), *switch);
        let behind = round.behind(&self.world, (&far, switch), rung);
        let is_tapped = far.is_tapped(Side::Rx);
        if is_tapped {
            let tables = behind.as_ref().map(|behind| &**behind.tables);
            self.taps.received(far.at, round.now, (received, source), tables);
        }
        let done =
            behind.map_or_else(Done::default, |behind| self.climb(&behind, received, source));
        if is_tapped {
            let wait = Nanos(self.clock.now().since(round.now));
            self.taps.decided(self.last.get(), wait);
        }
        done
    }
}
