//! What is said of packets unseen holds of each of them.

use super::*;
use crate::{MeterConfig, MeterMod, MeterUnit};

fn through(snapshot: &Snapshot, cache: &mut Cache, in_port: PortNo) -> Option<PortNo> {
    snapshot.through(cache, in_port).map(|through| through.port())
}

/// A rule that compares these fields.
fn rule(priority: u16, fields: &[(Field, u128)], apply: Vec<Action>) -> FlowMod {
    let (mut key, mut mask) = (Key::default(), Key::default());
    for &(field, value) in fields {
        key.set(field, value);
        mask.set(field, field.full());
    }
    let instructions = Instructions { apply, ..Instructions::default() };
    FlowMod { key, mask, priority, instructions, ..FlowMod::default() }
}

fn output(port: PortNo) -> Vec<Action> {
    vec![Action::Output(Output::Port(port))]
}

fn with(rules: &[FlowMod]) -> Pipeline {
    let mut pipeline = pipeline(32);
    rules.iter().for_each(|rule| drop(pipeline.flow_mod(rule, Nanos(0)).unwrap()));
    pipeline
}

const IN_PORT: fn(u128) -> (Field, u128) = |port| (Field::InPort, port);
const IPV4: (Field, u128) = (Field::EthType, 0x800);

#[test]
fn rules_that_look_at_the_port_alone_are_told_unseen() {
    let rules = [rule(5, &[IN_PORT(1)], output(2)), rule(5, &[IN_PORT(2)], output(1))];
    let (snapshot, cache) = (&with(&rules).snapshot(), &mut cache());
    assert_eq!([1, 2, 3].map(|port| through(snapshot, cache, port)), [Some(2), Some(1), None]);
    let all = with(&[rule(0, &[], output(9))]).snapshot();
    assert_eq!([1, 9].map(|port| through(&all, cache, port)), [Some(9), None]);
}

#[test]
fn rules_that_look_deeper_matter_only_if_they_come_before() {
    let deeper = rule(7, &[IN_PORT(1), IPV4], output(3));
    for (priority, expected) in [(6, None), (7, Some(2)), (8, Some(2))] {
        let mut pipeline = with(&[rule(priority, &[IN_PORT(1)], output(2)), deeper.clone()]);
        assert_eq!(through(&pipeline.snapshot(), &mut cache(), 1), expected, "{priority}");
        let later = FlowMod {
            priority: 9,
            key: rule(0, &[IN_PORT(2), IPV4], vec![]).key,
            ..deeper.clone()
        };
        pipeline.flow_mod(&later, Nanos(0)).unwrap();
        assert_eq!(through(&pipeline.snapshot(), &mut cache(), 1), None, "a rule like it, before");
    }
}

#[test]
fn only_a_bare_output_by_a_port_that_sends_is_told_unseen() {
    let edit =
        Action::SetField { field: Field::EthSrc, of: None, value: 1, mask: Field::EthSrc.full() };
    let two = Action::Output(Output::Port(2));
    let meter = Instructions { meter: Some(1), apply: output(2), ..Instructions::default() };
    let elsewhere = Instructions { goto: Some(1), apply: output(2), ..Instructions::default() };
    let of = |instructions: Instructions| FlowMod { instructions, ..rule(1, &[], vec![]) };
    let apply = |apply| of(Instructions { apply, ..Instructions::default() });
    let mut pipeline = pipeline(32);
    let config = MeterConfig { unit: MeterUnit::Kbps, burst: false, stats: false, bands: vec![] };
    pipeline.meter_mod(MeterMod::Add { id: 1, config }, Nanos(0)).unwrap();
    for change in [
        apply(vec![]),
        apply(vec![edit, two]),
        apply(vec![two, Action::Output(Output::Port(3))]),
        apply(vec![Action::SetQueue(1), two]),
        apply(vec![Action::Output(Output::Flood)]),
        apply(vec![Action::Output(Output::Controller { max_len: 0xffff })]),
        of(meter),
        of(elsewhere),
    ] {
        pipeline.flow_mod(&change, Nanos(0)).unwrap();
        assert_eq!(
            through(&pipeline.snapshot(), &mut cache(), 1),
            None,
            "{:?}",
            change.instructions
        );
    }
    pipeline.flow_mod(&apply(vec![two]), Nanos(0)).unwrap();
    assert_eq!(through(&pipeline.snapshot(), &mut cache(), 1), Some(2));
    let closed = [PortState { no_recv: true, ..PortState::up(1) }, PortState::up(2)];
    let down = [PortState::up(1), PortState { live: false, ..PortState::up(2) }];
    for ports in [closed, down] {
        pipeline.set_ports(ports.to_vec());
        assert_eq!(through(&pipeline.snapshot(), &mut cache(), 1), None);
    }
    pipeline.set_ports(vec![PortState::up(1), PortState::up(2)]);
    pipeline.set_config(SwitchConfig { fragments: FragMode::Drop, ..SwitchConfig::default() });
    assert_eq!(through(&pipeline.snapshot(), &mut cache(), 1), None);
}

#[test]
fn packets_unseen_are_counted_as_packets_seen() {
    let mut pipeline =
        with(&[rule(5, &[IN_PORT(1)], output(2)), rule(5, &[IN_PORT(2)], output(1))]);
    let (snapshot, mut cache) = (pipeline.snapshot(), cache());
    let late = Nanos(1 << 40);
    snapshot.through(&mut cache, 1).unwrap().count(&cache, 3, 300, late);
    let mut key = Key::default();
    key.set(Field::InPort, 2);
    send(&snapshot, &mut cache, &[key; 3], late);
    let told = |flow: crate::FlowStats| (flow.packets, flow.bytes, flow.idle_ns);
    let flows: Vec<_> = pipeline.flows(&FlowFilter::default(), late).map(told).collect();
    assert_eq!((flows[0], flows[0].0), (flows[1], 3));
    let stats = pipeline.table_stats(0);
    assert_eq!((stats.lookups, stats.matches), (6, 6));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_told_unseen_holds_of_every_packet(
        steps in vec(step_strategy(), 1..12),
        keys in vec(key_strategy(), 1..60),
    ) {
        let (mut pipeline, mut cache) = (pipeline(32), cache());
        for step in steps {
            if let Step::Change(change) = step {
                pipeline.flow_mod(&change, Nanos(0)).unwrap();
            }
        }
        let snapshot = pipeline.snapshot();
        for port in 1..=3 {
            let Some(out) = through(&snapshot, &mut cache, port) else { continue };
            let keys: Vec<Key> = keys.iter().filter(|key| key.get(Field::InPort) == u128::from(port)).copied().collect();
            let sent = send(&snapshot, &mut cache, &keys, Nanos(0));
            prop_assert_eq!(sent, vec![Some(out); keys.len()]);
        }
    }
}
