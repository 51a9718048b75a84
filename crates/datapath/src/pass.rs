//! One pass: a batch of frames of one source, through its switch, over vlinks through others, out of their ports.
//!
//! Memory is bounded and allocated beforehand (see [`Scratch`]). A call of the pipeline gets as many packets as the list of
//! waiting frames has room for, in the worst case that its switch's number of ports allows; so no verdict depends on how many
//! other frames came in the same batch.

use crate::clock::Clock;
use crate::collect::{Collector, copies_allowed};
use crate::crossing::Crossings;
use crate::event::EventRing;
use crate::heads::{Carried, HEADS, Heads, Parsed, SPARE, spare_at, spare_index};
use crate::local::{LocalPort, LocalSwitch, PortIx, SwitchIx};
use crate::pending::{HeadAt, Pending};
use crate::shape::Backlog;
use crate::touch::Touching;
use crate::transmit::Transmit;
use arrayvec::ArrayVec;
use flow::{Action, Cache, Nanos, Packet, PortNo, Snapshot};
use port::{BATCH, Body, Drops, Sent};
use std::ops::Range;
use wire::{DropReason, Field, Head, Key, Layers, Offload};

/// A worker's memory for passes, used again and again.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) pending: Pending,
    pub(crate) heads: Heads,
    pub(crate) crossings: Crossings,
    pub(crate) drops: Drops,
    /// Ports where frames wait beyond the pass.
    pub(crate) backlog: Backlog,
}

impl Scratch {
    /// Forgets the pass under way, after a panic.
    pub(crate) fn reset(&mut self) {
        self.pending.reset();
        self.heads.top = 0;
        self.crossings.restart();
        self.drops = Drops::default();
        self.backlog.look_again();
    }
}

/// What the pipeline does with the batch.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    /// Send it through the tables.
    Tables,
    /// Apply these actions (a packet-out).
    Actions(&'a [Action]),
}

/// Where the packets of one call of the pipeline come from.
enum Input {
    /// These frames of the batch, received by this port.
    Batch(Range<usize>, PortNo),
    /// These crossings.
    Crossings(Range<usize>),
}

/// A pass under way.
pub(crate) struct Pass<'a, 'f, C> {
    pub(crate) worker: usize,
    pub(crate) clock: &'a C,
    pub(crate) now: Nanos,
    pub(crate) switches: &'a [Option<LocalSwitch>],
    pub(crate) ports: &'a mut [Option<LocalPort>],
    pub(crate) cache: &'a mut Cache,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) heads: &'a mut ArrayVec<&'f mut Head, BATCH>,
    pub(crate) bodies: &'a [Body<'f>],
    pub(crate) offloads: &'a [Offload],
    pub(crate) events: &'a EventRing,
    pub(crate) touching: &'a Touching,
    /// Cycles spent on sending.
    pub(crate) tx_cycles: u64,
}

impl<C: Clock> Pass<'_, '_, C> {
    /// Takes the whole batch, which came in at `in_port` of the switch, to its destinations.
    pub(crate) fn run(&mut self, switch: SwitchIx, in_port: PortNo, work: Work<'_>) {
        self.begin();
        let frames = self.heads.len();
        let mut from = 0;
        while from < frames {
            let Some(limit) = self.make_room(switch, 0) else { break };
            let to = frames.min(from + limit);
            self.pipeline(switch, Input::Batch(from..to, in_port), work, 0);
            self.cross(0, 1);
            from = to;
        }
        self.flush();
    }

    fn begin(&mut self) {
        self.scratch.crossings.restart();
        self.scratch.heads.top = 0;
        let carried = &mut self.scratch.heads.carried[..self.heads.len()];
        for (origin, carried) in carried.iter_mut().enumerate() {
            *carried = Carried { origin: origin as u8, ..Carried::default() };
        }
    }

    /// Works off the crossings from place `from` on and all that follows from them.
    fn cross(&mut self, from: usize, hops: u32) {
        let to = self.scratch.crossings.height();
        if from == to {
            return;
        }
        self.scratch.crossings.group(from);
        let floor = self.scratch.heads.top;
        let mut at = from;
        while at < to {
            let switch = self.scratch.crossings.at(at).switch;
            let Some(limit) = self.make_room(switch, floor) else { break };
            let next = self.scratch.crossings.run(at, to, limit);
            self.enter(switch, at..next);
            self.pipeline(switch, Input::Crossings(at..next), Work::Tables, hops);
            self.cross(to, hops + 1);
            at = next;
        }
        self.scratch.crossings.truncate(from);
    }

