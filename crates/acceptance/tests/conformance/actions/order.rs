//! The order of the action set (§5.10): the same whatever the order of writing; and what replaces what.

use super::indirect;
use crate::harness::{Bench, Suite, output};
use crate::oracle::{Frame, Framing, Sample, act};
use openflow::{Action, FlowMod, GroupId, Instruction, Match, Oxm, OxmField, PortNo, TableId};

/// The cases.
pub fn cases(suite: &mut Suite) {
    for sample in Sample::IP {
        for framing in [Framing::Untagged, Framing::Vlan, Framing::Qinq, Framing::Mpls] {
            let frame = framing.around(sample);
            for (name, in_order) in sets(&frame) {
                let case = |how| {
                    let (sample, framing) = (sample.name(), framing.name());
                    format!("action_set::{name}::{how}::{sample}::{framing}")
                };
                let backwards: Vec<Action> = in_order.iter().rev().cloned().collect();
                for (how, tables) in [
                    ("in_order", vec![in_order.clone()]),
                    ("backwards", vec![backwards.clone()]),
                    ("a_table_each", backwards.chunks(1).map(<[_]>::to_vec).collect()),
                ] {
                    let (frame, in_order) = (frame.clone(), in_order.clone());
                    suite.case(case(how), move |bench| runs(bench, &tables, &in_order, &frame));
                }
            }
        }
    }
    replacing(suite);
}

/// Action sets in the order of §5.10 for this frame.
fn sets(frame: &Frame) -> Vec<(&'static str, Vec<Action>)> {
    let set = |field, value| Action::SetField(Oxm::exact(field, value));
    let pops = match (frame.tags.is_empty(), frame.shims.first()) {
        (false, _) => vec![Action::PopVlan],
        (true, Some(_)) => vec![Action::CopyTtlIn, Action::PopMpls(frame.payload.eth_type())],
        (true, None) => vec![],
    };
    let mpls = [
        &pops[..],
        &[
            Action::PushMpls(0x8847),
            Action::CopyTtlOut,
            Action::DecMplsTtl,
            set(OxmField::EthDst, 0x0200_00ff_0001),
            set(OxmField::MplsLabel, 0x777),
            Action::SetQueue(0),
        ],
    ];
    let everything = [
        &pops[..],
        &[
            Action::PushMpls(0x8847),
            Action::PushPbb(0x88e7),
            Action::PushVlan(0x88a8),
            set(OxmField::EthDst, 0x0200_00ff_0001),
            set(OxmField::VlanVid, 0x1abc),
            set(OxmField::PbbIsid, 0xf0f0f0),
        ],
    ];
    vec![("mpls", mpls.concat()), ("mpls_pbb_vlan", everything.concat())]
}

/// Each list is written by a table of its own, with the output first.
fn runs(bench: &mut Bench, tables: &[Vec<Action>], in_order: &[Action], frame: &Frame) {
    let mut lists = tables.to_vec();
    lists[0].insert(0, output(2));
    // An action set is checked as a whole where it is written at once; a part of it needs what it needs from the match, so parts that
    // name pushed headers stand together with the push.
    let lists = joined(lists);
    for (at, list) in lists.iter().enumerate() {
        let mut instructions = vec![Instruction::WriteActions(list.clone())];
        if at + 1 < lists.len() {
            instructions.push(Instruction::GotoTable(TableId(at as u8 + 1)));
        }
        let table = TableId(at as u8);
        let fields = super::headers_of(frame);
        bench.add(&FlowMod { table, priority: 1, fields, instructions, ..FlowMod::default() });
    }
    let mut wanted = frame.clone();
    for action in in_order {
        act(&mut wanted, action).unwrap();
    }
    bench.send(1, &frame.bytes()).is_only(2, &wanted.bytes());
}

/// Set-fields and TTL actions of headers that are pushed join the list of the push.
fn joined(lists: Vec<Vec<Action>>) -> Vec<Vec<Action>> {
    let is_push = |action: &Action| {
        matches!(action, Action::PushMpls(_) | Action::PushPbb(_) | Action::PushVlan(_))
    };
    let (mut with_push, rest): (Vec<_>, Vec<_>) = lists.into_iter().partition(|list| {
        list.iter().any(|action| {
            is_push(action)
                || matches!(action, Action::SetField(_) | Action::CopyTtlOut | Action::DecMplsTtl)
        })
    });
    if !with_push.is_empty() {
        with_push = vec![with_push.concat()];
    }
    rest.into_iter().chain(with_push).collect()
}

