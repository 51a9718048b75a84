//! A batch of packets through a switch.
//!
//! In passes over at most [`LANES`] packets, so that cache misses overlap:
//!
//! 1. *Admit*: ports that do not receive, fragments that are dropped.
//! 2. *Trace* ([`trace`]): look up table by table, all packets of a table together, as far as programs leave the key
//!    as it is. Entries are counted here, runs of packets on one entry together.
//! 3. *Run* ([`walk`]): one packet after the other through the programs found. Where a program edits the packet
//!    before a further table, the rest of its way is looked up then.

mod direct;
mod port_decision;
mod trace;
mod uniform;
mod walk;
mod workspace;

use crate::action::{Action, Output, PortNo};
use crate::config::FragMode;
use crate::exec::{Leaving, Run, leave, packet_out};
use crate::limits::LANES;
use crate::packet::{Packet, Sink};
use crate::snapshot::Snapshot;
use crate::time::Nanos;
pub use port_decision::PortDecision;
pub use uniform::UniformDecision;
use walk::Walker;
use wire::{DropReason, Field, Key, WORDS};
pub use workspace::Workspace;

/// Stands for the keys of packets that a batch does not have.
static EMPTY: Key = Key([0; WORDS]);

/// Sends every packet through the tables; each verdict goes to `sink`, with the packet's place in `packets`.
pub fn process(
    snapshot: &Snapshot,
    work: &mut Workspace,
    packets: &mut [&mut Packet<'_>],
    now: Nanos,
    sink: &mut impl Sink,
) {
    let mut start = 0;
    for batch in packets.chunks_mut(LANES) {
        let size = batch.len();
        process_batch(snapshot, work, batch, now, &mut Shifted { sink, start });
        start += size;
    }
}

/// Looks up and counts at most [`LANES`] packets, and does nothing with them: what a benchmark times.
#[cfg(feature = "bench")]
pub(crate) fn classify(
    snapshot: &Snapshot,
    work: &mut Workspace,
    packets: &[&mut Packet<'_>],
    now: Nanos,
) {
    match snapshot.view.table(0).filter(|view| view.is_last) {
        Some(view) => {
            let found = direct::search(snapshot, view, work, &keys(packets)[..packets.len()]);
            direct::count_only(snapshot, work.worker, packets, &found, now);
        }
        None => {
            trace::trace(snapshot, work, packets, 0, now);
        }
    }
}

/// Applies an action list to one packet (packet-out), whose place is 0.
pub fn execute(
    snapshot: &Snapshot,
    work: &mut Workspace,
    actions: &[Action],
    packet: &mut Packet<'_>,
    now: Nanos,
    sink: &mut impl Sink,
) {
    let env = snapshot.env(now);
    let run = Run::new(&env, 0, packet, sink);
    packet_out(run, actions, &mut Walker::new(snapshot, work.worker, &mut work.scratch, now));
}

fn process_batch(
    snapshot: &Snapshot,
    work: &mut Workspace,
    packets: &mut [&mut Packet<'_>],
    now: Nanos,
    sink: &mut impl Sink,
) {
    let one_port = one_port(packets);
    let refused = admit(snapshot, packets, one_port, sink);
    let keys = keys(packets);
    let keys = &keys[..packets.len()];
    let looked = work.cache.look_up(snapshot, keys, &mut work.traces);
    if refused == 0
        && looked.is_none()
        && let Some(view) = snapshot.view.table(0).filter(|view| view.is_last)
    {
        let found = direct::search(snapshot, view, work, keys);
        return direct::run(snapshot, work, packets, (&found, one_port), now, sink);
    }
    match looked {
        Some(looked) => {
            let hits = looked.hits & !refused;
            trace::count_again(snapshot, work, packets, hits, now);
            let probes = trace::trace(snapshot, work, packets, refused | hits, now);
            work.cache.insert(snapshot, &looked, (&work.traces, packets.len()), refused, probes);
        }
        None => {
            trace::trace(snapshot, work, packets, refused, now);
        }
    }
    let env = snapshot.env(now);
    let Workspace { worker, scratch, traces, .. } = work;
    let mut walker = Walker::new(snapshot, *worker, scratch, now);
    let mut leaving = Leaving::new(sink);
    for index in 0..packets.len() {
        let (this, trace) = (index..index + 1, traces.of(index));
        match trace.forwards_to {
            _ if refused & 1 << index != 0 => {
                leaving.otherwise(packets, this);
            }
            Some(port) => leave(&env, Output::Port(port), this, packets, &mut leaving),
            None => {
                let sink = leaving.otherwise(packets, this);
                walker.follow(Run::new(&env, index, packets[index], sink), trace);
            }
        }
    }
    leaving.finish(packets);
}

/// The packets' keys, with empty ones behind.
fn keys<'k>(packets: &'k [&mut Packet<'_>]) -> [&'k Key; LANES] {
    let mut keys = [&EMPTY; LANES];
    keys.iter_mut().zip(packets).for_each(|(key, packet)| *key = &packet.key);
    keys
}

/// Whether all packets came in by one port.
fn one_port(packets: &[&mut Packet<'_>]) -> bool {
    packets.first().is_none_or(|first| {
        let port = first.in_port();
        packets.iter().fold(0, |differ, packet| differ | (packet.in_port() ^ port)) == 0
    })
}

/// Drops what may not come in. Returns the dropped packets as bits.
fn admit(
    snapshot: &Snapshot,
    packets: &[&mut Packet<'_>],
    one_port: bool,
    sink: &mut impl Sink,
) -> u32 {
    let mut refused = 0;
    let mut refuse = |index: usize, packet: &Packet<'_>, reason| {
        if refused & 1 << index == 0 {
            refused |= 1 << index;
            sink.lose(index, packet, reason);
        }
    };
    if snapshot.config.fragments == FragMode::Drop {
        for (index, packet) in packets.iter().enumerate() {
            if packet.key.get(Field::IpFrag) != 0 {
                refuse(index, packet, DropReason::Fragment);
            }
        }
    }
    let together = if one_port { packets.len() } else { 1 };
    for (n, same) in packets.chunks(together.max(1)).enumerate() {
        if let Err(reason) = snapshot.ports.ingress(same[0].in_port()) {
            same.iter().zip(n..).for_each(|(packet, index)| refuse(index, packet, reason));
        }
    }
    refused
}

/// A sink that counts packets from `start`.
pub(crate) struct Shifted<'s, S> {
    pub sink: &'s mut S,
    pub start: usize,
}

impl<S: Sink> Sink for Shifted<'_, S> {
    fn output(
        &mut self,
        index: usize,
        packet: &Packet<'_>,
        ports: &[crate::PortNo],
        then: crate::Then,
    ) {
        self.sink.output(self.start + index, packet, ports, then);
    }

    fn forward(&mut self, first: usize, packets: &[&mut Packet<'_>], ports: &[PortNo]) {
        self.sink.forward(self.start + first, packets, ports);
    }

    fn packet_in(&mut self, index: usize, packet: &Packet<'_>, why: crate::PacketIn) {
        self.sink.packet_in(self.start + index, packet, why);
    }

    fn lose(&mut self, index: usize, packet: &Packet<'_>, reason: DropReason) {
        self.sink.lose(self.start + index, packet, reason);
    }

    fn more_copies(&self, index: usize) -> u32 {
        self.sink.more_copies(self.start + index)
    }
}
