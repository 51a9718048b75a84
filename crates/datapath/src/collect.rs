//! The pipeline's verdicts, collected: which head leaves by which port, crosses which vlink, goes to the controller.

use crate::counters::{PortBlock, SwitchBlock};
use crate::crossing::{Crossing, Crossings, HOPS};
use crate::event::{EventRing, Punt, places};
use crate::heads::{Carried, Parsed, SPARE, Waiting, fits, spare_at, spare_index};
use crate::id::{PortAt, PortIx, SwitchIx};
use crate::local::{LocalSwitch, Sink};
use crate::onward::{Onward, PASSES, Place};
use crate::packet_in::{HeldFrame, Pieces};
use crate::pending::{Entry, HeadRef};
use crate::transmit::Transmit;
use flow::{Nanos, Packet, PacketIn, PortNo, Then};
use port::{Body, Drops, Lost, Sent, TxFrame};
use std::sync::atomic::Ordering::Relaxed;
use wire::{BATCH, DropReason, Field, Head};

/// Copies of one packet that a switch of `ports` ports sends at most: what [`flow`] allows a program, asserted here because the list
/// of waiting frames relies on it.
pub(crate) fn copies_allowed(ports: usize) -> usize {
    1024 + ports
}

/// Copies that a packet gets at once of those that its switch has left.
const PORTION: u32 = 64;

const _: () = assert!(BATCH.is_power_of_two());

/// What frames that cross a vlink meet, read once for all of them.
#[derive(Clone, Copy)]
struct Vlink {
    /// At the other end.
    switch: SwitchIx,
    into: PortIx,
    at: PortAt,
    mtu: u32,
}

/// Collects the verdicts of one call of the pipeline.
pub(crate) struct Collector<'c, 'a> {
    pub(crate) now: Nanos,
    pub(crate) switch: &'c LocalSwitch,
    /// All of them.
    pub(crate) switches: &'c [Option<LocalSwitch>],
    pub(crate) tx: Transmit<'a>,
    /// What the switch drops.
    pub(crate) verdicts: &'c mut Drops,
    /// The head of each packet in the call.
    pub(crate) heads: &'c [HeadRef],
    pub(crate) carried: &'c mut [Carried],
    pub(crate) parsed: &'c mut [Parsed],
    /// The spare heads that no packet in the call has: from index `base` on.
    pub(crate) own: &'c mut [Head],
    pub(crate) base: usize,
    pub(crate) top: &'c mut usize,
    pub(crate) crossings: &'c mut Crossings,
    /// Frames that go on in a later pass.
    pub(crate) onward: &'c mut Onward,
    /// Switches already behind these packets.
    pub(crate) hops: u32,
    /// Copies sent of each packet in the call.
    pub(crate) copies: [u32; BATCH],
    pub(crate) copies_allowed: u32,
    pub(crate) events: &'c EventRing,
}

