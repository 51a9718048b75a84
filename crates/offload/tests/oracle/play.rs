//! Rules, their programs, and what the worker makes of frames: what every rung is compared with.

use flow::{
    FlowMod, Limits, Nanos, Packet, PacketIn, Pipeline, PortAt, PortNo, PortState, Serials, Sink,
    SwitchId, Then, Workspace, process,
};
use offload::{Declined, Facts, FlowProgram, FlowReason, Frame, LimitId, MAX_LIMITS, known};
use wire::{DropReason, Head, Key, Offload, PartialChecksum};

pub const NOW: Nanos = Nanos(1_000_000_000_000);
const SWITCH: SwitchId = SwitchId(7);
const MTU: u32 = 1500;

/// Ports of one MTU, and meters that are one limit each.
pub struct World;

impl Facts for World {
    fn mtu(&self, _: PortNo) -> Result<u32, Declined> {
        Ok(MTU)
    }
    fn limits(
        &self,
        meter: u32,
        out: &mut arrayvec::ArrayVec<LimitId, MAX_LIMITS>,
    ) -> Result<(), Declined> {
        out.try_push(LimitId(meter)).map_err(|_| FlowReason::Limits.into())
    }
}

/// What the worker made of a frame.
#[derive(Default, Debug, PartialEq)]
pub struct Left(pub Vec<(PortNo, Vec<u8>, Option<PartialChecksum>)>);

impl Sink for Left {
    fn output(&mut self, _: usize, packet: &Packet<'_>, ports: &[PortNo], _: Then) {
        let sent = |&port| (port, packet.head.bytes().to_vec(), packet.offload.checksum);
        self.0.extend(ports.iter().map(sent));
    }
    fn packet_in(&mut self, _: usize, _: &Packet<'_>, _: PacketIn) {}
    fn lose(&mut self, _: usize, _: &Packet<'_>, _: DropReason) {}
}

pub fn worker(pipeline: &mut Pipeline, frame: &Frame) -> Left {
    let (mut left, mut head) = (Left::default(), Head::copy_of(&frame.bytes));
    let (key, layers) = wire::parse(&head, frame.in_port);
    let offload = Offload { checksum: frame.partial, ..Offload::default() };
    let frame_len = frame.bytes.len() as u32;
    let mut packet = Packet { head: &mut head, key, layers, offload, frame_len, queue: 0 };
    let mut work = Workspace::new(0, [5, 6], 0);
    process(&pipeline.snapshot(), &mut work, &mut [&mut packet], NOW, &mut left);
    left
}

pub fn pipeline(rules: &[FlowMod]) -> Option<Pipeline> {
    let mut pipeline =
        Pipeline::new(Limits { tables: 2, ..Limits::default() }, &Serials::default());
    pipeline.set_ports(vec![PortState::up(1), PortState::up(2)]);
    rules.iter().try_for_each(|rule| pipeline.flow_mod(rule, NOW).map(drop)).ok()?;
    Some(pipeline)
}

pub fn key_of(frame: &Frame) -> Key {
    wire::parse(&Head::copy_of(&frame.bytes), frame.in_port).0
}

pub fn program(pipeline: &mut Pipeline, frame: &Frame) -> Result<FlowProgram, Declined> {
    let key = key_of(frame);
    let resolved = pipeline.snapshot().resolve(&key, &known(&key), NOW);
    FlowProgram::of(PortAt { switch: SWITCH, port: frame.in_port }, &key, &resolved, &World)
}
