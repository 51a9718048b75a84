//! Rung `whole`: decided frame by frame, and all leave by one port as they lie.

use super::pass::{Done, Pass};
use super::round::Round;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::exit::Exit;
use crate::frames::Frames;
use crate::id::PortIx;
use crate::local::{LocalPort, Sink};
use crate::onward::Past;
use crate::rung::Rung;
use crate::taps::Side;
use crate::touch::Touch;
use flow::Nanos;
use port::{RxBatch, RxQueue};

/// Outcome of a batch that was decided frame by frame.
pub(super) enum Decided {
    /// Its frames were sent, each to its own destinations.
    Sent(Done),
    /// All of them leave by this port as they lie; none was sent yet.
    Whole(PortIx),
}

impl<C: Clock> Engine<C> {
    /// Takes a batch through the pipeline. Rung `whole` may take it, if `may_be_whole`; else `pass` does.
    pub(super) fn frame_by_frame(
        &mut self,
        round: &Round<'_>,
        may_be_whole: bool,
        received: &mut RxBatch,
        source: &dyn RxQueue,
    ) -> Decided {
        let mut frames = Frames::default();
        if !self.receive(round, &mut frames, received, source) {
            return Decided::Sent(Done::default());
        }
        // Frames and slots must be the same ones: the batch is sent by its slots.
        let may_be_whole = may_be_whole && frames.runts == 0;
        let sum = frames.received;
        self.world.earn(round.switch, sum.frames);
        // Of a batch that has crossed vlinks whole, this is where it came out of the last one.
        let past = Past::at(round.switch, round.in_port());
        self.scratch.crossings.set_past(std::iter::repeat(past));
        let mut pass = self.begin(round.now, &mut frames, &round.tables);
        pass.hops = round.hops;
        let whole = pass.run_tables(round.switch, may_be_whole);
        let done = pass.done;
        self.took(if whole.is_some() { Rung::Whole } else { Rung::Pass }, sum);
        whole.map_or(Decided::Sent(done), Decided::Whole)
    }

    /// Sends a whole batch of `source` by one port, as it lies.
    pub(super) fn send_whole(
        &mut self,
        now: Nanos,
        to: PortIx,
        (batch, source): (&RxBatch, &dyn RxQueue),
    ) -> Done {
        let begin = self.clock.cycles();
        let drops = &mut self.scratch.drops;
        if let Some(LocalPort { shared, sink: Sink::Queue(tx), .. }) = self.world.port_mut(to) {
            let counters = &shared.counters[self.number];
            if shared.is_tapped(Side::Tx) {
                self.taps.sent_whole(shared.at, now, (batch.frames(), source));
            }
            self.touching.set(Touch::Tx(to));
            counters.tx.add(tx.tx_received(batch.frames(), source, shared.at(drops)));
            counters.tx_drops.take(drops);
        }
        let at = self.clock.cycles();
        Done { at, tx_cycles: at.wrapping_sub(begin) }
    }
}

impl<C: Clock> Pass<'_, '_, C> {
    /// The port by which all frames of the batch leave as they lie: then they wait no more.
    pub(super) fn take_whole(&mut self) -> Option<PortIx> {
        let Self { ports, scratch, packets, longest, reshaped: false, .. } = self else {
            return None;
        };
        let port_at = |to: PortIx| ports.get(to.0 as usize)?.as_ref();
        let chain_at = |to| Some(port_at(to)?.chain);
        let to = scratch.pending.whole(packets.len(), chain_at)?;
        // A rule may have chosen a tunnel id, which slots do not carry.
        let port = port_at(to).filter(|port| !port.wants_tunnel_ids)?;
        if *longest > Exit::of_batches(port)?.surely_takes() {
            return None;
        }
        let port = ports.get_mut(to.0 as usize)?.as_mut()?;
        scratch.pending.forget(std::mem::take(&mut port.chain));
        Some(to)
    }
}