impl<'a> Collector<'_, 'a> {
    fn counters(&self) -> &SwitchBlock {
        self.switch.counters(self.tx.worker)
    }

    /// Ends a packet of the call, or a copy of it, by a verdict of the switch.
    #[cold]
    fn lose_one(&mut self, index: usize, packet: &Packet<'_>, reason: DropReason) {
        let at = PortAt { switch: self.switch.shared.id, port: packet.in_port() };
        let body = self.body(self.heads[index]);
        self.verdicts.at(at).lose(reason, Lost::Frame { head: packet.head.bytes(), body });
    }

    /// Ends a packet that its port was not to receive: the port's loss, not a verdict of the switch (OpenFlow 1.3.5 §7.2.1,
    /// `OFPPC_NO_RECV`; §7.3.5.6, `rx_dropped`).
    #[cold]
    fn refuse(&mut self, index: usize, packet: &Packet<'_>) {
        let reason = DropReason::PortNoReceive;
        let port = self.switch.ports.get(packet.in_port());
        let Some(port) = port.and_then(|ix| self.tx.ports.get(ix.0 as usize)?.as_ref()) else {
            return self.lose_one(index, packet, reason);
        };
        let (body, drops) = (self.body(self.heads[index]), self.tx.drops.at(port.shared.at));
        drops.lose(reason, Lost::Frame { head: packet.head.bytes(), body });
        port.shared.counters[self.tx.worker].rx_drops.take(drops);
    }

    /// The body of a head's frame.
    fn body(&self, head: HeadRef) -> Body<'a> {
        self.tx.bodies[usize::from(self.origin(head))]
    }

    /// The frame's place while it waits: its own head if nothing more happens to it, else a copy.
    #[inline]
    fn keep(&mut self, index: usize, packet: &Packet<'_>, then: Then) -> Option<HeadRef> {
        let own = self.heads[index];
        match then {
            Then::Done => {
                self.note(own, packet);
                Some(own)
            }
            Then::More => self.copy(own, packet),
        }
    }

    /// Notes what goes with a spare head. Of the batch's own the packets know it.
    #[inline]
    fn note(&mut self, at: HeadRef, packet: &Packet<'_>) {
        if let Some(spare) = spare_index(at) {
            let carried = &mut self.carried[spare];
            (carried.offload, carried.frame_len) = (packet.offload, packet.frame_len);
            carried.tunnel = *packet.key.tunnel().0;
        }
    }

    /// A copy of the packet, whose head is `own`, in a spare head; when there is none, the frames that wait in spare heads are sent first.
    #[inline(never)]
    fn copy(&mut self, own: HeadRef, packet: &Packet<'_>) -> Option<HeadRef> {
        if *self.top == SPARE {
            self.flush_own();
        }
        let spare = self.own.get_mut(*self.top - self.base)?;
        spare.copy_from(packet.head);
        let at = spare_at(*self.top);
        self.carried[*self.top].origin = self.origin(own);
        self.tx.users[usize::from(at.0)] = 0;
        *self.top += 1;
        self.note(at, packet);
        Some(at)
    }

    /// The frame of the batch that a head came from.
    #[inline]
    fn origin(&self, at: HeadRef) -> u8 {
        spare_index(at).map_or(at.0 as u8, |spare| self.carried[spare].origin)
    }

    /// Sends what waits in our spare heads and takes back those above the last one that still has to cross a vlink.
    #[cold]
    fn flush_own(&mut self) {
        let (own, base, carried) = (&*self.own, self.base, &*self.carried);
        self.tx.flush(|at| {
            let spare = spare_index(at)?;
            Some(Waiting::spare(own.get(spare.checked_sub(base)?)?, &carried[spare]))
        });
        *self.top = self.crossings.highest_spare().map_or(base, |highest| base.max(highest + 1));
    }

    /// Whether the switch where a frame came in may have so many more copies made of it.
    fn is_allowed(&self, origin: u8, copies: usize) -> bool {
        let came_in = self.crossings.past(origin).switch;
        let came_in = self.switches.get(came_in.0 as usize).and_then(Option::as_ref);
        came_in.is_none_or(|switch| switch.pay_over_vlinks(copies as u64, self.now))
    }

    /// Whether a further copy of a frame may leave by a port: over a vlink only if the switch where it came in may have it made.
    fn may_cross_too(&self, to: PortIx, head: HeadRef) -> bool {
        let port = self.tx.ports.get(to.0 as usize).and_then(Option::as_ref);
        let is_vlink = port.is_some_and(|port| matches!(port.sink, Sink::Vlink(_)));
        !is_vlink || self.is_allowed(self.origin(head), 1)
    }

    /// Those of a packet's outputs for which the frame that it came from may still be copied, behind a vlink; the others are counted as lost.
    fn paid<'p>(&mut self, index: usize, packet: &Packet<'_>, ports: &'p [PortNo]) -> &'p [PortNo] {
        if self.hops == 0 {
            return ports;
        }
        let origin = self.origin(self.heads[index]);
        // The first copy is the frame itself.
        let more = ports.len() - usize::from(self.copies[index] == 0);
        let paid = match more == 0 || self.is_allowed(origin, more) {
            true => self.crossings.pay(origin, ports.len()),
            false => 0,
        };
        let (paid, unpaid) = ports.split_at(paid);
        unpaid.iter().for_each(|_| self.lose_one(index, packet, DropReason::TooManyCopies));
        if !unpaid.is_empty() {
            self.crossings.cut(origin);
        }
        paid
    }

    /// Adds `head` to what waits for the port, or to what crosses its vlink.
    #[inline]
    fn send(&mut self, to: PortIx, head: HeadRef, packet: &Packet<'_>) {
        let Some(Some(port)) = self.tx.ports.get_mut(to.0 as usize) else { return };
        match port.sink {
            Sink::Queue(_) => {
                self.tx.users[usize::from(head.0)] += 1;
                let entry = Entry::new(head, port.lane(packet.queue)).counted();
                self.tx.pending.push(to, &mut port.chain, entry);
            }
            Sink::Vlink(peer) => self.cross((to, peer), std::iter::once((head, packet))),
        }
    }

    /// Adds heads, none of which is sent elsewhere, to what waits for their ports, up to one whose port has lanes or leads over a vlink.
    /// Returns how many.
    #[inline]
    fn queue_plainly(&mut self, heads: &[HeadRef], numbers: &[PortNo]) -> usize {
        let (numbered, ports, pending) =
            (&self.switch.ports, &mut *self.tx.ports, &mut *self.tx.pending);
        let mut each = heads.iter().zip(numbers);
        let all = each.all(|(&head, &number)| {
            let Some(to) = numbered.get(number) else { return false };
            let Some(Some(port)) = ports.get_mut(to.0 as usize) else { return false };
            let is_plain = port.is_plain();
            if is_plain {
                pending.push(to, &mut port.chain, Entry::new(head, 0));
            }
            is_plain
        });
        heads.len() - each.len() - usize::from(!all)
    }

    /// Sends the first `together` of these packets, none of which is sent elsewhere, by their port. Returns how many were sent: more if
    /// they cross a vlink and others after them cross it too.
    #[inline(never)]
    fn forward_some(
        &mut self,
        first: usize,
        packets: &[&mut Packet<'_>],
        numbers: &[PortNo],
        together: usize,
    ) -> usize {
        let heads = &self.heads[first..][..packets.len()];
        let number = numbers[0];
        let Some(to) = self.switch.ports.get(number) else {
            for (at, packet) in packets[..together].iter().enumerate() {
                self.lose_one(first + at, packet, DropReason::NoPort);
            }
            return together;
        };
        let Some(Some(port)) = self.tx.ports.get_mut(to.0 as usize) else { return together };
        match port.sink {
            Sink::Queue(_) => {
                for (&head, packet) in heads[..together].iter().zip(packets) {
                    let entry = Entry::new(head, port.lane(packet.queue));
                    self.tx.pending.push(to, &mut port.chain, entry);
                }
                together
            }
            Sink::Vlink(peer) => {
                let same = numbers.iter().take_while(|&&other| other == number).count();
                let packets = packets[..same].iter().map(|packet| &**packet);
                self.cross((to, peer), heads.iter().copied().zip(packets));
                same
            }
        }
    }

    /// Sends these frames over the vlink of port `from`.
    #[inline(never)]
    fn cross<'p, 'h: 'p>(
        &mut self,
        (from, into): (PortIx, PortIx),
        frames: impl Iterator<Item = (HeadRef, &'p Packet<'h>)>,
    ) {
        let vlink = self.vlink(from, into);
        let mut sent = Sent::default();
        for (head, packet) in frames {
            let verdict = vlink.and_then(|vlink| self.may_cross(vlink, head, packet));
            match verdict {
                Ok(None) => sent.count(packet.frame_len as usize),
                Ok(Some(crossing)) => {
                    sent.count(packet.frame_len as usize);
                    self.tx.users[usize::from(head.0)] += 1;
                    if let Some(spare) = spare_index(head) {
                        self.parsed[spare] = Parsed { key: packet.key, layers: packet.layers };
                    }
                    self.crossings.push(crossing);
                }
                Err(reason) => self.lose_over(from, (head, packet), reason),
            }
        }
        self.count_at(from, |counters| counters.tx.add(sent));
    }

    /// Ends a frame that does not get over the vlink of port `from`.
    #[cold]
    fn lose_over(
        &mut self,
        from: PortIx,
        (head, packet): (HeadRef, &Packet<'_>),
        reason: DropReason,
    ) {
        let body = self.body(head);
        if let Some(Some(port)) = self.tx.ports.get(from.0 as usize) {
            let drops = self.tx.drops.at(port.shared.at);
            drops.lose(reason, Lost::Frame { head: packet.head.bytes(), body });
            port.shared.counters[self.tx.worker].tx_drops.take(drops);
        }
    }

    /// What a frame meets on a vlink, or why none gets over it.
    fn vlink(&self, from: PortIx, into: PortIx) -> Result<Vlink, DropReason> {
        let end = |ix: PortIx| {
            self.tx.ports.get(ix.0 as usize).and_then(Option::as_ref).ok_or(DropReason::PortDown)
        };
        let (near, far) = (end(from)?, end(into)?);
        if !near.shared.up.load(Relaxed) || !far.shared.up.load(Relaxed) {
            return Err(DropReason::PortDown);
        }
        let (switch, at) = (far.switch, far.shared.at);
        Ok(Vlink { switch, into, at, mtu: near.shared.mtu.load(Relaxed) })
    }

    /// The crossing of one frame, none if it crosses in a later pass, or why it does not get to the other end.
    #[inline]
    fn may_cross(
        &mut self,
        vlink: Vlink,
        head: HeadRef,
        packet: &Packet<'_>,
    ) -> Result<Option<Crossing>, DropReason> {
        let Vlink { switch, into, at, mtu } = vlink;
        match () {
            () if !fits(packet.head, &packet.offload, packet.frame_len, mtu) => {
                Err(DropReason::TooBig)
            }
            () if self.crossings.is_cut(self.origin(head)) => Err(DropReason::TooManyCopies),
            () if !self.crossings.allow(self.origin(head)) => Err(DropReason::TooManyCopies),
            () if self.hops >= HOPS => self.cross_later(vlink, head, packet).map(|()| None),
            () => Ok(Some(Crossing { switch, into, in_port: at.port, head })),
        }
    }

    /// Lets a frame wait at the other end for a later pass.
    #[cold]
    fn cross_later(
        &mut self,
        Vlink { switch, into, at, .. }: Vlink,
        head: HeadRef,
        packet: &Packet<'_>,
    ) -> Result<(), DropReason> {
        let past = self.crossings.past(self.origin(head));
        if past.passes >= PASSES {
            return Err(DropReason::VlinkLoop);
        }
        let frame = (packet.head.bytes(), self.body(head), &packet.offload);
        let waits = self.onward.push(Place { switch, into, at }, past, frame);
        if waits { Ok(()) } else { Err(DropReason::QueueFull) }
    }

    fn count_at(&self, port: PortIx, count: impl FnOnce(&PortBlock)) {
        if let Some(Some(port)) = self.tx.ports.get(port.0 as usize) {
            count(&port.shared.counters[self.tx.worker]);
        }
    }

    /// Queues the packet, or each segment of a large one, for the controllers: how many found room, and how many did not.
    #[inline(never)]
    fn queue_packet_in(&self, index: usize, packet: &Packet<'_>, why: PacketIn) -> (u64, u64) {
        let switch = &self.switch.shared;
        let limit = switch.packet_in_limit(why.max_len);
        let body = self.body(self.heads[index]);
        let may_wait = why.max_len != u16::MAX;
        let pieces = Pieces::of(packet.head.bytes(), body, &packet.offload, may_wait);
        let count = pieces.count();
        let queued = (0..count).take_while(|&piece| {
            let len = pieces.len(piece);
            let places = places(limit.min(len));
            if !switch.quota.take(self.now, places) {
                return false;
            }
            let frame = pieces.take(piece, self.events.memory(), limit);
            self.queue_held(packet, why, (frame, len as u32), places)
        });
        let queued = queued.count() as u64;
        (queued, count as u64 - queued)
    }

    fn queue_held(
        &self,
        packet: &Packet<'_>,
        why: PacketIn,
        (frame, total_len): (HeldFrame, u32),
        places: u32,
    ) -> bool {
        let switch = &self.switch.shared;
        let punt = Punt {
            switch: switch.id,
            in_port: packet.in_port(),
            frame,
            total_len,
            why,
            metadata: packet.key.get(Field::Metadata) as u64,
            tunnel_id: packet.key.get(Field::TunnelId) as u64,
            tun_src: packet.key.get(Field::TunSrc) as u16,
            tun_dst: packet.key.get(Field::TunDst) as u16,
        };
        let fits = self.events.packet_in(switch, punt, places);
        if !fits {
            switch.quota.give_back(places);
        }
        fits
    }
}

