//! Frames that nobody has to look at: a batch from its source straight to its destination.
//!
//! Where a switch's tables say of a port that all it receives leaves by one other as it is, or of a batch that its frames are alike in all
//! that tables look at ([`flow::Through`]), a batch needs no packets, no pipeline, and no list of who waits for what. The way is the same as in a pass, and so is every count; whatever is not as plain as that
//! takes a pass, and nothing has happened before.

use crate::clock::Clock;
use crate::engine::Engine;
use crate::frames::ETHERNET_HEADER;
use crate::local::{LocalPort, PortIx, Way};
use crate::pass::Done;
use crate::queues::Queue;
use crate::touch::Touch;
use crate::transmit::Gate;
use flow::Nanos;
use port::{RxBatch, Sent};
use std::sync::atomic::Ordering::Relaxed;

impl<C: Clock> Engine<C> {
    /// Sends a whole batch of `queue` where all that comes in by its port goes. `None`: it needs a pass.
    pub(crate) fn send_unseen(
        &mut self,
        now: Nanos,
        batch: &RxBatch,
        queue: &Queue,
    ) -> Option<Done> {
        let (switches, ports) = self.world.parts();
        let switch = switches.get(queue.switch.0 as usize)?.as_ref()?;
        let tables = switch.shared.tables.load();
        let (cache, in_port) = (&mut self.cache, queue.shared.at.port);
        let heads = batch.frames().iter().map(|slot| &slot.head);
        let through = tables
            .through(cache, in_port)
            .or_else(|| tables.through_alike(cache, in_port, heads))?;
        let to = switch.ports.get(through.port())?;
        let port = ports.get_mut(to.0 as usize)?.as_mut().filter(|port| port.is_plain())?;
        let sum = sum(batch, queue, &Gate::of(port))?;
        queue.shared.counters[self.number].rx.add(sum);
        through.count(&self.cache, sum.frames, sum.bytes, now);
        Some(self.send_whole(to, batch, queue))
    }

    /// Sends a whole batch of `queue` by one port, as it came.
    pub(crate) fn send_whole(&mut self, to: PortIx, batch: &RxBatch, queue: &Queue) -> Done {
        let begin = self.clock.cycles();
        let drops = &mut self.scratch.drops;
        if let Some(LocalPort { shared, way: Way::Queue(tx), .. }) = self.world.port_mut(to) {
            let counters = &shared.counters[self.number];
            self.touching.set(Touch::Tx(to));
            counters.tx.add(tx.tx_received(batch.frames(), &*queue.rx, drops));
            counters.tx_drops.take(drops);
        }
        let at = self.clock.cycles();
        Done { at, tx_cycles: at.wrapping_sub(begin) }
    }
}

/// What the batch is in all; `None` if not every frame of it may come in and leave by this gate.
#[inline]
fn sum(batch: &RxBatch, queue: &Queue, gate: &Gate) -> Option<Sent> {
    if batch.has_tunnel_ids() || !queue.shared.up.load(Relaxed) {
        return None;
    }
    if let Some(all) = batch.lengths()
        && all.shortest as usize >= ETHERNET_HEADER
        && gate.passes_up_to(all.longest)
    {
        return Some(Sent { frames: batch.frames().len() as u64, bytes: all.bytes });
    }
    let mut sum = Sent::default();
    for slot in batch.frames() {
        let len = slot.frame_len();
        if len < ETHERNET_HEADER || gate.check(&slot.head, &slot.offload, len as u32).is_err() {
            return None;
        }
        sum.count(len);
    }
    Some(sum)
}
