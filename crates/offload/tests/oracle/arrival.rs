//! Packets of a tunnel as they come from the other end, and what is inside as a switch gets it: the slow way.

use super::play::{Left, key_of, program, worker};
use super::tunnel::Tunnel;
use flow::{Action, FlowMod, Instructions, Output, Pipeline, PortNo};
use offload::{Declined, EditKind, FlowProgram, FlowReason, Frame};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use wire::checksum::{append, complete, fold};
use wire::tunnel::{Datagram, Dscp, Vxlan, decapsulate_ds};
use wire::{Field, Head, Offload, is_partial, parse};

/// The tunnel's port at the switch that gets what is inside.
const TUNNEL: PortNo = 1;

/// Rules that bring packets to the host's own address, more or less as they came.
pub fn a_way() -> impl Strategy<Value = Vec<FlowMod>> {
    let actions = prop_oneof![
        4 => Just(vec![]),
        4 => Just(vec![Action::PopVlan]),
        1 => Just(vec![Action::DecNwTtl]),
        1 => Just(vec![Action::PushVlan(0x8100)]),
    ];
    actions.prop_map(|mut apply| {
        apply.push(Action::Output(Output::Port(2)));
        let instructions = Instructions { apply, ..Instructions::default() };
        vec![FlowMod { instructions, may_miss_headers: true, ..FlowMod::default() }]
    })
}

/// What differs from packet to packet.
#[derive(Clone, Debug)]
pub struct Around {
    pub ecn: Option<u8>,
    pub tag: Option<u16>,
    /// 0: none, 1: open, as a host's own; 2: wrong; else right.
    pub sum: u8,
    pub padding: usize,
    pub changes: Vec<(usize, u8)>,
}

pub fn an_around() -> impl Strategy<Value = Around> {
    let ecn = prop_oneof![3 => Just(None), 1 => (0u8..4).prop_map(Some)];
    let tag = prop_oneof![2 => Just(None), 1 => select(vec![1u16, 0x2001, 0x1002]).prop_map(Some)];
    let changes = prop_oneof![4 => Just(Vec::new()), 1 => vec((0usize..60, any::<u8>()), 1..3)];
    let padding = prop_oneof![6 => Just(0usize), 1 => 1usize..20];
    (ecn, tag, 0u8..5, padding, changes).prop_map(|(ecn, tag, sum, padding, changes)| Around {
        ecn,
        tag,
        sum,
        padding,
        changes,
    })
}

impl Around {
    /// The packet with this frame inside. `may_be_open`: whether it may come from a host that leaves its checksum open.
    pub fn packet(&self, tunnel: &Tunnel, frame: &Frame, may_be_open: bool) -> Frame {
        let Self { ecn, tag, sum, padding, ref changes } = *self;
        let (mut bytes, open) = tunnel.unfinished(frame, ecn);
        let mut partial = None;
        match (open, sum) {
            (Some(_), 0) => bytes[40..42].fill(0),
            (Some(open), 1) if may_be_open => partial = Some(open),
            (Some(open), sum) => {
                complete(&mut bytes, open).expect("it is in the frame");
                bytes[41] ^= u8::from(sum == 2);
            }
            (None, _) => {}
        }
        if let Some(tci) = tag {
            bytes.splice(12..12, [[0x81, 0], tci.to_be_bytes()].concat());
            partial.iter_mut().for_each(|open| open.start += 4);
        }
        bytes.extend(vec![0; padding]);
        for &(at, byte) in changes {
            bytes.get_mut(at).into_iter().for_each(|old| *old = byte);
        }
        // A sender that leaves its checksum open leaves it so that it is recognised; what was damaged since is only wrong.
        let head = Head::copy_of(&bytes);
        let partial = partial.filter(|_| is_partial(&head, &parse(&head, 1).1) == partial);
        Frame { bytes, partial, in_port: 1, segment: None }
    }
}

impl Tunnel {
    /// The program of the flow in a packet.
    pub fn program_of(
        &self,
        [inside, underlay]: [&mut Pipeline; 2],
        packet: &Frame,
    ) -> Result<FlowProgram, Declined> {
        let before = program(underlay, packet)?;
        let Some((frame, ds)) = self.inside(packet.clone(), before.growth) else {
            return Err(FlowReason::NoSuchFlow.into());
        };
        let is_other = key_of(&frame).get(Field::IpDscp) as u8 != ds >> 2;
        if self.dscp == Dscp::Uniform && is_other {
            return Err(FlowReason::Edits(EditKind::Set(Field::IpDscp)).into());
        }
        program(inside, &frame)?.out_of(before, self.vni)
    }

    /// What is in a packet of this tunnel, as it is there, and the DS field outside. `growth`: what the switch made of its length.
    fn inside(&self, mut packet: Frame, growth: i16) -> Option<(Frame, u8)> {
        if growth < 0 {
            packet.bytes.drain(12..16);
            packet.partial.iter_mut().for_each(|open| open.start -= 4);
        }
        let (head, len) = (Head::copy_of(&packet.bytes), packet.bytes.len());
        let offload = Offload { checksum: packet.partial, ..Offload::default() };
        let datagram = Datagram::find(head.bytes(), len, &offload)?;
        let payload = &packet.bytes[datagram.payload.clone()];
        let is_right = datagram.sum.is_none_or(|sum| fold(append(sum, 0, payload)) == 0xffff);
        let ends = (datagram.mac, datagram.from, datagram.to, datagram.ports.1);
        let is_its = ends == (self.outer.mac, self.outer.from, self.outer.to, self.outer.port);
        let vni = Vxlan::parse(payload).map(|header| header.vni);
        if !is_right || !is_its || vni != Some(self.vni) {
            return None;
        }
        let bytes = payload[Vxlan::LEN..].to_vec();
        Some((Frame { bytes, in_port: TUNNEL, segment: None, partial: None }, datagram.ds))
    }

    /// What both switches make of a packet that comes in: with all checksums complete.
    pub fn worker_of(&self, [inside, underlay]: [&mut Pipeline; 2], packet: &Frame) -> Left {
        let Left(came) = worker(underlay, packet);
        let frames = came.into_iter().filter_map(|(_, bytes, partial)| {
            let (mut frame, ds) = self.inside(Frame { bytes, partial, ..packet.clone() }, 0)?;
            let head = Head::copy_of(&frame.bytes);
            let (_, layers) = parse(&head, TUNNEL);
            frame.partial = is_partial(&head, &layers);
            decapsulate_ds(&mut frame.bytes, ds, self.dscp).then_some(frame)
        });
        let frames: Vec<Frame> = frames.collect();
        let left = frames.iter().flat_map(|frame| worker(inside, frame).0);
        let left = left.map(|(port, mut bytes, partial)| {
            partial.into_iter().for_each(|open| complete(&mut bytes, open).expect("it is there"));
            (port, bytes, None)
        });
        Left(left.collect())
    }
}
