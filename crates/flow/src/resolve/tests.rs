//! The answer beside what really becomes of frames.

mod agree;
mod cases;
mod world;

use super::*;
use crate::packet::{Packet, PacketIn, PacketInReason, Sink, Then};
use crate::process::{Workspace, process};
use crate::stats::FlowFilter;
use crate::{Pipeline, exec};
use std::collections::BTreeSet;
use wire::{DropReason, EditError, Head, Offload};
use world::Arrival;

/// The time of all packets.
const NOW: Nanos = Nanos(1_000_000_000_000);

/// One frame that left: port or controller, queue, bytes.
type Sent = (Result<PortNo, PacketIn>, u32, Vec<u8>);

/// What really became of a frame.
#[derive(Default, Debug, PartialEq, Eq)]
struct Seen {
    sent: Vec<Sent>,
    discarded: Option<DropReason>,
    lost: Option<DropReason>,
    /// Cookies of the entries that counted it.
    entries: BTreeSet<u64>,
    /// What became of it does not follow from its key alone: a TTL ran out, of the frame or of a copy.
    /// Of several losses the last is told, so what was sent and what should have been both say it.
    ran_out: bool,
}

impl Sink for Seen {
    fn output(&mut self, _: usize, packet: &Packet<'_>, ports: &[PortNo], _: Then) {
        let bytes = packet.head.bytes();
        self.sent.extend(ports.iter().map(|&port| (Ok(port), packet.queue, bytes.to_vec())));
    }
    fn packet_in(&mut self, _: usize, packet: &Packet<'_>, why: PacketIn) {
        self.ran_out |= why.reason == PacketInReason::InvalidTtl;
        self.sent.push((Err(why), packet.queue, packet.head.bytes().to_vec()));
    }
    fn lose(&mut self, _: usize, _: &Packet<'_>, reason: DropReason) {
        let which = if self.sent.is_empty() { &mut self.discarded } else { &mut self.lost };
        *which = Some(reason);
        self.ran_out |= reason == DropReason::TtlExpired;
    }
}

impl Seen {
    fn sorted(mut self) -> Self {
        self.sent.sort_by_cached_key(|sent| format!("{sent:?}"));
        self
    }
}

/// A frame's key.
fn key_of(frame: &[u8], in_port: PortNo) -> Key {
    wire::parse(&Head::copy_of(frame), in_port).0
}

/// Sends a frame through the tables.
fn seen(pipeline: &mut Pipeline, (frame, in_port): &Arrival) -> Seen {
    let snapshot = pipeline.snapshot();
    let counts = |pipeline: &Pipeline| -> Vec<(u64, u64)> {
        let all = FlowFilter::default();
        pipeline.flows(&all, NOW).map(|flow| (flow.cookie, flow.packets)).collect()
    };
    let (before, mut seen) = (counts(pipeline), Seen::default());
    with_packet(frame, *in_port, |packet| {
        let mut work = Workspace::new(0, [5, 6], 0);
        process(&snapshot, &mut work, &mut [packet], NOW, &mut seen);
    });
    let pairs = before.into_iter().zip(counts(pipeline));
    seen.entries =
        pairs.filter(|(before, after)| before != after).map(|(before, _)| before.0).collect();
    seen.sorted()
}

fn with_packet<T>(frame: &[u8], in_port: PortNo, work: impl FnOnce(&mut Packet<'_>) -> T) -> T {
    let mut head = Head::copy_of(frame);
    let (key, layers) = wire::parse(&head, in_port);
    let (offload, frame_len) = (Offload::default(), frame.len() as u32);
    work(&mut Packet { head: &mut head, key, layers, offload, frame_len, queue: 0 })
}

/// What an answer says of one frame; `None` if it depends on what the answer was not told.
fn told(pipeline: &Pipeline, answer: &Resolved, (frame, in_port): &Arrival) -> Option<Seen> {
    let mut seen = Seen { lost: answer.lost, ..Seen::default() };
    let cookie = |hit| pipeline.found(hit, NOW).expect("it is as it was").cookie;
    seen.entries = answer.entries.iter().map(cookie).collect();
    let mut leave = |edits: &[Action], queue: u32, to: &To| {
        let (bytes, ran_out) = edited(edits, frame, *in_port);
        seen.ran_out |= ran_out;
        let mut one = |to| seen.sent.push((to, queue, bytes.clone()));
        match to {
            To::Port(port) => one(Ok(*port)),
            To::Ports(ports) => ports.iter().for_each(|&port| one(Ok(port))),
            To::Controller(why) => one(Err(*why)),
            _ => panic!("{to:?} is no single way to leave"),
        }
    };
    match &answer.exit {
        To::Depends(_) => return None,
        To::Drop(reason) => seen.discarded = Some(*reason),
        To::Several(ways) => ways.iter().for_each(|way| leave(&way.edits, way.queue, &way.to)),
        to => leave(&answer.edits, answer.queue, to),
    }
    Some(seen.sorted())
}

/// A frame's bytes after edits, and whether a TTL ran out on the way.
fn edited(edits: &[Action], frame: &[u8], in_port: PortNo) -> (Vec<u8>, bool) {
    with_packet(frame, in_port, |packet| {
        let mut ran_out = false;
        for action in edits {
            match exec::edit(packet, action) {
                Ok(()) | Err(EditError::NotPresent) => {}
                Err(EditError::TtlExpired) => ran_out = true,
                other => panic!("{action:?}: {other:?}"),
            }
        }
        (packet.head.bytes().to_vec(), ran_out)
    })
}
