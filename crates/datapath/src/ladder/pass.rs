//! Rung `pass`: each frame through its switch, over vlinks through others, out of their ports.
//!
//! Memory is bounded and allocated beforehand (see [`Scratch`]). A call of the pipeline gets as many packets as the list of
//! waiting frames has room for, in the worst case that its switch's number of ports allows; so no verdict depends on how many
//! other frames came in the same batch.

use crate::clock::Clock;
use crate::collect::{Collector, copies_allowed};
use crate::copies::Copies;
use crate::counters::Histogram;
use crate::crossing::Crossings;
use crate::engine::Engine;
use crate::event::EventRing;
use crate::frames::Frames;
use crate::heads::{Carried, Heads, Parsed, SPARE, Waiting, spare_at, spare_index};
use crate::id::{PortAt, PortIx, SwitchIx};
use crate::local::{LocalPort, LocalSwitch};
use crate::onward::Past;
use crate::pending::HeadRef;
use crate::rung::Rung;
use crate::scratch::Scratch;
use crate::taps::Taps;
use crate::touch::Touching;
use crate::transmit::Transmit;
use arrayvec::ArrayVec;
use flow::{Action, Nanos, Packet, PortNo, Snapshot, Workspace};
use port::{Body, Lost, Sent, TxFrame};
use std::ops::Range;
use wire::{BATCH, Depth, DropReason, Field};

/// Work of the pipeline on a batch.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    /// Send it through the tables.
    Tables,
    /// Apply these actions (a packet-out).
    Actions(&'a [Action]),
}

impl Work<'_> {
    /// How far its packets must have been parsed. A packet-out's actions may be any.
    fn depth(self, tables: &Snapshot) -> Depth {
        match self {
            Self::Tables => tables.depth(),
            Self::Actions(_) => Depth::Full,
        }
    }
}

/// Where the packets of one call of the pipeline come from.
enum Input {
    /// These frames of the batch.
    Batch(Range<usize>),
    /// These crossings.
    Crossings(Range<usize>),
}

/// Heads and ingress ports of the packets of a call.
#[derive(Default)]
struct Named {
    places: ArrayVec<HeadRef, BATCH>,
    /// The ports by which they came over vlinks; the batch's packets know theirs.
    in_ports: ArrayVec<PortNo, BATCH>,
}

impl Named {
    #[inline]
    fn fill(&mut self, input: &Input, crossings: &Crossings) {
        match input {
            Input::Batch(range) => {
                self.places.extend(range.clone().map(|index| HeadRef(index as u16)));
            }
            Input::Crossings(range) => {
                let all = crossings.run_at(range.clone()).iter();
                for crossing in all.filter(|crossing| crossing.head != HeadRef::NONE) {
                    self.places.push(crossing.head);
                    self.in_ports.push(crossing.in_port);
                }
            }
        }
    }
}

/// How far packets have come.
#[derive(Clone, Copy)]
struct Progress {
    /// Vlinks crossed.
    hops: u32,
    /// They have been parsed this far.
    depth: Depth,
}

/// When a pass was over, and how much of it was sending, in [`Clock::cycles`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Done {
    pub(crate) at: u64,
    pub(crate) tx_cycles: u64,
}

/// A pass under progress.
pub(crate) struct Pass<'a, 'f, C> {
    pub(crate) worker: usize,
    pub(crate) clock: &'a C,
    pub(crate) now: Nanos,
    /// Tables of the switch that the batch came in at.
    pub(crate) tables: &'a Snapshot,
    pub(crate) switches: &'a [Option<LocalSwitch>],
    pub(crate) ports: &'a mut [Option<LocalPort>],
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) scratch: &'a mut Scratch,
    /// How far the packets have been parsed.
    pub(crate) parsed: Depth,
    /// Vlinks that the batch has crossed.
    pub(super) hops: u32,
    pub(crate) packets: &'a mut [Packet<'f>],
    pub(crate) bodies: &'a [Body<'f>],
    pub(crate) events: &'a EventRing,
    pub(crate) touching: &'a Touching,
    pub(crate) taps: &'a Taps,
    pub(crate) queued: &'a Histogram,
    pub(crate) done: Done,
    /// Bytes of the longest frame.
    pub(crate) longest: u32,
    /// Some switch on the progress may have made frames longer or shorter.
    pub(crate) reshaped: bool,
}

