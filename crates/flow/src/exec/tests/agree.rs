//! The executor and the model give every packet the same verdicts.

use super::frame::Frame;
use super::model::Model;
use super::recorder::{Sent, Step, Verdicts, run_linear, walk};
use super::{LOCAL, Switch};
use crate::action::{Action, Instructions, Output, PortNo, Transport};
use crate::exec::LinearProgram;
use crate::group::{Bucket, GroupKind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use wire::Field;

fn a_port() -> impl Strategy<Value = PortNo> {
    prop_oneof![8 => 1u32..=7, 1 => Just(99)]
}

fn an_output() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => a_port().prop_map(Output::Port),
        1 => Just(Output::InPort),
        1 => Just(Output::All),
        1 => Just(Output::Flood),
        2 => Just(Output::Normal),
        1 => Just(Output::Local),
        1 => (0u16..200).prop_map(|max_len| Output::Controller { max_len }),
        1 => Just(Output::Table),
    ]
    .prop_map(Action::Output)
}

fn a_set_field() -> impl Strategy<Value = Action> {
    let field = prop_oneof![
        (Just(Field::EthDst), 0u128..8),
        (Just(Field::EthSrc), 0u128..8),
        (Just(Field::VlanVid), 0x1000u128..0x1003),
        (Just(Field::VlanPcp), 0u128..8),
        (Just(Field::MplsLabel), 0u128..9999),
        (Just(Field::IpDscp), 0u128..64),
        (Just(Field::Ipv4Src), 0u128..1 << 32),
        (Just(Field::Ipv4Dst), 0u128..1 << 32),
    ]
    .prop_map(|(field, value)| (field, None, value));
    // Of a transport that the frame has or of another.
    let shared = [Field::TpSrc, Field::TpDst, Field::IcmpType, Field::IcmpCode];
    let shared = select(shared.to_vec()).prop_flat_map(|field| {
        (Just(field), select(Transport::with(field)).prop_map(Some), 0..=field.full())
    });
    prop_oneof![3 => field, 2 => shared].prop_map(|(field, of, value)| Action::SetField {
        field,
        of,
        value,
        mask: field.full(),
    })
}

fn an_edit() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => a_set_field(),
        1 => Just(Action::PushVlan(0x8100)),
        1 => Just(Action::PushVlan(0x88a8)),
        1 => Just(Action::EnsureVlan),
        2 => Just(Action::PopVlan),
        1 => Just(Action::PushMpls(0x8847)),
        1 => Just(Action::PopMpls(0x0800)),
        1 => Just(Action::CopyTtlOut),
        1 => Just(Action::CopyTtlIn),
        1 => any::<u8>().prop_map(Action::SetMplsTtl),
        1 => Just(Action::DecMplsTtl),
        1 => any::<u8>().prop_map(Action::SetNwTtl),
        2 => Just(Action::DecNwTtl),
        1 => (0u32..3).prop_map(Action::SetQueue),
    ]
}

/// Actions that may send to groups below `groups`.
fn actions(groups: u32) -> impl Strategy<Value = Vec<Action>> {
    vec(
        prop_oneof![3 => an_output(), 4 => an_edit(), 1 => (1..=groups).prop_map(Action::Group)],
        0..7,
    )
}

/// Groups 1 to 5; each may send to those before it. Group 6 never exists.
fn groups() -> impl Strategy<Value = Vec<(u32, GroupKind, Vec<Bucket>)>> {
    let kinds = prop_oneof![
        Just(GroupKind::All),
        Just(GroupKind::Indirect),
        Just(GroupKind::FastFailover),
        Just(GroupKind::Select),
    ];
    let lists = |id: u32| {
        vec((vec(prop_oneof![2 => an_output(), 3 => an_edit()], 0..4), 1..=id, any::<bool>()), 1..4)
    };
    let group = move |id: u32| {
        (kinds.clone(), lists(id))
            .prop_map(move |(kind, lists)| (id, kind, buckets(id, kind, lists)))
    };
    (group(1), group(2), group(3), group(4), group(5))
        .prop_map(|(a, b, c, d, e)| vec![a, b, c, d, e])
}

fn buckets(id: u32, kind: GroupKind, lists: Vec<(Vec<Action>, u32, bool)>) -> Vec<Bucket> {
    let bucket = |(at, (mut actions, target, chained)): (usize, (Vec<Action>, u32, bool))| {
        actions.retain(|action| *action != Action::Output(Output::Table));
        if chained && target < id {
            actions.push(Action::Group(target));
        }
        let watch_port = (kind == GroupKind::FastFailover).then_some([5, 2, 1][at]);
        let weight = u16::from(kind == GroupKind::Select && at == 0);
        // Liveness of what a select bucket leads to is tested elsewhere: here it is given.
        let watch_port = watch_port.or((kind == GroupKind::Select).then_some(1));
        Bucket { weight, watch_port, watch_group: None, actions }
    };
    let count = if kind == GroupKind::Indirect { 1 } else { lists.len() };
    lists.into_iter().take(count).enumerate().map(bucket).collect()
}

