//! What a rung does, the slow and obvious way: the oracle for the programs that do it in the kernel.

use crate::{Approach, FlowProgram, OUTSIDE, Patch, Tag, headers, told_apart};
use wire::checksum::{append, fold};
use wire::tunnel::{Datagram, Vxlan};
use wire::{Field, Head, Key, Layers, Offload, PartialChecksum, checksum, eth_type, ip_proto};

/// A frame as it comes to a rung.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Its bytes, tag included.
    pub bytes: Vec<u8>,
    /// The port of the switch that it comes in by.
    pub in_port: u32,
    /// Payload bytes of each segment, if it is a large one.
    pub segment: Option<u16>,
    /// A checksum that is still to be completed.
    pub partial: Option<PartialChecksum>,
}

/// Runs a program on a frame. False, and nothing changed, if the frame is none of its flow or the worker's for another reason.
///
/// Of a flow that comes by a tunnel the frame is the whole packet, as it comes to the underlay's switch.
pub fn apply(program: &FlowProgram, frame: &mut Frame) -> bool {
    let Some(approach) = &program.approach else { return run(program, frame) };
    let Some(mut inside) = opened(approach, frame, program.from.port) else { return false };
    inside.complete();
    if !run(program, &mut inside) {
        return false;
    }
    *frame = Frame { in_port: frame.in_port, ..inside };
    true
}

/// What is in a packet of a tunnel, as it comes in by the tunnel's port, if only constants are around it.
fn opened(approach: &Approach, packet: &Frame, in_port: u32) -> Option<Frame> {
    let bytes = &packet.bytes;
    let (key, layers) = wire::parse(&Head::copy_of(bytes), approach.from.port);
    let is_its = approach.key.matches(&told_apart(&approach.key), &key);
    if !is_its || !is_tag_plain(bytes, &layers) || packet.segment.is_some() {
        return None;
    }
    let mut plain = packet.clone();
    if layers.vlans > 0 {
        plain.untag();
    }
    let offload = Offload { checksum: plain.partial, ..Offload::default() };
    let head = Head::copy_of(&plain.bytes);
    let datagram = Datagram::find(head.bytes(), plain.bytes.len(), &offload)?;
    let payload = plain.bytes.get(datagram.payload)?;
    let is_right = datagram.sum.is_none_or(|sum| fold(append(sum, 0, payload)) == 0xffff);
    let (vxlan, frame) = payload.split_at_checked(Vxlan::LEN)?;
    let is_whole = OUTSIDE + frame.len() == plain.bytes.len();
    if !is_right || !is_whole || *vxlan != (Vxlan { vni: approach.vni }).emit() {
        return None;
    }
    let head = Head::copy_of(frame);
    let (inner, layers) = wire::parse(&head, in_port);
    let outer_ecn = u128::from(datagram.ds & 3);
    let is_kept = outer_ecn == 0 || outer_ecn == inner.get(Field::IpEcn);
    let partial = wire::is_partial(&head, &layers);
    is_kept.then(|| Frame { bytes: frame.to_vec(), in_port, segment: None, partial })
}

/// Runs a program on a frame of its own switch.
fn run(program: &FlowProgram, frame: &mut Frame) -> bool {
    let (key, layers) = wire::parse(&Head::copy_of(&frame.bytes), frame.in_port);
    let patch = Patch::of(program);
    if !is_taken(program, &patch, frame, &key, &layers) {
        return false;
    }
    if layers.vlans > 0 {
        frame.untag();
    }
    let tag = Tag { tpid: eth_type::VLAN, tci: key.0[1] as u16 & 0xefff };
    let stays = (layers.vlans > 0 && !patch.pop).then_some(tag);
    frame.patch(&patch, &key);
    let ecn = headers::ecn(&frame.bytes, key.get(Field::EthType) as u16 == eth_type::IPV6);
    if let Some(tag) = patch.push.or(stays) {
        frame.tag(tag);
    }
    if let Some(underlay) = &program.underlay {
        frame.complete();
        underlay.outside.put_on(&mut frame.bytes, ecn);
    }
    true
}