impl<C: Clock> Engine<C> {
    /// Takes frames, which came in at `switch`, to their destinations.
    pub(crate) fn pass(
        &mut self,
        now: Nanos,
        frames: &mut Frames<'_>,
        (switch, tables): (SwitchIx, &Snapshot),
        work: Work<'_>,
    ) -> Done {
        if matches!(work, Work::Tables) {
            self.took(Rung::Pass, frames.received);
            self.world.earn(switch, frames.received.frames);
        }
        let first = frames.packets.first().map(|packet| packet.in_port());
        let past = Past::at(switch, first.unwrap_or_default());
        self.scratch.crossings.set_past(std::iter::repeat(past));
        let mut pass = self.begin(now, frames, tables);
        pass.run(switch, work);
        pass.done
    }

    /// Takes frames on, which have this past and wait before a port of `switch`.
    pub(crate) fn pass_on(
        &mut self,
        now: Nanos,
        frames: &mut Frames<'_>,
        (switch, tables): (SwitchIx, &Snapshot),
        past: impl Iterator<Item = Past>,
    ) -> Done {
        self.scratch.crossings.set_past(past);
        let mut pass = self.begin(now, frames, tables);
        pass.run(switch, Work::Tables);
        pass.done
    }

    #[inline]
    pub(super) fn begin<'a, 'f>(
        &'a mut self,
        now: Nanos,
        frames: &'a mut Frames<'f>,
        tables: &'a Snapshot,
    ) -> Pass<'a, 'f, C> {
        let (switches, ports) = self.world.parts();
        Pass {
            worker: self.number,
            clock: &*self.clock,
            now,
            tables,
            switches,
            ports,
            workspace: &mut self.workspace,
            scratch: &mut self.scratch,
            parsed: frames.parsed,
            hops: 0,
            packets: &mut frames.packets,
            bodies: &frames.bodies,
            events: &self.events,
            touching: &self.touching,
            taps: &self.taps,
            queued: &self.counters.queued,
            done: Done::default(),
            longest: frames.longest,
            reshaped: false,
        }
    }
}

impl<C: Clock> Pass<'_, '_, C> {
    /// Takes the whole batch, which came in at `switch`, to its destinations.
    fn run(&mut self, switch: SwitchIx, work: Work<'_>) {
        self.decide(switch, work);
        self.flush();
    }

    /// Takes the batch through the tables. A port, if that `may_be_whole`: all frames leave there as they lie, and none was sent.
    pub(super) fn run_tables(&mut self, switch: SwitchIx, may_be_whole: bool) -> Option<PortIx> {
        self.decide(switch, Work::Tables);
        let whole = if may_be_whole { self.take_whole() } else { None };
        if whole.is_none() {
            self.flush();
        }
        whole
    }

    fn decide(&mut self, switch: SwitchIx, work: Work<'_>) {
        self.begin();
        let frames = self.packets.len();
        let mut from = 0;
        while from < frames {
            let Some(limit) = self.make_room(switch, 0) else { break };
            let to = frames.min(from + limit);
            let progress = Progress { hops: self.hops, depth: self.parsed };
            let depth = self.pipeline(switch, Input::Batch(from..to), work, progress);
            self.cross(0, Progress { hops: self.hops + 1, depth });
            from = to;
        }
    }

    fn begin(&mut self) {
        self.scratch.crossings.restart(self.hops);
        self.scratch.heads.top = 0;
        self.scratch.heads.users[..self.packets.len()].fill(0);
    }

