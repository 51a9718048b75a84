//! The pipeline's verdicts, collected: which head leaves by which port, crosses which vlink, goes to the controller.

use crate::counters::SwitchBlock;
use crate::crossing::{Crossing, Crossings, HOPS};
use crate::event::{EventRing, Punt, places};
use crate::heads::{Carried, Parsed, SPARE, packet_len, spare_at, spare_index};
use crate::local::{LocalSwitch, PortIx, SwitchIx, Way};
use crate::packet_in::HeldFrame;
use crate::pending::HeadAt;
use crate::transmit::Transmit;
use arrayvec::ArrayVec;
use flow::{Nanos, Packet, PacketIn, PortNo, Sink, Then};
use port::{BATCH, Sent};
use std::sync::atomic::Ordering::Relaxed;
use wire::{DropReason, Field, Head};

/// Deliveries over vlinks that one received frame may cause in all: a switch with 500 vlinks can still flood, and a loop of
/// flooding switches costs its owner no more than this per frame.
pub(crate) const DELIVERIES: u16 = 512;

/// Copies of one packet that a switch of `ports` ports sends at most: what [`flow`] allows a program, asserted here because the list
/// of waiting frames relies on it.
pub(crate) fn copies_allowed(ports: usize) -> usize {
    1024 + ports
}

/// Collects the verdicts of one call of the pipeline.
pub(crate) struct Collector<'c, 'a> {
    pub(crate) now: Nanos,
    pub(crate) switch: &'c LocalSwitch,
    pub(crate) tx: Transmit<'a>,
    /// The head of each packet in the call.
    pub(crate) heads: &'c ArrayVec<HeadAt, BATCH>,
    pub(crate) parsed: &'c mut [Parsed],
    /// The spare heads that no packet in the call has: from index `base` on.
    pub(crate) own: &'c mut [Head],
    pub(crate) base: usize,
    pub(crate) top: &'c mut usize,
    pub(crate) crossings: &'c mut Crossings,
    /// Switches already behind these packets.
    pub(crate) hops: u32,
    /// Copies sent of each packet in the call.
    pub(crate) copies: [u32; BATCH],
    pub(crate) copies_allowed: u32,
    pub(crate) events: &'c EventRing,
}

impl Collector<'_, '_> {
    fn counters(&self) -> &SwitchBlock {
        self.switch.counters(self.tx.worker)
    }

    #[cold]
    fn drop_one(&self, reason: DropReason) {
        self.counters().drops.add(reason, 1);
    }

    /// Counts a frame that its port was not to receive: the port's loss, not a verdict of the switch (OpenFlow 1.3.5 §7.2.1,
    /// `OFPPC_NO_RECV`; §7.3.5.6, `rx_dropped`).
    #[cold]
    fn refuse(&self, in_port: PortNo) {
        let reason = DropReason::PortNoReceive;
        let port = self.switch.ports.get(in_port);
        match port.and_then(|ix| self.tx.ports.get(ix.0 as usize)?.as_ref()) {
            Some(port) => port.shared.counters[self.tx.worker].rx_drops.add(reason, 1),
            None => self.drop_one(reason),
        }
    }

    /// The frame's place while it waits: its own head if nothing more happens to it, else a copy.
    fn keep(&mut self, index: usize, packet: &Packet<'_>, then: Then) -> Option<HeadAt> {
        let own = self.heads[index];
        let origin = self.tx.carried[usize::from(own.0)].origin;
        let at = match then {
            Then::Done => own,
            Then::More => self.copy(packet.head)?,
        };
        let carried = &mut self.tx.carried[usize::from(at.0)];
        *carried = Carried {
            offload: packet.offload,
            frame_len: packet.frame_len,
            packet_len: packet_len(&packet.layers, &packet.offload, packet.frame_len),
            // A head that is its packet's own may have been kept by an earlier output already.
            users: if then == Then::Done { carried.users } else { 0 },
            origin,
        };
        Some(at)
    }

    /// A copy of `head` in a spare one; when there is none, the frames that wait in spare heads are sent first.
    #[inline(never)]
    fn copy(&mut self, head: &Head) -> Option<HeadAt> {
        if *self.top == SPARE {
            self.flush_own();
        }
        let spare = self.own.get_mut(*self.top - self.base)?;
        spare.copy_from(head);
        *self.top += 1;
        Some(spare_at(*self.top - 1))
    }

    /// Sends what waits in our spare heads and takes back those above the last one that still has to cross a vlink.
    #[cold]
    fn flush_own(&mut self) {
        let (own, base) = (&*self.own, self.base);
        self.tx.flush(|at| own.get(spare_index(at)?.checked_sub(base)?));
        *self.top = self.crossings.highest_spare().map_or(base, |highest| base.max(highest + 1));
    }

