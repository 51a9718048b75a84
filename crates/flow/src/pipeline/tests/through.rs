//! What is said of packets unseen holds of each of them.

use super::*;
use crate::{MeterConfig, MeterMod, MeterUnit};
use wire::build::{Frame, Ipv4, Ipv6};

fn through(snapshot: &Snapshot, cache: &mut Workspace, in_port: PortNo) -> Option<PortNo> {
    snapshot.decide_port(cache, in_port).map(|through| through.port())
}

fn decide_batch(snapshot: &Snapshot, cache: &mut Workspace, heads: &[Head]) -> Option<PortNo> {
    snapshot.decide_batch(cache, 1, heads.iter()).map(|through| through.port())
}

/// UDP over IPv4 to this address and port.
pub(super) fn head(dst: [u8; 4], port: u16) -> Head {
    let ipv4 = Ipv4 { dst: dst.into(), ..Ipv4::default() };
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(ipv4).udp(port, port).payload(&[0; 18]);
    Head::copy_of(&frame.finish())
}

/// A rule that compares these fields.
pub(super) fn rule(priority: u16, fields: &[(Field, u128)], apply: Vec<Action>) -> FlowMod {
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
    let cache = &mut super::cache();
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
    snapshot.decide_port(&mut cache, 1).unwrap().count(&cache, 3, 300, late);
    let mut key = Key::default();
    key.set(Field::InPort, 2);
    send(&snapshot, &mut cache, &[key; 3], late);
    let told = |flow: crate::FlowStats| (flow.packets, flow.bytes, flow.idle_ns);
    let flows: Vec<_> = pipeline.flows(&FlowFilter::default(), late).map(told).collect();
    assert_eq!((flows[0], flows[0].0), (flows[1], 3));
    let stats = pipeline.table_stats(0);
    assert_eq!((stats.lookups, stats.matches), (6, 6));
}

#[test]
fn frames_alike_go_where_the_first_goes() {
    let mut tens = rule(5, &[IN_PORT(1), IPV4, (Field::Ipv4Dst, 10 << 24)], output(2));
    tens.mask.set(Field::Ipv4Dst, 0xff00_0000);
    let mut pipeline = with(std::slice::from_ref(&tens));
    let mut cache = cache();
    let heads = [head([10, 0, 0, 1], 1), head([10, 0, 0, 2], 2), head([10, 9, 9, 9], 3)];
    assert_eq!(decide_batch(&pipeline.snapshot(), &mut cache, &heads), Some(2));
    assert_eq!(decide_batch(&pipeline.snapshot(), &mut cache, &[]), None);
    let arp = Frame::ethernet([2; 6], [4; 6]).eth_type(0x806).payload(&[10; 40]).finish();
    for other in [head([11, 0, 0, 1], 1), Head::copy_of(&arp)] {
        let [first, second, _] = heads.clone();
        let mixed = [first, second, other.clone()];
        assert_eq!(decide_batch(&pipeline.snapshot(), &mut cache, &mixed), None, "not alike");
        assert_eq!(decide_batch(&pipeline.snapshot(), &mut cache, &[other]), None, "a miss");
    }
    // Longer prefixes and edits elsewhere: what the first one finds counts.
    let edits =
        Action::SetField { field: Field::EthSrc, of: None, value: 1, mask: Field::EthSrc.full() };
    let nine = rule(7, &[IPV4, (Field::Ipv4Dst, 0x0a09_0909)], vec![edits, output(3).remove(0)]);
    pipeline.flow_mod(&nine, Nanos(0)).unwrap();
    assert_eq!(decide_batch(&pipeline.snapshot(), &mut cache, &heads), None);
    let same = [heads[0].clone(), head([10, 0, 0, 1], 9)];
    assert_eq!(decide_batch(&pipeline.snapshot(), &mut cache, &same), Some(2));
    assert_eq!(decide_batch(&pipeline.snapshot(), &mut cache, &heads[2..]), None, "edited");
    // A rule on ports: nobody can tell.
    let ports = rule(1, &[IPV4, (Field::IpProto, 17), (Field::TpDst, 53)], output(3));
    pipeline.flow_mod(&ports, Nanos(0)).unwrap();
    assert_eq!(decide_batch(&pipeline.snapshot(), &mut cache, &same), None);
}

