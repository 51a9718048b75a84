//! Frames that nobody has to look at: a batch from its source straight to its destination.
//!
//! Where a switch's tables say of a port that all it receives leaves by one other as it is, or of a batch that its frames are alike in all
//! that tables look at ([`flow::Through`]), or that they leave together after the same edits ([`flow::Together`]), a batch needs no packets, no pipeline, and no list of who waits for what. The
//! way is the same as in a pass, and so is every count; whatever is not as plain as that takes a pass, and nothing has happened before.

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
        batch: &mut RxBatch,
        queue: &Queue,
    ) -> Option<Done> {
        let (switches, ports) = self.world.parts();
        let switch = switches.get(queue.switch.0 as usize)?.as_ref()?;
        let tables = switch.shared.tables.load();
        let (cache, in_port) = (&mut self.cache, queue.shared.at.port);
        let heads = batch.frames().iter().map(|slot| &slot.head);
        let exit = |number| {
            let to = switch.ports.get(number)?;
            let port = ports.get(to.0 as usize)?.as_ref().filter(|port| port.is_plain())?;
            Some((to, Gate::of(port)))
        };
        let rx = &queue.shared.counters[self.number].rx;
        if let Some(through) = tables.through_batch(cache, in_port, heads.clone()) {
            let (to, gate) = exit(through.port())?;
            let sum = sum(batch, queue, &gate)?;
            rx.add(sum);
            through.count(cache, sum.frames, sum.bytes, now);
            return Some(self.send_whole(to, batch, queue));
        }
        if batch.has_tunnel_ids() || has_runts(batch) {
            return None;
        }
        let together = tables.together(cache, in_port, heads, now)?;
        let (to, gate) = exit(together.port())?;
        let sum = sum(batch, queue, &gate)?;
        rx.add(sum);
        let packets = batch.frames_mut().iter_mut().map(|slot| {
            let len = slot.frame_len();
            (&mut slot.head, len)
        });
        together.run(cache, packets, now);
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

/// Whether a frame is too short to have an Ethernet header.
#[inline]
fn has_runts(batch: &RxBatch) -> bool {
    match batch.lengths() {
        Some(all) => (all.shortest as usize) < ETHERNET_HEADER,
        None => batch.frames().iter().any(|slot| slot.frame_len() < ETHERNET_HEADER),
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