fn a_frame() -> impl Strategy<Value = Frame> {
    let stations =
        prop_oneof![8 => 0u64..8, 1 => Just(0xffff_ffff_ffff), 1 => Just(0x0180_c200_000e)];
    let sources = prop_oneof![8 => 0u64..8, 1 => Just(0x0100_0000_0001u64)];
    let transport = select(vec![Transport::Udp, Transport::Tcp, Transport::Icmpv4]);
    (stations, sources, 0u16..3, 0u8..4, transport).prop_map(|(dst, src, vid, ttl, transport)| {
        let frame = Frame { ttl, ..Frame::new(dst, src).carrying(transport) };
        if vid == 0 { frame } else { frame.tagged(vid) }
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (actions(6), actions(6), proptest::bool::weighted(0.2));
    vec(step.prop_map(|(apply, write, miss)| Step { meter: None, apply, write, miss }), 1..4)
}

/// Copies of one program step come in no stated order: only that of a flood is left open, so sort what is equal.
fn comparable(mut verdicts: Verdicts) -> Verdicts {
    verdicts
        .sent
        .sort_by(|a: &Sent, b| (a.port, &a.bytes, a.queue).cmp(&(b.port, &b.bytes, b.queue)));
    verdicts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn executor_and_model_agree(
        groups in groups(),
        frames in vec((a_frame(), prop_oneof![8 => 1u32..=7, 1 => Just(LOCAL)], steps()), 1..6),
        invalid_ttl_to_controller: bool,
        for_v10: bool,
    ) {
        let mut switch = Switch { invalid_ttl_to_controller, for_v10, ..Switch::new() };
        for (id, kind, buckets) in &groups {
            switch.add_group(*id, *kind, buckets.clone());
        }
        let mut model = Model::new(&switch, &groups, 1);
        for (frame, in_port, steps) in frames {
            model.in_port = in_port;
            let (verdicts, _) = walk(&switch, &frame, in_port, &steps);
            let expected = model.walk(&frame, &steps);
            prop_assert_eq!(&verdicts.told, &expected.told);
            prop_assert_eq!(comparable(verdicts), comparable(expected));
        }
    }

    #[test]
    fn the_short_way_and_the_model_agree(
        frames in vec((a_frame(), 1u32..=7, a_short_program()), 1..6),
        invalid_ttl_to_controller: bool,
        for_v10: bool,
    ) {
        let switch = Switch { invalid_ttl_to_controller, for_v10, ..Switch::new() };
        let mut model = Model::new(&switch, &[], 1);
        for (frame, in_port, instructions) in frames {
            model.in_port = in_port;
            let Instructions { apply, write, .. } = instructions.clone();
            let expected = model.walk(&frame, &[Step { meter: None, apply, write, miss: false }]);
            let short = run_linear(&switch, &frame, in_port, &instructions);
            let (verdicts, handed_over) = short.expect("edits and one output are a short program");
            prop_assert_eq!(handed_over, !verdicts.sent.is_empty());
            prop_assert_eq!(comparable(verdicts), comparable(expected));
        }
    }
}

/// Edits and then one output, the last of them written to the action set or not.
fn a_short_program() -> impl Strategy<Value = Instructions> {
    let edits = vec(an_edit().prop_filter("waits", |edit| !waits(edit)), 0..5);
    let output = an_output().prop_filter("waits", |output| !waits(output));
    (edits, output, any::<bool>()).prop_map(|(mut apply, output, written)| {
        let mut write = Vec::new();
        if written { &mut write } else { &mut apply }.push(output);
        Instructions { apply, write, ..Instructions::default() }
    })
}

/// Whether an action needs more than its packet and the ports.
fn waits(action: &Action) -> bool {
    matches!(
        action,
        Action::SetQueue(_) | Action::Output(Output::Controller { .. } | Output::Table)
    )
}

#[test]
fn what_needs_copies_a_meter_or_a_queue_has_no_short_form() {
    let to = |port| Action::Output(Output::Port(port));
    let applied = |apply: &[Action]| Instructions { apply: apply.to_vec(), ..Default::default() };
    let long = [
        applied(&[]),
        applied(&[Action::DecNwTtl]),
        applied(&[to(1), to(2)]),
        applied(&[to(1), Action::PopVlan]),
        applied(&[Action::SetQueue(1), to(1)]),
        applied(&[Action::Group(1)]),
        Instructions { meter: Some(1), ..applied(&[to(1)]) },
        Instructions { goto: Some(1), ..applied(&[to(1)]) },
        Instructions { write: vec![to(2)], ..applied(&[to(1)]) },
    ];
    for instructions in long {
        assert!(LinearProgram::of(&instructions).is_none(), "{instructions:?}");
    }
}
