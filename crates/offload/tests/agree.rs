//! For random rules and frames: what a rung would do to a frame is what the worker does to it.

use flow::{
    Action, FlowMod, Instructions, Limits, Nanos, Output, Packet, PacketIn, Pipeline, PortAt,
    PortNo, PortState, Serials, Sink, SwitchId, Then, Transport, Workspace, process,
};
use offload::{Declined, Facts, FlowProgram, FlowReason, Frame, LimitId, MAX_LIMITS, apply, known};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use wire::build::{Frame as Build, Ipv4, Ipv6, Tcp};
use wire::{DropReason, Field, Head, Key, Offload, PartialChecksum};

const NOW: Nanos = Nanos(1_000_000_000_000);
const SWITCH: SwitchId = SwitchId(7);
const MTU: u32 = 1500;

/// Ports of one MTU, and meters that are one limit each.
struct World;

impl Facts for World {
    fn mtu(&self, _: PortNo, _: u32) -> Result<u32, Declined> {
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
struct Left(Vec<(PortNo, Vec<u8>, Option<PartialChecksum>)>);

impl Sink for Left {
    fn output(&mut self, _: usize, packet: &Packet<'_>, ports: &[PortNo], _: Then) {
        let sent = |&port| (port, packet.head.bytes().to_vec(), packet.offload.checksum);
        self.0.extend(ports.iter().map(sent));
    }
    fn packet_in(&mut self, _: usize, _: &Packet<'_>, _: PacketIn) {}
    fn lose(&mut self, _: usize, _: &Packet<'_>, _: DropReason) {}
}

fn worker(pipeline: &mut Pipeline, frame: &Frame) -> Left {
    let (mut left, mut head) = (Left::default(), Head::copy_of(&frame.bytes));
    let (key, layers) = wire::parse(&head, frame.in_port);
    let offload = Offload { checksum: frame.partial, ..Offload::default() };
    let frame_len = frame.bytes.len() as u32;
    let mut packet = Packet { head: &mut head, key, layers, offload, frame_len, queue: 0 };
    let mut work = Workspace::new(0, [5, 6], 0);
    process(&pipeline.snapshot(), &mut work, &mut [&mut packet], NOW, &mut left);
    left
}

fn a_frame() -> impl Strategy<Value = Frame> {
    let tags = vec((select(vec![0x8100u16, 0x88a8]), select(vec![1u16, 2, 0x2001, 0x1002])), 0..3);
    let ip = (0u8..3, 0u8..3, 0u8..8, select(vec![0u8, 1, 2, 64]));
    (tags, 0u8..9, ip, (0u16..3, 0u16..3), any::<bool>(), 0usize..40).prop_map(
        |(tags, kind, (from, to, tos, ttl), (src, dst), partial, len)| {
            let mut frame = Build::ethernet([2, 0, 0, 0, 0, to], [2, 0, 0, 0, 0, from]);
            for (tpid, tci) in tags {
                frame = frame.vlan(tpid, tci);
            }
            let address = |at: u8| std::net::Ipv4Addr::new(10, 0, 0, at);
            let wide = |at: u8| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, at.into());
            let v4 = Ipv4 { src: address(from), dst: address(to), tos, ttl, ..Ipv4::default() };
            let v6 = Ipv6 {
                src: wide(from),
                dst: wide(to),
                hop_limit: ttl,
                traffic_class: tos,
                ..Ipv6::default()
            };
            let tcp = Tcp { src, dst, ..Tcp::default() };
            let frame = match kind {
                0 => frame.ipv4(v4).udp(src, dst),
                1 => frame.ipv4(v4).tcp(tcp),
                2 => frame.ipv4(v4).icmp(8, 0),
                3 => frame.ipv6(v6).tcp(tcp),
                4 => frame.ipv6(v6).udp(src, dst),
                5 => frame.ipv6(v6).icmpv6(128, 0),
                6 => frame.ipv4(Ipv4 { fragment: 0x2000, ..v4 }).udp(src, dst),
                7 => frame.ipv4(Ipv4 { options: &[1, 1, 1, 1], ..v4 }).tcp(tcp),
                _ => frame.ipv4(v4).sctp(src, dst),
            };
            let frame = frame.payload(&[len as u8; 40][..len]);
            let whole = || (frame.clone().finish(), None);
            let (bytes, partial) = match partial {
                true => frame
                    .clone()
                    .finish_partial()
                    .map_or_else(whole, |(bytes, sum)| (bytes, Some(sum))),
                false => whole(),
            };
            Frame { bytes, in_port: 1, segment: None, partial }
        },
    )
}

fn a_set() -> impl Strategy<Value = Action> {
    let fields = select(vec![
        (Field::EthDst, 48u32),
        (Field::EthSrc, 48),
        (Field::VlanVid, 12),
        (Field::VlanPcp, 3),
        (Field::IpDscp, 6),
        (Field::Ipv4Src, 32),
        (Field::Ipv4Dst, 32),
        (Field::Ipv6Src, 128),
        (Field::Ipv6Dst, 128),
        (Field::TpSrc, 16),
        (Field::TpDst, 16),
        (Field::IpEcn, 2),
    ]);
    let mask = prop_oneof![3 => Just(u128::MAX), 1 => any::<u128>()];
    (fields, prop_oneof![any::<u128>(), 0u128..3], mask, any::<bool>()).prop_map(
        |((field, bits), value, mask, tcp)| {
            let value = value & field.full() & u128::MAX >> (128 - bits);
            let value = if field == Field::VlanVid { value | 0x1000 } else { value };
            let of = (!Transport::with(field).is_empty()).then_some(if tcp {
                Transport::Tcp
            } else {
                Transport::Udp
            });
            Action::SetField {
                field,
                of,
                value,
                mask: if field == Field::VlanVid { field.full() } else { mask & field.full() },
            }
        },
    )
}

fn an_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => a_set(),
        1 => select(vec![0x8100, 0x88a8]).prop_map(Action::PushVlan),
        1 => Just(Action::EnsureVlan),
        2 => Just(Action::PopVlan),
        2 => Just(Action::DecNwTtl),
        1 => (0u32..4).prop_map(Action::SetQueue),
    ]
}

/// Rules of two tables: the second sees what the first did.
fn rules() -> impl Strategy<Value = Vec<FlowMod>> {
    (vec(an_action(), 0..5), vec(an_action(), 0..4), any::<bool>()).prop_map(
        |(mut first, mut second, one)| {
            let rule = |table, instructions| FlowMod {
                table: Some(table),
                instructions,
                may_miss_headers: true,
                ..FlowMod::default()
            };
            second.push(Action::Output(Output::Port(2)));
            if one {
                first.append(&mut second);
                return vec![rule(0, Instructions { apply: first, ..Instructions::default() })];
            }
            vec![
                rule(0, Instructions { apply: first, goto: Some(1), ..Instructions::default() }),
                rule(1, Instructions { apply: second, ..Instructions::default() }),
            ]
        },
    )
}

fn pipeline(rules: &[FlowMod]) -> Option<Pipeline> {
    let mut pipeline =
        Pipeline::new(Limits { tables: 2, ..Limits::default() }, &Serials::default());
    pipeline.set_ports(vec![PortState::up(1), PortState::up(2)]);
    rules.iter().try_for_each(|rule| pipeline.flow_mod(rule, NOW).map(drop)).ok()?;
    Some(pipeline)
}

fn key_of(frame: &Frame) -> Key {
    wire::parse(&Head::copy_of(&frame.bytes), frame.in_port).0
}

fn program(pipeline: &mut Pipeline, frame: &Frame) -> Result<FlowProgram, Declined> {
    let key = key_of(frame);
    let resolved = pipeline.snapshot().resolve(&key, &known(&key), NOW);
    FlowProgram::of(PortAt { switch: SWITCH, port: frame.in_port }, &key, &resolved, &World)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_rung_does_what_the_worker_does(rules in rules(), frames in vec(a_frame(), 1..8)) {
        let Some(mut pipeline) = pipeline(&rules) else { return Ok(()) };
        for first in &frames {
            let Ok(program) = program(&mut pipeline, first) else { continue };
            for frame in &frames {
                let mut sent = frame.clone();
                if apply(&program, &mut sent) {
                    let growth = sent.bytes.len() as i64 - frame.bytes.len() as i64;
                    prop_assert_eq!(growth, i64::from(program.growth));
                    let left = Left(vec![(program.exit.port, sent.bytes, sent.partial)]);
                    prop_assert_eq!(worker(&mut pipeline, frame), left, "{:?}", program);
                } else {
                    prop_assert_eq!(&sent, frame);
                }
            }
        }
    }

    #[test]
    fn its_own_frame_is_taken_unless_it_is_special(rules in rules(), frame in a_frame()) {
        let Some(mut pipeline) = pipeline(&rules) else { return Ok(()) };
        let Ok(program) = program(&mut pipeline, &frame) else { return Ok(()) };
        let (_, layers) = wire::parse(&Head::copy_of(&frame.bytes), 1);
        let ip = usize::from(layers.ip);
        let is_v4 = frame.bytes[ip] >> 4 == 4;
        let ttl = frame.bytes[ip + if is_v4 { 8 } else { 7 }];
        let tags = usize::from(layers.vlans);
        let special = tags > 1
            || tags == 1 && (frame.bytes[12] != 0x81 || frame.bytes[14] & 0x10 != 0)
            || is_v4 && frame.bytes[ip] != 0x45
            || ttl < 2 && program.edits.contains(&offload::Edit::DecTtl);
        prop_assert_eq!(apply(&program, &mut frame.clone()), !special);
    }
}

#[test]
fn nearly_all_plain_flows_have_a_program() {
    let frame = Build::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
    let bytes = frame.ipv4(Ipv4::default()).tcp(Tcp::default()).finish();
    let frame = Frame { bytes, in_port: 1, segment: None, partial: None };
    let out = |apply| {
        let instructions = Instructions { apply, ..Instructions::default() };
        let mut pipeline =
            pipeline(&[FlowMod { instructions, may_miss_headers: true, ..FlowMod::default() }])
                .unwrap();
        program(&mut pipeline, &frame)
    };
    let to = Action::Output(Output::Port(2));
    assert_eq!(out(vec![to]).unwrap().edits.len(), 0);
    assert_eq!(out(vec![Action::DecNwTtl, to]).unwrap().edits.len(), 1);
    let refused = |apply| out(apply).unwrap_err();
    assert_eq!(refused(vec![]), FlowReason::Dropped.into());
    assert_eq!(
        refused(vec![Action::Output(Output::Controller { max_len: 64 })]),
        FlowReason::ToController.into()
    );
    assert_eq!(
        refused(vec![Action::SetNwTtl(4), to]),
        FlowReason::Edits(offload::EditKind::SetTtl).into()
    );
    assert_eq!(
        refused(vec![Action::PushVlan(0x8100), Action::PushVlan(0x8100), to]),
        FlowReason::Edits(offload::EditKind::TwoTags).into()
    );
}
