//! Frames that nobody has to look at: a batch from its source straight to its destination.
//!
//! Where a switch's tables say of a port that all it receives leaves by one other as it is, or of a batch that its frames are alike in all
//! that tables look at ([`flow::Through`]), or that they leave together after the same edits ([`flow::Together`]), a batch needs no packets, no pipeline, and no list of who waits for what. The
//! way is the same as in a pass, and so is every count; whatever is not as plain as that takes a pass, and nothing has happened before.
//!
//! Where frames go from guest to guest, and it depends on nothing but the port, they do not come here at all: the destination copies them from where the source has them. The same where it depends on a few bytes, if its way of copying
//! compares these with what the last frames had that were looked up.

use crate::clock::Clock;
use crate::engine::Engine;
use crate::frames::ETHERNET_HEADER;
use crate::local::{LocalPort, LocalSwitch, PortIx, PortShared, SwitchIx, Way};
use crate::pass::Done;
use crate::queues::Queue;
use crate::touch::{Touch, Touching};
use crate::transmit::Gate;
use flow::{Cache, Nanos, Through};
use port::{RxBatch, Sent, Straight, Unread};
use std::sync::atomic::Ordering::Relaxed;
use wire::Pattern;

/// What became of frames that were not read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Onward {
    /// So many were sent.
    pub(crate) sent: usize,
    /// … which took so long ([`Clock::cycles`]) …
    pub(crate) cycles: u64,
    /// … and ended then.
    pub(crate) end: u64,
}

impl<C: Clock> Engine<C> {
    /// Sends the first of these frames, which came in by a port of a switch, from where their guest has them: as many as go one way whatever is in them, or by what the last ones had in them too, and as their
    /// destination takes as they are.
    pub(crate) fn send_unread(
        &mut self,
        now: Nanos,
        frames: Unread<'_>,
        by: (&PortShared, SwitchIx),
    ) -> Onward {
        let begin = self.clock.cycles();
        let Some(Sent { frames: sent @ 1.., .. }) = self.try_unread(now, frames, by) else {
            return Onward::default();
        };
        let end = self.clock.cycles();
        Onward { sent: sent as usize, cycles: end.wrapping_sub(begin), end }
    }

    fn try_unread(
        &mut self,
        now: Nanos,
        frames: Unread<'_>,
        (from, switch): (&PortShared, SwitchIx),
    ) -> Option<Sent> {
        let (switches, ports) = self.world.parts();
        let switch = switches.get(switch.0 as usize)?.as_ref()?;
        let tables = switch.shared.tables.load();
        let (cache, in_port, worker) = (&mut self.cache, from.at.port, self.number);
        let (touching, in_hand) = (&self.touching, &mut self.in_hand);
        let mut exit = Exit { worker, from, switch, ports, touching, in_hand };
        if let Some(through) = tables.through(cache, in_port) {
            return Some(exit.send(&through, frames, None, (&*cache, now))?.sent);
        }
        if !tables.looks_for_like(cache, in_port) {
            return None;
        }
        for is_known in [true, false] {
            if !is_known {
                // Nothing was sent of those that are like the last ones: what is the first like?
                let first = &mut self.scratch.first;
                let len = frames.first(first.area())?;
                first.set_len(len);
                tables.learn_like(cache, in_port, first)?;
            }
            let Some((through, pattern)) = tables.through_like(cache, in_port) else { continue };
            let Straight { sent, is_full } =
                exit.send(&through, frames, Some(pattern), (&*cache, now))?;
            if is_full || sent.frames as usize * 2 >= frames.len() {
                tables.found_like(cache, in_port);
            }
            if is_full || sent.frames > 0 {
                return Some(sent);
            }
        }
        None
    }

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

/// The way of frames that are not read, from one port of a switch to another.
struct Exit<'a> {
    worker: usize,
    from: &'a PortShared,
    switch: &'a LocalSwitch,
    ports: &'a mut [Option<LocalPort>],
    touching: &'a Touching,
    in_hand: &'a mut u64,
}

impl Exit<'_> {
    /// Sends the first of them, up to one that is not like the pattern's if there is one, and counts them on their entry and at both ports.
    fn send(
        &mut self,
        through: &Through<'_>,
        frames: Unread<'_>,
        pattern: Option<&Pattern>,
        (cache, now): (&Cache, Nanos),
    ) -> Option<Straight> {
        let to = self.switch.ports.get(through.port())?;
        let port = self.ports.get_mut(to.0 as usize)?.as_mut().filter(|port| port.is_plain())?;
        let longest = Gate::of(port).surely_passes().filter(|_| self.from.up.load(Relaxed))?;
        let LocalPort { shared, way: Way::Queue(tx), .. } = port else { return None };
        *self.in_hand = frames.len() as u64;
        let before = self.touching.replace(Touch::Tx(to));
        let straight = tx.tx_unread(frames, &(ETHERNET_HEADER..=longest as usize), pattern);
        self.touching.set(before);
        *self.in_hand = 0;
        let sent = straight.sent;
        if sent.frames > 0 {
            through.count(cache, sent.frames, sent.bytes, now);
            self.from.counters[self.worker].rx.add(sent);
            shared.counters[self.worker].tx.add(sent);
        }
        Some(straight)
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
