//! Rung `port`: the ingress port decides, and no byte of a frame is looked at.

use super::round::{Batch, Round};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::exit::Exit;
use crate::id::PortIx;
use crate::local::Sink;
use flow::PortNo;
use port::{RxBatch, Sent, Unread};

impl<C: Clock> Engine<C> {
    /// Forwards unread frames, as many as their destination has room for.
    #[inline]
    pub(super) fn port_unread(&mut self, round: &Round<'_>, frames: Unread<'_>) -> Option<Sent> {
        let (workspace, mut direct) = self.direct(round)?;
        let decision = round.tables.decide_port(workspace, round.in_port())?;
        Some(direct.send(round, (&decision, workspace), frames, None)?.sent)
    }

    /// Decides and counts a received batch; the caller sends it by the port.
    #[inline]
    pub(super) fn port(
        &mut self,
        round: &Round<'_>,
        batch: &Batch,
        received: &RxBatch,
    ) -> Option<PortIx> {
        let decision = round.tables.decide_port(&mut self.workspace, round.in_port())?;
        let to = self.exit_of(round, decision.port(), batch, received)?;
        decision.count(&self.workspace, batch.sum.frames, batch.sum.bytes, round.now);
        Some(to)
    }

    /// The switch's port of this number, if the whole batch leaves by it as it lies, perhaps over a vlink.
    #[inline]
    pub(super) fn exit_of(
        &self,
        round: &Round<'_>,
        number: PortNo,
        batch: &Batch,
        received: &RxBatch,
    ) -> Option<PortIx> {
        let to = self.world.switch(round.switch)?.ports.get(number)?;
        let port = self.world.port(to)?;
        let exit = match port.sink {
            Sink::Queue(_) => Exit::of_batches(port)?,
            Sink::Vlink(far) => self.exit_over(round, port, far)?,
        };
        batch.fits(&exit, received).then_some(to)
    }
}