    /// Works off the crossings from place `from` on and all that follows from them.
    fn cross(&mut self, from: usize, progress: Progress) {
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
            if self.taps.is_on() {
                self.tap_crossings(at..next);
            }
            let depth = self.pipeline(switch, Input::Crossings(at..next), Work::Tables, progress);
            self.cross(to, Progress { hops: progress.hops + 1, depth });
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

    /// Counts these crossings in at their ports and gives each a head of its own. Without a spare one it is lost, as what was cut is.
    fn enter(&mut self, switch: SwitchIx, places: Range<usize>) {
        let Some(Some(switch)) = self.switches.get(switch.0 as usize) else { return };
        let Scratch { heads, crossings, verdicts, .. } = &mut *self.scratch;
        let mut received = Received::default();
        for place in places {
            let crossing = *crossings.at(place);
            let (bytes, origin) = match spare_index(crossing.head) {
                Some(spare) => (heads.carried[spare].frame_len, heads.carried[spare].origin),
                None => {
                    let own = usize::from(crossing.head.0);
                    (self.packets[own].frame_len, own as u8)
                }
            };
            received.count(self.ports, self.worker, crossing.into, bytes);
            let users = &mut heads.users[usize::from(crossing.head.0)];
            *users -= 1;
            let own = match (crossings.is_cut(origin), *users > 0) {
                (true, _) => None,
                (false, false) => continue,
                (false, true) => copy_head(heads, self.packets, crossing.head),
            };
            crossings.set_head(place, own.unwrap_or(HeadRef::NONE));
            if own.is_none() {
                let at = PortAt { switch: switch.shared.id, port: crossing.in_port };
                let head = match spare_index(crossing.head) {
                    Some(spare) => &heads.spare[spare],
                    None => &*self.packets[usize::from(crossing.head.0)].head,
                };
                let lost =
                    Lost::Frame { head: head.bytes(), body: self.bodies[usize::from(origin)] };
                verdicts.at(at).lose(DropReason::TooManyCopies, lost);
                switch.counters(self.worker).drops.take(verdicts);
            }
        }
        received.settle(self.ports, self.worker);
    }

    /// Shows what crossed vlinks: each frame leaves by the one end, and comes in by the other.
    #[cold]
    fn tap_crossings(&self, places: Range<usize>) {
        for crossing in self.scratch.crossings.run_at(places) {
            let (head, origin, offload) = match spare_index(crossing.head) {
                _ if crossing.head == HeadRef::NONE => continue,
                Some(spare) => {
                    let carried = &self.scratch.heads.carried[spare];
                    (&self.scratch.heads.spare[spare], carried.origin, carried.offload)
                }
                None => {
                    let packet = &self.packets[usize::from(crossing.head.0)];
                    (&*packet.head, crossing.head.0 as u8, packet.offload)
                }
            };
            let (head, body) = (head.bytes(), self.bodies[usize::from(origin)]);
            let frame = TxFrame { head, body, offload, tunnel_id: 0, tun_dst: 0 };
            let port = |ix: PortIx| self.ports.get(ix.0 as usize)?.as_ref();
            let Some(far) = port(crossing.into) else { continue };
            let near = far.far_end().and_then(port).map(|near| &*near.shared);
            let switch = self.switches.get(far.switch.0 as usize).and_then(Option::as_ref);
            let tables = switch.map(|switch| switch.shared.tables.load());
            let tables = tables.as_ref().map(|tables| &***tables);
            self.taps.crossed((near, &far.shared), self.now, frame, tables);
        }
    }

    /// Calls the pipeline of one switch. Returns how far its packets have been parsed now.
    fn pipeline(
        &mut self,
        switch: SwitchIx,
        input: Input,
        work: Work<'_>,
        progress: Progress,
    ) -> Depth {
        let Some(Some(switch)) = self.switches.get(switch.0 as usize) else {
            return progress.depth;
        };
        let loaded;
        let tables = match input {
            Input::Batch(_) => self.tables,
            Input::Crossings(_) => {
                loaded = switch.shared.tables.load();
                &**loaded
            }
        };
        let depth = work.depth(tables).max(progress.depth);
        self.reshaped |= tables.reshapes_frames() || matches!(work, Work::Actions(_));
        let Scratch { pending, heads, crossings, drops, verdicts, backlog, onward, .. } =
            &mut *self.scratch;
        let Heads { spare, top, carried, parsed, users } = heads;
        let base = *top;
        let (lent, own) = spare.split_at_mut(base);
        let mut named = Named::default();
        named.fill(&input, crossings);
        let Named { places, in_ports } = &named;
        let is_copy = |&at: &HeadRef| spare_index(at).is_some();
        let mut copies = Copies::default();
        let mut packets = ArrayVec::<&mut Packet<'_>, BATCH>::new();
        match input {
            Input::Batch(range) => packets.extend(&mut self.packets[range]),
            Input::Crossings(_) if places.iter().any(is_copy) => {
                copies.fill(self.packets, (lent, carried, parsed), places);
            }
            Input::Crossings(_) => lend(self.packets, places, &mut packets),
        }
        let tx = Transmit {
            worker: self.worker,
            now: self.now,
            ports: self.ports,
            pending,
            users,
            bodies: self.bodies,
            drops,
            touching: self.touching,
            taps: self.taps,
            queued: self.queued,
            backlog,
        };
        let mut collector = Collector {
            now: self.now,
            switch,
            switches: self.switches,
            tx,
            verdicts,
            heads: places,
            carried,
            parsed,
            own,
            base,
            top,
            crossings,
            onward,
            hops: progress.hops,
            copies: [0; BATCH],
            copies_allowed: copies_allowed(switch.ports.len()) as u32,
            events: self.events,
        };
        let mut call = |packets: &mut [&mut Packet<'_>]| {
            packets.iter_mut().zip(in_ports).for_each(|(packet, &port)| enter(packet, port));
            if depth > progress.depth {
                parse(packets, depth);
            }
            call(tables, self.workspace, packets, self.now, work, &mut collector);
        };
        if copies.is_empty() {
            call(&mut packets);
        } else {
            copies.lend(call);
        }
        switch.counters(self.worker).drops.take(collector.verdicts);
        depth
    }

    /// Sends all frames that wait.
    fn flush(&mut self) {
        let begin = self.clock.cycles();
        let Scratch { pending, heads, drops, backlog, .. } = &mut *self.scratch;
        let Heads { spare, carried, users, .. } = heads;
        let mut tx = Transmit {
            worker: self.worker,
            now: self.now,
            ports: self.ports,
            pending,
            users,
            bodies: self.bodies,
            drops,
            touching: self.touching,
            taps: self.taps,
            queued: self.queued,
            backlog,
        };
        let (spare, carried, packets) = (&*spare, &*carried, &*self.packets);
        tx.flush(|at| match spare_index(at) {
            Some(index) => Some(Waiting::spare(&spare[index], &carried[index])),
            None => Some(Waiting::own(packets, usize::from(at.0))),
        });
        self.done.at = self.clock.cycles();
        self.done.tx_cycles += self.done.at.wrapping_sub(begin);
    }
}

/// Frames that came in over a vlink and are not counted yet.
#[derive(Default)]
struct Received {
    port: Option<PortIx>,
    traffic: Sent,
}

impl Received {
    /// Counts a frame, and what came in at another port before.
    #[inline]
    fn count(&mut self, ports: &[Option<LocalPort>], worker: usize, port: PortIx, bytes: u32) {
        if self.port != Some(port) {
            self.settle(ports, worker);
            *self = Self { port: Some(port), traffic: Sent::default() };
        }
        self.traffic.count(bytes as usize);
    }