#[test]
fn frames_alike_are_counted_as_packets_seen() {
    let mut pipeline = with(&[rule(5, &[IPV4], output(2))]);
    let (snapshot, mut cache) = (pipeline.snapshot(), cache());
    let heads = [head([10, 0, 0, 1], 1), head([10, 0, 0, 2], 2)];
    snapshot.decide_batch(&mut cache, 1, heads.iter()).unwrap().count(&cache, 2, 120, Nanos(7));
    let told = |flow: crate::FlowStats| (flow.packets, flow.bytes);
    let flows: Vec<_> = pipeline.flows(&FlowFilter::default(), Nanos(9)).map(told).collect();
    assert_eq!(flows, [(2, 120)]);
    let stats = pipeline.table_stats(0);
    assert_eq!((stats.lookups, stats.matches), (2, 2));
}

#[test]
fn packets_like_one_that_was_searched_for_are_known_as_long_as_the_tables_are() {
    let mut tens = rule(5, &[IN_PORT(1), IPV4, (Field::Ipv4Dst, 10 << 24)], output(2));
    tens.mask.set(Field::Ipv4Dst, 0xff00_0000);
    let mut pipeline = with(std::slice::from_ref(&tens));
    let (snapshot, mut cache) = (pipeline.snapshot(), cache());
    let through = |snapshot: &Snapshot, cache: &Workspace, in_port| {
        let (through, pattern) = snapshot.decide_pattern(cache, in_port)?;
        let holds = |dst| pattern.holds(head(dst, 1).bytes());
        Some((through.port(), holds([10, 9, 8, 7]), holds([11, 0, 0, 1])))
    };
    assert_eq!(through(&snapshot, &cache, 1), None);
    assert!(snapshot.learn_pattern(&mut cache, 1, &head([11, 0, 0, 1], 1)).is_none(), "a miss");
    assert!(snapshot.learn_pattern(&mut cache, 1, &head([10, 0, 0, 1], 1)).is_some());
    assert_eq!(through(&snapshot, &cache, 1), Some((2, true, false)));
    assert_eq!(through(&snapshot, &cache, 3), None, "another port");
    snapshot.decide_pattern(&cache, 1).unwrap().0.count(&cache, 3, 180, Nanos(7));
    let told = |flow: crate::FlowStats| (flow.packets, flow.bytes);
    let flows: Vec<_> = pipeline.flows(&FlowFilter::default(), Nanos(9)).map(told).collect();
    assert_eq!(flows, [(3, 180)]);
    // A longer prefix, elsewhere: what was known is not believed any more, and to be like means more.
    let nine = rule(7, &[IPV4, (Field::Ipv4Dst, 0x0a09_0807)], output(3));
    pipeline.flow_mod(&nine, Nanos(0)).unwrap();
    let snapshot = pipeline.snapshot();
    assert_eq!(through(&snapshot, &cache, 1), None);
    assert!(snapshot.learn_pattern(&mut cache, 1, &head([10, 0, 0, 1], 1)).is_some());
    assert_eq!(through(&snapshot, &cache, 1), Some((2, false, false)));
    assert!(snapshot.tries_pattern(&mut cache, 1) && !snapshot.tries_pattern(&mut cache, 1));
    snapshot.pattern_matched(&mut cache, 1);
    assert!(snapshot.tries_pattern(&mut cache, 1));
    // A rule on ports: nobody can tell.
    let ports = rule(1, &[IPV4, (Field::IpProto, 17), (Field::TpDst, 53)], output(3));
    pipeline.flow_mod(&ports, Nanos(0)).unwrap();
    let snapshot = pipeline.snapshot();
    assert!(snapshot.learn_pattern(&mut cache, 1, &head([10, 0, 0, 1], 1)).is_none());
    snapshot.pattern_matched(&mut cache, 1);
    assert!(!snapshot.tries_pattern(&mut cache, 1));
}