impl flow::Sink for Collector<'_, '_> {
    fn more_copies(&self, _: usize) -> u32 {
        // Behind vlinks each is paid before it is made.
        match () {
            () if self.hops > 0 => u32::MAX,
            () if self.switch.pay_at_its_ports(PORTION.into(), self.now) => PORTION,
            () => 0,
        }
    }

    fn output(&mut self, index: usize, packet: &Packet<'_>, ports: &[PortNo], then: Then) {
        if ports.is_empty() {
            return self.lose_one(index, packet, DropReason::NoDestination);
        }
        let ports = self.paid(index, packet, ports);
        if ports.is_empty() {
            return;
        }
        let Some(head) = self.keep(index, packet, then) else {
            return ports
                .iter()
                .for_each(|_| self.lose_one(index, packet, DropReason::TooManyCopies));
        };
        for &number in ports {
            let Some(to) = self.switch.ports.get(number) else {
                self.lose_one(index, packet, DropReason::NoPort);
                continue;
            };
            self.copies[index] += 1;
            if self.copies[index] > self.copies_allowed {
                self.lose_one(index, packet, DropReason::TooManyCopies);
                continue;
            }
            // The first copy is the frame itself. Behind vlinks they are paid already.
            if self.hops == 0 && self.copies[index] > 1 && !self.may_cross_too(to, head) {
                self.lose_one(index, packet, DropReason::TooManyCopies);
                continue;
            }
            self.send(to, head, packet);
        }
    }

