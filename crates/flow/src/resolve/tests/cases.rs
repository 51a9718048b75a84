//! Single answers, written out.

use super::*;
use crate::action::{Instructions, Output};
use crate::config::Limits;
use crate::flow_mod::{FlowCommand, FlowMod};
use crate::ports::PortState;
use crate::serials::Serials;
use wire::{Field, VLAN_PRESENT};

const ALL: Key = Key([u64::MAX; wire::WORDS]);

fn switch() -> Pipeline {
    switch_with(&Serials::default())
}

fn switch_with(serials: &Serials) -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), serials);
    pipeline.set_ports((1..=4).map(PortState::up).collect());
    pipeline
}

fn key(fields: &[(Field, u128)]) -> Key {
    let mut key = Key::default();
    fields.iter().for_each(|&(field, value)| key.set(field, value));
    key
}

fn mask(fields: &[(Field, u128)]) -> Key {
    let full: Vec<_> = fields.iter().map(|&(field, _)| (field, field.full())).collect();
    key(&full)
}

fn rule(table: u8, fields: &[(Field, u128)], apply: &[Action], goto: Option<u8>) -> FlowMod {
    FlowMod {
        table: Some(table),
        key: key(fields),
        mask: mask(fields),
        instructions: Instructions { apply: apply.to_vec(), goto, ..Instructions::default() },
        may_miss_headers: true,
        ..FlowMod::default()
    }
}

fn to(port: PortNo) -> Action {
    Action::Output(Output::Port(port))
}