fn replacing(suite: &mut Suite) {
    let dst = |value| Action::SetField(Oxm::exact(OxmField::EthDst, value));
    let src = |value| Action::SetField(Oxm::exact(OxmField::EthSrc, value));
    for sample in Sample::IP {
        for framing in [Framing::Untagged, Framing::Vlan, Framing::Mpls, Framing::Pbb] {
            let frame = framing.around(sample);
            let mut case = |name: &str, test: fn(&mut Bench, &Frame, [Action; 4])| {
                let frame = frame.clone();
                let actions = [dst(1 << 41 | 1), dst(1 << 41 | 2), src(1 << 41 | 3), output(3)];
                let name = format!("action_set::{name}::{}::{}", sample.name(), framing.name());
                suite.case(name, move |bench| test(bench, &frame, actions));
            };
            case("last_of_a_type_wins", |bench, frame, [first, second, src, to_3]| {
                two_tables(bench, vec![first, output(2)], vec![src.clone(), second.clone(), to_3]);
                let mut wanted = frame.clone();
                act(&mut wanted, &second).unwrap();
                act(&mut wanted, &src).unwrap();
                bench.send(1, &frame.bytes()).is_only(3, &wanted.bytes());
            });
            case("group_wins_over_output", |bench, frame, [first, second, _, to_3]| {
                indirect(bench, vec![second.clone(), output(4)]);
                two_tables(bench, vec![Action::Group(GroupId(1)), first], vec![to_3]);
                let mut wanted = frame.clone();
                act(&mut wanted, &second).unwrap();
                bench.send(1, &frame.bytes()).is_only(4, &wanted.bytes());
            });
            case("apply_comes_before_it", |bench, frame, [first, second, _, to_3]| {
                let instructions = vec![
                    Instruction::ApplyActions(vec![first.clone(), output(2)]),
                    Instruction::WriteActions(vec![second.clone(), to_3]),
                ];
                bench.add(&FlowMod { priority: 1, instructions, ..FlowMod::default() });
                let [mut applied, mut last] = [frame.clone(), frame.clone()];
                act(&mut applied, &first).unwrap();
                act(&mut last, &second).unwrap();
                let wanted = [(2, applied.bytes()), (3, last.bytes())];
                bench.send(1, &frame.bytes()).is_exactly(&wanted);
            });
            case("knows_what_was_applied", |bench, frame, [.., to_3]| {
                let vid = Action::SetField(Oxm::exact(OxmField::VlanVid, 0x1456));
                let instructions = vec![
                    Instruction::ApplyActions(vec![Action::PushVlan(0x8100)]),
                    Instruction::WriteActions(vec![vid.clone(), to_3]),
                ];
                bench.add(&FlowMod { priority: 1, instructions, ..FlowMod::default() });
                let mut wanted = frame.clone();
                act(&mut wanted, &Action::PushVlan(0x8100)).unwrap();
                act(&mut wanted, &vid).unwrap();
                bench.send(1, &frame.bytes()).is_only(3, &wanted.bytes());
            });
            case("cleared", |bench, frame, [first, _, src, to_3]| {
                let write = Instruction::WriteActions(vec![first, output(2)]);
                two(
                    bench,
                    vec![write],
                    vec![
                        Instruction::ClearActions,
                        Instruction::WriteActions(vec![src.clone(), to_3]),
                    ],
                );
                let mut wanted = frame.clone();
                act(&mut wanted, &src).unwrap();
                bench.send(1, &frame.bytes()).is_only(3, &wanted.bytes());
            });
            case("cleared_and_empty_drops", |bench, frame, [first, ..]| {
                let write = Instruction::WriteActions(vec![first, output(2)]);
                two(bench, vec![write], vec![Instruction::ClearActions]);
                bench.send(1, &frame.bytes()).is_nothing();
            });
            case("without_output_drops", |bench, frame, [first, second, src, _]| {
                two_tables(bench, vec![first, src], vec![second]);
                bench.send(1, &frame.bytes()).is_nothing();
            });
            case("outputs_to_the_controller", |bench, frame, [first, ..]| {
                let up = Action::output(PortNo::CONTROLLER);
                two_tables(bench, vec![first.clone(), up], vec![]);
                let mut wanted = frame.clone();
                act(&mut wanted, &first).unwrap();
                let packet = bench.send(1, &frame.bytes()).one_packet_in();
                assert_eq!(packet.data, wanted.bytes());
            });
        }
    }
}

fn two_tables(bench: &mut Bench, first: Vec<Action>, second: Vec<Action>) {
    two(bench, vec![Instruction::WriteActions(first)], vec![Instruction::WriteActions(second)]);
}

/// Tables 0 and 1, one entry each.
fn two(bench: &mut Bench, mut first: Vec<Instruction>, second: Vec<Instruction>) {
    first.push(Instruction::GotoTable(TableId(1)));
    for (table, instructions) in [(0, first), (1, second)] {
        let fields = Match::default();
        let table = TableId(table);
        bench.add(&FlowMod { table, priority: 1, fields, instructions, ..FlowMod::default() });
    }
}
