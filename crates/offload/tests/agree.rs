//! For random rules and frames: what a rung would do to a frame is what the worker does to it.

mod oracle;

use flow::{Action, FlowMod, Instructions, Output};
use offload::{FlowReason, Frame, apply};
use oracle::arrival::{a_way, an_around};
use oracle::tunnel::a_tunnel;
use oracle::{Left, a_broken_frame, a_frame, pipeline, program, rules, worker};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::Head;
use wire::build::{Frame as Build, Ipv4, Tcp};

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_rung_does_what_the_worker_does(
        rules in rules(),
        frames in vec(prop_oneof![a_frame(), a_broken_frame()], 1..8),
    ) {
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
    fn a_rung_does_what_two_switches_and_a_tunnel_do(
        (inside, underlay) in (rules(), rules()),
        tunnel in a_tunnel(),
        frames in vec(prop_oneof![a_frame(), a_broken_frame()], 1..6),
    ) {
        let Some(mut inside) = pipeline(&inside) else { return Ok(()) };
        let Some(mut underlay) = pipeline(&underlay) else { return Ok(()) };
        for first in &frames {
            let both = [&mut inside, &mut underlay];
            let Ok(program) = tunnel.program(both, first) else { continue };
            for frame in &frames {
                let mut sent = frame.clone();
                if apply(&program, &mut sent) {
                    let left = Left(vec![(program.exit.port, sent.bytes, sent.partial)]);
                    let worker = tunnel.worker([&mut inside, &mut underlay], frame);
                    prop_assert_eq!(worker, left, "{:?}", program);
                } else {
                    prop_assert_eq!(&sent, frame);
                }
            }
        }
    }

    #[test]
    fn a_rung_takes_out_of_a_tunnel_what_two_switches_and_the_tunnel_do(
        (inside, way) in (rules(), a_way()),
        tunnel in a_tunnel(),
        frames in vec(prop_oneof![a_frame(), a_broken_frame()], 1..5),
        arounds in vec(an_around(), 1..5),
    ) {
        let Some(mut inside) = pipeline(&inside) else { return Ok(()) };
        let Some(mut underlay) = pipeline(&way) else { return Ok(()) };
        let frames = frames.iter().zip(arounds.iter().cycle());
        let packets: Vec<Frame> =
            frames.map(|(frame, around)| around.packet(&tunnel, frame, true)).collect();
        for first in &packets {
            let both = [&mut inside, &mut underlay];
            let Ok(program) = tunnel.program_of(both, first) else { continue };
            for packet in &packets {
                let mut sent = packet.clone();
                if apply(&program, &mut sent) {
                    let left = Left(vec![(program.exit.port, sent.bytes, None)]);
                    let worker = tunnel.worker_of([&mut inside, &mut underlay], packet);
                    prop_assert_eq!(worker, left, "{:?}", program);
                } else {
                    prop_assert_eq!(&sent, packet);
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