    /// How many packets the switch may take now; sends what waits if memory is short. Spare heads from `floor` on have no
    /// user but waiting frames.
    fn make_room(&mut self, switch: SwitchIx, floor: usize) -> Option<usize> {
        let ports = self.switches.get(switch.0 as usize)?.as_ref()?.ports.len();
        let copies = copies_allowed(ports);
        let limit = (self.scratch.pending.capacity() / copies).clamp(1, BATCH);
        let short = self.scratch.heads.top + 2 * BATCH > SPARE;
        if short || self.scratch.pending.room() < limit * copies {
            self.flush();
            self.scratch.heads.top = floor;
        }
        Some(limit)
    }

    /// Counts these crossings in at their ports and gives each a head of its own; without a spare one it is lost.
    fn enter(&mut self, switch: SwitchIx, places: Range<usize>) {
        let Some(Some(switch)) = self.switches.get(switch.0 as usize) else { return };
        let Scratch { heads, crossings, .. } = &mut *self.scratch;
        for place in places {
            let crossing = *crossings.at(place);
            let carried = &mut heads.carried[usize::from(crossing.head.0)];
            if let Some(Some(port)) = self.ports.get(crossing.into.0 as usize) {
                let bytes = u64::from(carried.frame_len);
                port.shared.counters[self.worker].rx.add(Sent { frames: 1, bytes });
            }
            carried.users -= 1;
            if carried.users > 0 {
                let copy = copy_head(heads, self.heads, crossing.head);
                crossings.set_head(place, copy.unwrap_or(HeadAt::NONE));
                if copy.is_none() {
                    switch.counters(self.worker).drops.add(DropReason::TooManyCopies, 1);
                }
            }
        }
    }

    /// Calls the pipeline of one switch.
    fn pipeline(&mut self, switch: SwitchIx, input: Input, work: Work<'_>, hops: u32) {
        let Some(Some(switch)) = self.switches.get(switch.0 as usize) else { return };
        let Scratch { pending, heads, crossings, drops, backlog } = &mut *self.scratch;
        let Heads { spare, top, carried, parsed } = heads;
        let base = *top;
        let (lent, own) = spare.split_at_mut(base);
        let mut packets = ArrayVec::<Packet<'_>, BATCH>::new();
        let mut places = ArrayVec::<HeadAt, BATCH>::new();
        match input {
            Input::Batch(range, in_port) => {
                let (bodies, offloads) =
                    (&self.bodies[range.clone()], &self.offloads[range.clone()]);
                places.extend(range.clone().map(|index| HeadAt(index as u16)));
                let heads = self.heads[range].iter_mut();
                heads.for_each(|head| packets.push(blank(head)));
                for ((packet, body), offload) in packets.iter_mut().zip(bodies).zip(offloads) {
                    receive(packet, body.len(), offload, in_port);
                }
            }
            Input::Crossings(range) => {
                let mut heads = lend(self.heads, lent);
                let entered =
                    crossings.run_at(range).iter().filter(|crossing| crossing.head != HeadAt::NONE);
                places.extend(entered.clone().map(|crossing| crossing.head));
                let taken = places.iter().filter_map(|at| heads[usize::from(at.0)].take());
                taken.for_each(|head| packets.push(blank(head)));
                for (packet, crossing) in packets.iter_mut().zip(entered) {
                    let (index, in_port) =
                        (usize::from(crossing.head.0), port_number(self.ports, crossing.into));
                    enter(packet, &carried[index], &parsed[index], in_port);
                }
            }
        }
        let tables = switch.shared.tables.load();
        let tx = Transmit {
            worker: self.worker,
            now: self.now,
            ports: self.ports,
            pending,
            carried,
            bodies: self.bodies,
            drops,
            touching: self.touching,
            backlog,
        };
        let mut collector = Collector {
            now: self.now,
            switch,
            tx,
            heads: &places,
            parsed,
            own,
            base,
            top,
            crossings,
            hops,
            copies: [0; BATCH],
            copies_allowed: copies_allowed(switch.ports.len()) as u32,
            events: self.events,
        };
        call(&tables, self.cache, &mut packets, self.now, work, &mut collector);
    }