    fn settle(&self, ports: &[Option<LocalPort>], worker: usize) {
        let port = self.port.and_then(|port| ports.get(port.0 as usize)?.as_ref());
        if let Some(port) = port {
            port.shared.counters[worker].rx.add(self.traffic);
        }
    }
}

/// Parses packets of which nothing is known yet, or not so much.
fn parse(packets: &mut [&mut Packet<'_>], depth: Depth) {
    for packet in packets {
        let Packet { head, key, layers, .. } = &mut **packet;
        wire::parse_on(head, depth, key, layers);
    }
}

/// Makes it a packet that comes in over a vlink: its key is kept. Metadata, tunnel and queue stay behind: they mean something to the
/// switch that set them, and must not let its owner speak for another.
#[inline]
fn enter(packet: &mut Packet<'_>, in_port: PortNo) {
    packet.queue = 0;
    packet.key.set(Field::InPort, u128::from(in_port));
    packet.key.set(Field::Metadata, 0);
    packet.key.clear_tunnel();
}

/// The batch's own packets of `places`, each there once.
fn lend<'p, 'h>(
    batch: &'p mut [Packet<'h>],
    places: &[HeadRef],
    to: &mut ArrayVec<&'p mut Packet<'h>, BATCH>,
) {
    let mut own = ArrayVec::<Option<&mut Packet<'h>>, BATCH>::new();
    own.extend(batch.iter_mut().map(Some));
    for at in places {
        to.extend(own.get_mut(usize::from(at.0)).and_then(Option::take));
    }
}

/// Copies a head that others still read to a spare one, if there is one.
fn copy_head(heads: &mut Heads, batch: &[Packet<'_>], from: HeadRef) -> Option<HeadRef> {
    let to = heads.top;
    let (used, free) = heads.spare.split_at_mut(to);
    let copy = free.first_mut()?;
    match spare_index(from) {
        Some(index) => {
            copy.copy_from(&used[index]);
            heads.carried[to] = heads.carried[index];
            heads.parsed[to] = heads.parsed[index];
        }
        None => {
            let (origin, packet) = (from.0 as u8, &batch[usize::from(from.0)]);
            let &Packet { offload, frame_len, key, layers, .. } = packet;
            let tunnel = *key.tunnel().0;
            copy.copy_from(packet.head);
            heads.carried[to] = Carried { offload, frame_len, origin, tunnel };
            heads.parsed[to] = Parsed { key, layers };
        }
    }
    heads.users[BATCH + to] = 0;
    heads.top += 1;
    Some(spare_at(to))
}

fn call(
    tables: &Snapshot,
    workspace: &mut Workspace,
    packets: &mut [&mut Packet<'_>],
    now: Nanos,
    work: Work<'_>,
    sink: &mut Collector<'_, '_>,
) {
    match work {
        Work::Tables => flow::process(tables, workspace, packets, now, sink),
        Work::Actions(actions) => {
            for packet in packets {
                flow::execute(tables, workspace, actions, packet, now, sink);
            }
        }
    }
}