const LOOKED_AT: [Field; 7] = [
    Field::InPort,
    Field::EthDst,
    Field::EthType,
    Field::VlanVid,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TpDst,
];

/// Rules on what some frame has, under masks of their own.
fn rules_on(frames: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<FlowMod>> {
    let fields = prop::sample::subsequence(&LOOKED_AT[..], 0..4);
    let output = prop_oneof![(2_u32..5).prop_map(Output::Port), Just(Output::Flood)];
    let rule = (0..frames.len(), fields, 0_u32..33, output, 1_u16..5);
    vec(rule, 1..5).prop_map(move |rules| {
        let rule = |(frame, fields, len, output, priority): (usize, Vec<Field>, u32, _, _)| {
            let (key, _) = wire::parse(&Head::copy_of(&frames[frame]), 1);
            let mut mask = Key::default();
            for field in fields {
                let prefix = field.full() & !(field.full() >> (len % field.bits()));
                let is_address = matches!(field, Field::Ipv4Src | Field::Ipv4Dst);
                mask.set(field, if is_address { prefix } else { field.full() });
                mask.set(Field::EthType, Field::EthType.full());
                if field == Field::TpDst {
                    mask.set(Field::IpProto, Field::IpProto.full());
                }
            }
            let apply = vec![Action::Output(output)];
            let instructions = Instructions { apply, ..Instructions::default() };
            FlowMod { key: key.masked(&mask), mask, priority, instructions, ..FlowMod::default() }
        };
        rules.into_iter().map(rule).collect()
    })
}

/// Frames of few kinds, so that many are alike.
fn few_kinds() -> Vec<Vec<u8>> {
    let plain = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 128, 0, 1], [138, 0, 0, 1]];
    let mut frames: Vec<_> =
        plain.iter().flat_map(|&dst| [1, 2].map(|port| head(dst, port).bytes().to_vec())).collect();
    let ethernet = || Frame::ethernet([2; 6], [4; 6]);
    frames.push(
        ethernet().vlan(0x8100, 7).ipv4(Ipv4::default()).udp(1, 2).payload(&[0; 18]).finish(),
    );
    frames.push(ethernet().ipv6(Ipv6::default()).udp(1, 2).payload(&[0; 18]).finish());
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn what_is_told_of_frames_alike_holds_of_each(
        rules in rules_on(few_kinds()),
        batch in vec(0..few_kinds().len(), 1..6),
    ) {
        let mut pipeline = pipeline(32);
        for rule in &rules {
            let _without_prerequisites = pipeline.flow_mod(rule, Nanos(0));
        }
        let (snapshot, mut cache) = (pipeline.snapshot(), cache());
        let kinds = few_kinds();
        let heads: Vec<Head> = batch.iter().map(|&kind| Head::copy_of(&kinds[kind])).collect();
        if let Some(out) = decide_batch(&snapshot, &mut cache, &heads) {
            let keys: Vec<Key> = heads.iter().map(|head| wire::parse(head, 1).0).collect();
            prop_assert_eq!(send(&snapshot, &mut cache, &keys, Nanos(0)), vec![Some(out); keys.len()]);
        }
        if snapshot.learn_pattern(&mut cache, 1, &heads[0]).is_some() {
            let (through, pattern) = snapshot.decide_pattern(&cache, 1).unwrap();
            let (out, alike) = (through.port(), heads.iter().filter(|head| pattern.holds(head.bytes())));
            let keys: Vec<Key> = alike.map(|head| wire::parse(head, 1).0).collect();
            prop_assert_eq!(send(&snapshot, &mut cache, &keys, Nanos(0)), vec![Some(out); keys.len()]);
        }
    }
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
