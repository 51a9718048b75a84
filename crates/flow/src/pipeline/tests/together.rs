//! A batch that leaves together is what its packets are that leave one by one.

use super::through::{head, rule};
use super::*;
use wire::build::{Frame, Ipv4, Ipv6};

/// What becomes of each packet: where it is sent, if it is sent once and by one port.
#[derive(Default)]
struct Exits(Vec<Option<PortNo>>);

impl Sink for Exits {
    fn output(&mut self, index: usize, _: &Packet<'_>, ports: &[PortNo], _: Then) {
        self.0[index] = Some(ports[0]).filter(|_| ports.len() == 1);
    }
    fn packet_in(&mut self, _: usize, _: &Packet<'_>, _: PacketIn) {}
    fn lose(&mut self, _: usize, _: &Packet<'_>, _: DropReason) {}
}

fn heads_of(frames: &[Vec<u8>]) -> Vec<Head> {
    frames.iter().map(|frame| Head::copy_of(frame)).collect()
}

/// Packets from port 1 one by one.
fn singly(snapshot: &Snapshot, cache: &mut Workspace, heads: &mut [Head]) -> Vec<Option<PortNo>> {
    let mut exits = Exits(vec![None; heads.len()]);
    let mut packets: Vec<Packet<'_>> = heads
        .iter_mut()
        .map(|head| {
            let (key, layers) = wire::parse(head, 1);
            let frame_len = head.bytes().len() as u32;
            Packet { head, key, layers, offload: Offload::default(), frame_len, queue: 0 }
        })
        .collect();
    let mut packets: Vec<&mut Packet<'_>> = packets.iter_mut().collect();
    process(snapshot, cache, &mut packets, Nanos(7), &mut exits);
    exits.0
}

/// Packets from port 1 together, if they leave together.
fn together(snapshot: &Snapshot, cache: &mut Workspace, heads: &mut [Head]) -> Option<PortNo> {
    let together = snapshot.decide_uniform(cache, 1, heads.iter(), Nanos(7))?;
    let packets = heads.iter_mut().map(|head| {
        let len = head.bytes().len();
        (head, len)
    });
    together.run(cache, packets, Nanos(7));
    Some(together.port())
}

fn route(to: Output) -> Vec<Action> {
    let set = |field: Field, value| Action::SetField { field, of: None, value, mask: field.full() };
    vec![set(Field::EthDst, 6), set(Field::EthSrc, 5), Action::DecNwTtl, Action::Output(to)]
}

fn prefix(third: u128, apply: Vec<Action>) -> FlowMod {
    let network = (Field::Ipv4Dst, 10 << 24 | third << 8);
    let mut rule = rule(5, &[(Field::InPort, 1), (Field::EthType, 0x800), network], apply);
    rule.mask.set(Field::Ipv4Dst, 0xffff_ff00);
    rule
}

/// Ten prefixes that lead one way.
fn router() -> Pipeline {
    let mut pipeline = pipeline(32);
    for third in 0..10 {
        pipeline.flow_mod(&prefix(third, route(Output::Port(2))), Nanos(0)).unwrap();
    }
    pipeline
}

fn to_each_prefix(count: usize) -> Vec<Head> {
    (0..count).map(|n| head([10, 0, (n % 10) as u8, n as u8], 9)).collect()
}

#[test]
fn a_routers_batch_leaves_together_and_is_counted_entry_by_entry() {
    let (mut one, mut other) = (router(), router());
    let (mut heads, mut each) = (to_each_prefix(64), to_each_prefix(64));
    assert_eq!(together(&one.snapshot(), &mut cache(), &mut heads), Some(2));
    assert_eq!(singly(&other.snapshot(), &mut cache(), &mut each), vec![Some(2); 64]);
    let bytes = |heads: &[Head]| heads.iter().map(|head| head.bytes().to_vec()).collect::<Vec<_>>();
    assert_eq!(bytes(&heads), bytes(&each));
    let told = |pipeline: &mut Pipeline| {
        let told = |flow: crate::FlowStats| (flow.packets, flow.bytes, flow.idle_ns);
        pipeline.flows(&FlowFilter::default(), Nanos(9)).map(told).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut one), told(&mut other));
    assert_eq!((told(&mut one)[0].0, told(&mut one)[0].1), (7, 7 * 60));
    let stats = [&mut one, &mut other].map(|pipeline| pipeline.table_stats(0));
    assert_eq!(stats.map(|stats| (stats.lookups, stats.matches)), [(64, 64); 2]);
}

#[test]
fn what_does_not_leave_one_way_is_left_as_it_is() {
    let dying = Ipv4 { dst: [10, 0, 0, 1].into(), ttl: 1, ..Ipv4::default() };
    let dying = Frame::ethernet([2; 6], [4; 6]).ipv4(dying).udp(1, 2).payload(&[0; 18]).finish();
    let strangers = [head([11, 0, 0, 1], 9), Head::copy_of(&dying), head([10, 0, 33, 1], 9)];
    let elsewhere = prefix(33, route(Output::Port(3)));
    for stranger in strangers {
        let mut pipeline = router();
        pipeline.flow_mod(&elsewhere, Nanos(0)).unwrap();
        let mut heads = to_each_prefix(40);
        heads[35] = stranger;
        let before = heads.clone();
        assert_eq!(together(&pipeline.snapshot(), &mut cache(), &mut heads), None);
        assert!(heads.iter().zip(&before).all(|(now, before)| now.bytes() == before.bytes()));
        assert_eq!(pipeline.table_stats(0).lookups, 0);
    }
    for apply in [route(Output::Port(1)), route(Output::Flood), route(Output::Normal)] {
        let mut pipeline = pipeline(32);
        pipeline.flow_mod(&prefix(0, apply), Nanos(0)).unwrap();
        let mut heads = [head([10, 0, 0, 1], 9)];
        assert_eq!(together(&pipeline.snapshot(), &mut cache(), &mut heads), None);
    }
}

#[test]
fn where_it_fails_it_is_tried_ever_more_rarely_until_it_succeeds() {
    let mut pipeline = router();
    let (snapshot, mut cache) = (pipeline.snapshot(), cache());
    let mut tries = |heads: &[Head], count: usize| {
        let told = (0..count).filter_map(|_| {
            let together = snapshot.decide_uniform(&mut cache, 1, heads.iter(), Nanos(7))?;
            together.run(&mut cache, std::iter::empty(), Nanos(7));
            Some(())
        });
        told.count()
    };
    let (good, bad) = (to_each_prefix(2), vec![head([11, 0, 0, 1], 9)]);
    assert_eq!(tries(&good, 5), 5);
    assert_eq!(tries(&bad, 1), 0);
    assert_eq!(tries(&good, 5), 2, "after three that were left alone");
    assert_eq!(tries(&bad, 3000), 0);
    let left_alone = (0..).take_while(|_| tries(&good, 1) == 0).count();
    assert!((1..256).contains(&left_alone), "{left_alone}");
}

/// Frames of few kinds: destinations, TTLs, headers, stations.
fn kinds() -> Vec<Vec<u8>> {
    let ethernet = |source: u8, target: u8| Frame::ethernet([target; 6], [source; 6]);
    let mut frames = Vec::new();
    for (third, ttl) in [(0, 64), (0, 2), (1, 64), (2, 64), (3, 1), (9, 0)] {
        let ipv4 = Ipv4 { dst: [10, 0, third, 7].into(), ttl, ..Ipv4::default() };
        for (source, target) in [(4, 2), (6, 2), (4, 8), (4, 5)] {
            frames.push(ethernet(source, target).ipv4(ipv4).udp(1, 2).payload(&[0; 18]).finish());
        }
        let tagged = ethernet(4, 2).vlan(0x8100, 7);
        frames.push(tagged.ipv4(ipv4).udp(1, 2).payload(&[0; 18]).finish());
    }
    frames.push(ethernet(4, 2).ipv6(Ipv6::default()).udp(1, 2).payload(&[0; 18]).finish());
    frames.push(ethernet(4, 2).eth_type(0x806).payload(&[10; 40]).finish());
    frames
}

fn instructions() -> impl Strategy<Value = Vec<Action>> {
    let to = prop_oneof![
        4 => Just(Output::Port(2)),
        1 => Just(Output::Port(3)),
        1 => Just(Output::Port(1)),
        2 => Just(Output::Normal),
        1 => Just(Output::Flood),
    ];
    (to, 0..4_usize).prop_map(|(to, edits)| match (route(to), edits) {
        (whole, 0) => whole,
        (whole, 1) => whole[2..].to_vec(),
        (whole, 2) => whole[..2].iter().chain(&whole[3..]).copied().collect(),
        (whole, _) => whole[3..].to_vec(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_leaves_together_is_what_leaves_one_by_one(
        rules in vec((0..4_u128, instructions()), 1..4),
        others in prop_oneof![Just(None), instructions().prop_map(Some)],
        batch in vec(0..kinds().len(), 1..48),
        few in 1..6_usize,
    ) {
        let kinds = kinds();
        let frames: Vec<_> = batch.iter().map(|&kind| kinds[kind % (few * 5)].clone()).collect();
        let mut pipelines = [(); 2].map(|()| {
            let mut pipeline = pipeline(32);
            for (third, apply) in &rules {
                pipeline.flow_mod(&prefix(*third, apply.clone()), Nanos(0)).unwrap();
            }
            if let Some(apply) = &others {
                let _without_prerequisites = pipeline.flow_mod(&rule(1, &[], apply.clone()), Nanos(0));
            }
            // Stations of other ports.
            let snapshot = pipeline.snapshot();
            snapshot.macs.learn(0, 0x0202_0202_0202, 2, Nanos(1));
            snapshot.macs.learn(0, 0x0808_0808_0808, 3, Nanos(1));
            pipeline
        });
        let [one, other] = &mut pipelines;
        let (mut heads, mut each) = (heads_of(&frames), heads_of(&frames));
        let exit = together(&one.snapshot(), &mut cache(), &mut heads);
        let exits = singly(&other.snapshot(), &mut cache(), &mut each);
        let Some(exit) = exit else {
            let is_routed = frames.iter().zip(&each).all(|(before, now)| before.len() == now.bytes().len());
            prop_assert!(is_routed);
            return Ok(());
        };
        prop_assert_eq!(exits, vec![Some(exit); frames.len()]);
        for (head, other) in heads.iter().zip(&each) {
            prop_assert_eq!(head.bytes(), other.bytes());
        }
        let told = |pipeline: &mut Pipeline| {
            let told = |flow: crate::FlowStats| (flow.packets, flow.bytes, flow.idle_ns);
            let flows: Vec<_> = pipeline.flows(&FlowFilter::default(), Nanos(9)).map(told).collect();
            let stats = pipeline.table_stats(0);
            (flows, stats.lookups, stats.matches)
        };
        prop_assert_eq!(told(one), told(other));
        let stations = |pipeline: &mut Pipeline| pipeline.snapshot().macs.dump(Nanos(9));
        prop_assert_eq!(stations(one), stations(other));
    }
}

#[test]
fn a_bridges_batch_leaves_together_once_its_stations_are_known() {
    let mut pipeline = pipeline(32);
    pipeline.flow_mod(&rule(0, &[], vec![Action::Output(Output::Normal)]), Nanos(0)).unwrap();
    let (snapshot, mut cache) = (pipeline.snapshot(), cache());
    let mut heads = to_each_prefix(50);
    assert_eq!(together(&snapshot, &mut cache, &mut heads), None, "flooded");
    assert_eq!(snapshot.macs.lookup(0, 0x0404_0404_0404, Nanos(8)), None, "nothing is learned");
    snapshot.macs.learn(0, 0x0202_0202_0202, 3, Nanos(1));
    snapshot.macs.learn(0, 0x0404_0404_0404, 1, Nanos(1));
    let told = (0..4).filter_map(|_| together(&snapshot, &mut cache, &mut heads)).last();
    assert_eq!(told, Some(3));
}
