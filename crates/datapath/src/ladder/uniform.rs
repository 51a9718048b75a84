//! Rung `uniform`: every frame hits an entry of one program, which leads to one port.

use super::round::{Batch, Round};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::id::PortIx;
use port::RxBatch;

impl<C: Clock> Engine<C> {
    /// Decides, counts and edits a received batch; the caller sends it by the port.
    #[inline]
    pub(super) fn uniform(
        &mut self,
        round: &Round<'_>,
        batch: &Batch,
        received: &mut RxBatch,
    ) -> Option<PortIx> {
        let heads = received.frames().iter().map(|slot| &slot.head);
        let decision =
            round.tables.decide_uniform(&mut self.workspace, round.in_port(), heads, round.now)?;
        let to = self.exit_of(round, decision.port(), batch, received)?;
        let packets = received.frames_mut().iter_mut().map(|slot| {
            let len = slot.frame_len();
            (&mut slot.head, len)
        });
        decision.run(&mut self.workspace, packets, round.now);
        Some(to)
    }
}