    /// Sends all frames that wait.
    fn flush(&mut self) {
        let begin = self.clock.cycles();
        let Scratch { pending, heads, drops, backlog, .. } = &mut *self.scratch;
        let Heads { spare, carried, .. } = heads;
        let mut tx = Transmit {
            worker: self.worker,
            now: self.now,
            ports: self.ports,
            pending,
            carried,
            bodies: self.bodies,
            drops,
            touching: self.touching,
            backlog,
        };
        let (spare, batch) = (&*spare, &*self.heads);
        tx.flush(|at| match spare_index(at) {
            Some(index) => Some(&spare[index]),
            None => Some(&*batch[usize::from(at.0)]),
        });
        self.tx_cycles += self.clock.cycles() - begin;
    }
}

/// A packet to fill in where it lies: made of constants, because one assembled elsewhere and moved stalls on its own stores.
#[inline]
fn blank(head: &mut Head) -> Packet<'_> {
    let (key, layers, offload) = (Key::default(), Layers::default(), Offload::default());
    Packet { head, key, layers, offload, frame_len: 0, queue: 0 }
}

/// Makes it a frame of the batch.
#[inline]
fn receive(packet: &mut Packet<'_>, body: usize, offload: &Offload, in_port: PortNo) {
    packet.frame_len = (packet.head.bytes().len() + body) as u32;
    packet.offload = *offload;
    packet.key.set(Field::InPort, u128::from(in_port));
    wire::parse_into(packet.head, &mut packet.key, &mut packet.layers);
}

/// Makes it a frame that comes over a vlink: its key is kept. Metadata and tunnel id stay behind: they mean something to the switch
/// that set them, and must not let its owner speak for another.
#[inline]
fn enter(packet: &mut Packet<'_>, carried: &Carried, parsed: &Parsed, in_port: PortNo) {
    packet.frame_len = carried.frame_len;
    packet.offload = carried.offload;
    packet.layers = parsed.layers;
    packet.key = parsed.key;
    packet.key.set(Field::InPort, u128::from(in_port));
    packet.key.set(Field::Metadata, 0);
    packet.key.set(Field::TunnelId, 0);
}

fn port_number(ports: &[Option<LocalPort>], ix: PortIx) -> PortNo {
    ports.get(ix.0 as usize).and_then(Option::as_ref).map_or(0, |port| port.shared.at.port)
}

/// Every head by its place: the batch's, then the spare ones in use.
fn lend<'h>(
    batch: &'h mut ArrayVec<&mut Head, BATCH>,
    spare: &'h mut [Head],
) -> ArrayVec<Option<&'h mut Head>, HEADS> {
    let absent = BATCH - batch.len();
    let mut heads: ArrayVec<_, HEADS> = batch.iter_mut().map(|head| Some(&mut **head)).collect();
    heads.extend((0..absent).map(|_| None));
    heads.extend(spare.iter_mut().map(Some));
    heads
}

/// Copies a head that others still read to a spare one, if there is one.
fn copy_head(
    heads: &mut Heads,
    batch: &ArrayVec<&mut Head, BATCH>,
    from: HeadAt,
) -> Option<HeadAt> {
    let (used, free) = heads.spare.split_at_mut(heads.top);
    let source = match spare_index(from) {
        Some(index) => &used[index],
        None => &*batch[usize::from(from.0)],
    };
    free.first_mut()?.copy_from(source);
    let copy = spare_at(heads.top);
    heads.top += 1;
    let (from, to) = (usize::from(from.0), usize::from(copy.0));
    heads.carried[to] = Carried { users: 0, ..heads.carried[from] };
    heads.parsed[to] = heads.parsed[from];
    Some(copy)
}

fn call(
    tables: &Snapshot,
    cache: &mut Cache,
    packets: &mut [Packet<'_>],
    now: Nanos,
    work: Work<'_>,
    sink: &mut Collector<'_, '_>,
) {
    match work {
        Work::Tables => flow::process(tables, cache, packets, now, sink),
        Work::Actions(actions) => {
            for packet in packets {
                flow::execute(tables, cache, actions, packet, now, sink);
            }
        }
    }
}
