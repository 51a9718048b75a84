//! Rung `pattern`: all that tables match is what an earlier frame had, so its decision holds.

use super::round::{Batch, Round};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::id::PortIx;
use port::{RxBatch, Sent, Unread, UnreadSent};

impl<C: Clock> Engine<C> {
    /// Forwards unread frames, up to one that differs from the last one that was looked up.
    /// If the first differs already, it is looked up, and the batch tried once more.
    #[inline]
    pub(super) fn pattern_unread(&mut self, round: &Round<'_>, frames: Unread<'_>) -> Option<Sent> {
        let (tables, in_port) = (&round.tables, round.in_port());
        if !tables.tries_pattern(&mut self.workspace, in_port) {
            return None;
        }
        for is_known in [true, false] {
            if !is_known {
                let first = &mut self.scratch.first;
                let len = frames.first(first.area())?;
                first.set_len(len);
                tables.learn_pattern(&mut self.workspace, in_port, first)?;
            }
            let (workspace, mut direct) = self.direct(round)?;
            let Some((decision, pattern)) = tables.decide_pattern(workspace, in_port) else {
                continue;
            };
            let UnreadSent { sent, is_full } =
                direct.send(round, (&decision, workspace), frames, Some(pattern))?;
            if is_full || sent.frames as usize * 2 >= frames.len() {
                tables.pattern_matched(workspace, in_port);
            }
            if is_full || sent.frames > 0 {
                return Some(sent);
            }
        }
        None
    }

    /// Decides and counts a received batch; the caller sends it by the port.
    #[inline]
    pub(super) fn pattern(
        &mut self,
        round: &Round<'_>,
        batch: &Batch,
        received: &RxBatch,
    ) -> Option<PortIx> {
        let heads = received.frames().iter().map(|slot| &slot.head);
        let decision = round.tables.decide_batch(&mut self.workspace, round.in_port(), heads)?;
        let to = self.exit_of(round, decision.port(), batch, received)?;
        decision.count(&self.workspace, batch.sum.frames, batch.sum.bytes, round.now);
        Some(to)
    }
}