    /// Adds `head` to what waits for the port, or to what crosses its vlink.
    #[inline]
    fn send(&mut self, to: PortIx, head: HeadAt, packet: &Packet<'_>) {
        let Some(Some(port)) = self.tx.ports.get_mut(to.0 as usize) else { return };
        match port.way {
            Way::Queue(_) => {
                self.tx.carried[usize::from(head.0)].users += 1;
                let lane = port.lane(packet.queue);
                self.tx.pending.push(to, &mut port.chain, (head, lane));
            }
            Way::Vlink(peer) => self.cross(to, peer, head, packet),
        }
    }

    #[inline(never)]
    fn cross(&mut self, from: PortIx, into: PortIx, head: HeadAt, packet: &Packet<'_>) {
        let verdict = self.may_cross(from, into, head);
        let Some(Some(port)) = self.tx.ports.get(from.0 as usize) else { return };
        let counters = &port.shared.counters[self.tx.worker];
        let switch = match verdict {
            Ok(switch) => switch,
            Err(reason) => return counters.tx_drops.add(reason, 1),
        };
        counters.tx.add(Sent { frames: 1, bytes: u64::from(packet.frame_len) });
        self.tx.carried[usize::from(head.0)].users += 1;
        let parsed = &mut self.parsed[usize::from(head.0)];
        (parsed.key, parsed.layers) = (packet.key, packet.layers);
        self.crossings.push(Crossing { switch, into, head });
    }

    /// The switch at the other end, or why the frame does not get there.
    fn may_cross(
        &mut self,
        from: PortIx,
        into: PortIx,
        head: HeadAt,
    ) -> Result<SwitchIx, DropReason> {
        let end = |ix: PortIx| {
            self.tx.ports.get(ix.0 as usize).and_then(Option::as_ref).ok_or(DropReason::PortDown)
        };
        let (near, far) = (end(from)?, end(into)?);
        let carried = &self.tx.carried[usize::from(head.0)];
        match () {
            () if !near.shared.up.load(Relaxed) || !far.shared.up.load(Relaxed) => {
                Err(DropReason::PortDown)
            }
            () if carried.packet_len > near.shared.mtu.load(Relaxed) => Err(DropReason::TooBig),
            () if self.hops >= HOPS => Err(DropReason::VlinkLoop),
            () if !self.crossings.allow(carried.origin) => Err(DropReason::TooManyCopies),
            () => Ok(far.switch),
        }
    }

    #[inline(never)]
    fn queue_packet_in(&self, index: usize, packet: &Packet<'_>, why: PacketIn) -> bool {
        let switch = &self.switch.shared;
        let limit = switch.packet_in_limit(why.max_len);
        let places = places(limit.min(packet.frame_len as usize));
        if !switch.quota.take(self.now, places) {
            return false;
        }
        let origin = self.tx.carried[usize::from(self.heads[index].0)].origin;
        let body = self.tx.bodies[usize::from(origin)];
        let parts = (packet.head.bytes(), body);
        let punt = Punt {
            switch: switch.id,
            in_port: packet.in_port(),
            frame: HeldFrame::take(self.events.memory(), parts, &packet.offload, limit),
            total_len: packet.frame_len,
            why,
            metadata: packet.key.get(Field::Metadata) as u64,
            tunnel_id: packet.key.get(Field::TunnelId) as u64,
        };
        let fits = self.events.packet_in(switch, punt, places);
        if !fits {
            switch.quota.give_back(places);
        }
        fits
    }
}

impl Sink for Collector<'_, '_> {
    fn output(&mut self, index: usize, packet: &Packet<'_>, ports: &[PortNo], then: Then) {
        if ports.is_empty() {
            return self.drop_one(DropReason::NoDestination);
        }
        let Some(head) = self.keep(index, packet, then) else {
            return self.counters().drops.add(DropReason::TooManyCopies, ports.len() as u64);
        };
        for &number in ports {
            let Some(to) = self.switch.ports.get(number) else {
                self.drop_one(DropReason::NoPort);
                continue;
            };
            self.copies[index] += 1;
            if self.copies[index] > self.copies_allowed {
                self.drop_one(DropReason::TooManyCopies);
                continue;
            }
            self.send(to, head, packet);
        }
    }

    fn packet_in(&mut self, index: usize, packet: &Packet<'_>, why: PacketIn) {
        if self.queue_packet_in(index, packet, why) {
            self.counters().packet_ins.add(1);
        } else {
            self.drop_one(DropReason::PacketInFull);
        }
    }

    fn discard(&mut self, _index: usize, packet: &Packet<'_>, reason: DropReason) {
        match reason {
            DropReason::PortNoReceive => self.refuse(packet.in_port()),
            _ => self.drop_one(reason),
        }
    }

    fn lost(&mut self, _index: usize, reason: DropReason) {
        self.drop_one(reason);
    }
}