    fn forward(&mut self, first: usize, packets: &[&mut Packet<'_>], ports: &[PortNo]) {
        let heads = &self.heads[first..][..packets.len()];
        if heads.iter().fold(0, |bits, head| bits | head.0) >= BATCH as u16 {
            // Some are spare ones: the batch's own have no such bits.
            heads.iter().zip(packets).for_each(|(&head, packet)| self.note(head, packet));
        }
        // Together if all leave by one port, else one by one: where short runs end, the processor cannot guess.
        let differ = ports.iter().fold(0, |differ, port| differ | (port ^ ports[0]));
        if differ == 0 {
            self.forward_some(first, packets, ports, packets.len());
            return;
        }
        let mut at = 0;
        while at < packets.len() {
            at += self.queue_plainly(&heads[at..], &ports[at..]);
            if at < packets.len() {
                at += self.forward_some(first + at, &packets[at..], &ports[at..], 1);
            }
        }
    }

    fn packet_in(&mut self, index: usize, packet: &Packet<'_>, why: PacketIn) {
        if self.tx.taps.is_on() {
            let at = PortAt { switch: self.switch.shared.id, port: packet.in_port() };
            let (head, body) = (packet.head.bytes(), self.body(self.heads[index]));
            let offload = packet.offload;
            let frame = TxFrame { head, body, offload, tunnel_id: 0, tun_dst: 0 };
            self.tx.taps.packet_in(at, self.now, &frame, &why);
        }
        let (queued, lost) = self.queue_packet_in(index, packet, why);
        self.counters().packet_ins.add(queued);
        for _ in 0..lost {
            self.lose_one(index, packet, DropReason::PacketInFull);
        }
    }

    fn lose(&mut self, index: usize, packet: &Packet<'_>, reason: DropReason) {
        match reason {
            DropReason::PortNoReceive => self.refuse(index, packet),
            _ => self.lose_one(index, packet, reason),
        }
    }
}
