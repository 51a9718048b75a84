//! A packet while a switch works on it, and where its verdicts go.

use crate::action::PortNo;
use wire::{DropReason, Head, Key, Layers, Offload};

/// One packet in the pipeline: its head, what was parsed from it, and what is still to be done to it.
///
/// The body (bytes after the head) is not here: no action looks at it.
pub struct Packet<'a> {
    /// The private header bytes.
    pub head: &'a mut Head,
    /// The flow key, in step with `head`.
    pub key: Key,
    /// Where the headers are, in step with `head`.
    pub layers: Layers,
    /// Checksum and segmentation state, in step with `head`.
    pub offload: Offload,
    /// Bytes of the whole frame: head and body.
    pub frame_len: u32,
    /// Queue chosen by `set_queue`; 0 = none.
    pub queue: u32,
}

impl Packet<'_> {
    /// Ingress port.
    pub fn in_port(&self) -> PortNo {
        self.key.get(wire::Field::InPort) as PortNo
    }
}

/// Whether a packet may still change after an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// More actions follow: whoever keeps the packet must copy its head.
    More,
    /// Nothing touches the packet again.
    Done,
}

/// Why a packet goes to the controller (OpenFlow 1.3.5 `OFPR_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketInReason {
    /// Table-miss entry.
    NoMatch,
    /// The same at a port that tells of no table miss: only OpenFlow 1.0 hears of it, to which the entry is one like others.
    SilentMiss,
    /// Explicit output to the controller.
    Action,
    /// TTL ran out.
    InvalidTtl,
}

/// What accompanies a packet to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketIn {
    /// Why.
    pub reason: PacketInReason,
    /// Table of the entry.
    pub table: u8,
    /// Cookie of the entry.
    pub cookie: u64,
    /// Most bytes to send; 0xffff = all.
    pub max_len: u16,
}

/// Receives the verdicts of a batch. `index` is the packet's place in the batch given to the pipeline.
pub trait Sink {
    /// The packet leaves, as it is now, by every port of `ports` (numbers of this switch; ingress already excluded where it must be).
    fn output(&mut self, index: usize, packet: &Packet<'_>, ports: &[PortNo], then: Then);

    /// Neighbours, the first of which has place `first`, leave as they are, each by the port beside it: all that becomes of them. The same
    /// as one [`Sink::output`] for each, for a sink that makes more of it.
    fn forward(&mut self, first: usize, packets: &[&mut Packet<'_>], ports: &[PortNo]) {
        for (index, (packet, port)) in packets.iter().zip(ports).enumerate() {
            self.output(first + index, packet, std::slice::from_ref(port), Then::Done);
        }
    }

    /// The packet goes to the controller, as it is now.
    fn packet_in(&mut self, index: usize, packet: &Packet<'_>, why: PacketIn);

    /// The packet, as it is now, is lost, or a copy of it while another left. At most once a packet.
    fn lose(&mut self, index: usize, packet: &Packet<'_>, reason: DropReason);

    /// Copies of the packet that may be made beside those before, which are used up; asked again when these are, too.
    fn more_copies(&self, _index: usize) -> u32 {
        u32::MAX
    }
}