#[test]
fn a_field_that_is_set_is_no_longer_the_frames() {
    let mut pipeline = switch();
    let set =
        Action::SetField { field: Field::EthDst, of: None, value: 7, mask: Field::EthDst.full() };
    pipeline.flow_mod(&rule(0, &[(Field::InPort, 1)], &[set], Some(1)), NOW).unwrap();
    pipeline.flow_mod(&rule(1, &[(Field::EthDst, 7)], &[to(2)], None), NOW).unwrap();
    let frame = [(Field::InPort, 1)];
    let answer = pipeline.snapshot().resolve(&key(&frame), &mask(&frame), NOW);
    assert_eq!((answer.exit, &answer.edits[..]), (To::Port(2), &[set][..]));
    assert_eq!(answer.looked_at, mask(&frame));
    assert_eq!(answer.entries.iter().map(|hit| hit.table).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn what_lies_below_a_popped_tag_is_not_known_but_below_a_pushed_one() {
    let mut pipeline = switch();
    let vid = |vid: u16| (Field::VlanVid, u128::from(VLAN_PRESENT | vid));
    let actions = [Action::PushVlan(0x8100), Action::PopVlan];
    pipeline.flow_mod(&rule(0, &[(Field::InPort, 1)], &actions, Some(1)), NOW).unwrap();
    pipeline.flow_mod(&rule(0, &[(Field::InPort, 2)], &actions[1..], Some(1)), NOW).unwrap();
    pipeline.flow_mod(&rule(1, &[vid(5)], &[to(3)], None), NOW).unwrap();
    let snapshot = pipeline.snapshot();
    let exit = |port| snapshot.resolve(&key(&[(Field::InPort, port), vid(5)]), &ALL, NOW).exit;
    assert_eq!(exit(1), To::Port(3));
    assert_eq!(exit(2), To::Depends(Field::VlanVid));
}

#[test]
fn where_no_tag_is_popped_it_is_looked_at_that_there_is_none() {
    let mut pipeline = switch();
    pipeline.flow_mod(&rule(0, &[], &[Action::PopVlan], Some(1)), NOW).unwrap();
    pipeline.flow_mod(&rule(1, &[(Field::VlanPcp, 0)], &[to(3)], None), NOW).unwrap();
    let answer = pipeline.snapshot().resolve(&key(&[(Field::InPort, 1)]), &ALL, NOW);
    assert_eq!(answer.exit, To::Port(3));
    // A frame of priority 0 with a tag below, of another priority, goes elsewhere.
    let present = mask(&[(Field::VlanVid, VLAN_PRESENT.into())]);
    assert_eq!(present.without(&answer.looked_at), Key::default());
}

#[test]
fn a_ttl_that_was_set_before_a_header_was_perhaps_popped_depends_on_the_type() {
    for pop in [Action::PopMpls(0x0800), Action::PopPbb] {
        let mut pipeline = switch();
        let edits = [Action::SetNwTtl(0), pop, Action::DecNwTtl, to(2)];
        pipeline.flow_mod(&rule(0, &[], &edits, None), NOW).unwrap();
        let snapshot = pipeline.snapshot();
        let exit = |fields: &[_]| snapshot.resolve(&key(fields), &mask(fields), NOW).exit;
        assert_eq!(exit(&[(Field::InPort, 1)]), To::Depends(Field::EthType), "{pop:?}");
        let ip = [(Field::InPort, 1), (Field::EthType, 0x0800)];
        assert_eq!(exit(&ip), To::Drop(DropReason::TtlExpired), "{pop:?}");
    }
}

#[test]
fn it_names_the_field_that_the_tables_ask_for() {
    let mut pipeline = switch();
    let http = [(Field::EthType, 0x0800), (Field::IpProto, 6), (Field::TpDst, 80)];
    pipeline.flow_mod(&rule(0, &http, &[to(2)], None), NOW).unwrap();
    let snapshot = pipeline.snapshot();
    let exit = |fields: &[_]| snapshot.resolve(&key(fields), &mask(fields), NOW).exit;
    let from = (Field::InPort, 1);
    assert_eq!(exit(&http), To::Depends(Field::InPort));
    assert_eq!(exit(&[from]), To::Depends(Field::EthType));
    assert_eq!(exit(&[from, http[0], http[1]]), To::Depends(Field::TpDst));
    assert_eq!(exit(&[from, http[0], http[1], http[2]]), To::Port(2));
    assert_eq!(
        exit(&[from, (Field::EthType, 0x0806)]),
        To::Drop(DropReason::NoMatch),
        "one bit is enough"
    );
}

#[test]
fn a_change_of_a_table_that_was_not_searched_leaves_it() {
    let serials = Serials::default();
    let mut pipeline = switch_with(&serials);
    pipeline.flow_mod(&rule(0, &[(Field::InPort, 1)], &[to(2)], None), NOW).unwrap();
    pipeline.flow_mod(&rule(1, &[(Field::InPort, 1)], &[to(3)], None), NOW).unwrap();
    let frame = key(&[(Field::InPort, 1)]);
    let stamp = pipeline.snapshot().resolve(&frame, &ALL, NOW).stamp;
    let mut holds_after = |change: &dyn Fn(&mut Pipeline)| {
        change(&mut pipeline);
        pipeline.snapshot().holds(&stamp, NOW)
    };
    let other = rule(1, &[(Field::InPort, 2)], &[to(3)], None);
    assert!(holds_after(&|pipeline| drop(pipeline.flow_mod(&other, NOW))));
    assert!(holds_after(&|pipeline| pipeline.mac_table().learn(0, 2, 3, NOW)));
    let first =
        FlowMod { command: FlowCommand::DeleteStrict, ..rule(0, &[(Field::InPort, 1)], &[], None) };
    assert!(!holds_after(&|pipeline| drop(pipeline.flow_mod(&first, NOW))));
    let mut another = switch_with(&serials);
    another.flow_mod(&other, NOW).unwrap();
    assert!(!another.snapshot().holds(&stamp, NOW), "another switch");
}

#[test]
fn where_a_bridge_sends_it_holds_while_the_station_stays() {
    let mut pipeline = switch();
    pipeline.flow_mod(&rule(0, &[], &[Action::Output(Output::Normal)], None), NOW).unwrap();
    let frame = key(&[(Field::InPort, 1), (Field::EthDst, 2), (Field::EthSrc, 4)]);
    let snapshot = pipeline.snapshot();
    let flood = snapshot.resolve(&frame, &ALL, NOW);
    assert!(matches!(&flood.exit, To::Ports(ports) if ports.len() == 3), "{flood:?}");
    pipeline.mac_table().learn(0, 2, 3, NOW);
    assert!(!snapshot.holds(&flood.stamp, NOW));
    let known = snapshot.resolve(&frame, &ALL, NOW);
    assert_eq!(known.exit, To::Port(3));
    assert!(snapshot.holds(&known.stamp, NOW));
    let aged = NOW.plus_seconds(301);
    assert!(!snapshot.holds(&known.stamp, aged));
    assert_eq!(pipeline.mac_table().lookup(0, 4, NOW), None, "nothing was learned");
}