/// Whether the rung takes it.
fn is_taken(
    program: &FlowProgram,
    patch: &Patch,
    frame: &Frame,
    key: &Key,
    layers: &Layers,
) -> bool {
    let bytes = &frame.bytes;
    let (l3, is_ipv4) = (usize::from(layers.l3), key.get(Field::EthType) as u16 == eth_type::IPV4);
    let (fixed, ttl) = if is_ipv4 { (20, l3 + 8) } else { (40, l3 + 7) };
    is_tag_plain(bytes, layers)
        && (program.underlay.is_none() || frame.segment.is_none())
        && program.key.matches(&told_apart(&program.key), key)
        && layers.l4 != 0
        && layers.payload != 0
        && usize::from(layers.l4) == l3 + fixed
        && (!is_ipv4 || key.get(Field::IpFrag) == 0)
        && (is_ipv4 || key.get(Field::Ipv6Exthdr) == 0)
        && (!patch.dec_ttl || bytes[ttl] > 1)
        && frame.wire_len(layers) <= program.max_len as usize
}

/// Whether it has no tag, or one that rungs know.
fn is_tag_plain(bytes: &[u8], layers: &Layers) -> bool {
    match layers.vlans {
        0 => true,
        1 => bytes[12..14] == [0x81, 0x00] && bytes[14] & 0x10 == 0,
        _ => false,
    }
}

impl Frame {
    /// Completes the checksum that is open.
    fn complete(&mut self) {
        if let Some(open) = self.partial.take() {
            checksum::complete(&mut self.bytes, open).expect("its transport header is there");
        }
    }

    /// Bytes of the frame, or of its longest segment, on a wire.
    fn wire_len(&self, layers: &Layers) -> usize {
        match self.segment {
            None => self.bytes.len(),
            Some(size) => usize::from(layers.payload) + usize::from(size),
        }
    }

    fn untag(&mut self) {
        self.bytes.drain(12..16);
        self.move_partial(-4);
    }

    fn tag(&mut self, Tag { tpid, tci }: Tag) {
        let tag = u32::from(tpid) << 16 | u32::from(tci);
        self.bytes.splice(12..12, tag.to_be_bytes());
        self.move_partial(4);
    }

    fn move_partial(&mut self, bytes: i16) {
        if let Some(partial) = &mut self.partial {
            partial.start = partial.start.wrapping_add_signed(bytes);
        }
    }

    /// Changes the bytes after the tag, which is off.
    fn patch(&mut self, patch: &Patch, key: &Key) {
        for (byte, (keep, put)) in self.bytes.iter_mut().zip(patch.keep.iter().zip(&patch.put)) {
            *byte = *byte & keep | put;
        }
        let is_ipv4 = key.get(Field::EthType) as u16 == eth_type::IPV4;
        let l4 = if is_ipv4 { 34 } else { 54 };
        if is_ipv4 {
            self.add(24, patch.ip_sum);
        }
        if patch.dec_ttl {
            self.bytes[if is_ipv4 { 22 } else { 21 }] -= 1;
            if is_ipv4 {
                self.add(24, !0x0100);
            }
        }
        self.follow(patch, key.get(Field::IpProto) as u8, l4);
    }

    /// Brings the transport's checksum in step.
    fn follow(&mut self, patch: &Patch, proto: u8, l4: u16) {
        let (offset, pseudo) = match proto {
            ip_proto::TCP => (16, patch.pseudo_sum),
            ip_proto::UDP => (6, patch.pseudo_sum),
            ip_proto::ICMPV6 => (2, patch.pseudo_sum),
            _ => return, // ICMP covers no address
        };
        let at = usize::from(l4 + offset);
        if self.partial == Some(PartialChecksum { start: l4, offset }) {
            let sum = checksum::update_partial(self.word(at), 0xffff, u64::from(pseudo));
            return self.put(at, sum);
        }
        let is_udp = proto == ip_proto::UDP;
        if is_udp && self.word(at) == 0 {
            return; // no checksum
        }
        self.add(at, pseudo);
        self.add(at, patch.ports_sum);
        if is_udp && self.word(at) == 0 {
            self.put(at, 0xffff);
        }
    }

    /// Adds to the sum that the checksum at `at` stands for.
    fn add(&mut self, at: usize, sum: u16) {
        let checksum = checksum::update(self.word(at), 0xffff, u64::from(sum));
        self.put(at, checksum);
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn put(&mut self, at: usize, word: u16) {
        self.bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
    }
}
