//! Several tables: the cache changes nothing, and nothing costs more probes than promised.

use super::*;

/// A flow-mod for table `table` of three, which leads on or sends.
fn link_strategy() -> impl Strategy<Value = FlowMod> {
    (0_u8..3, key_strategy(), mask_strategy(), 0_u16..8, 2_u32..4000, 0_u8..8, any::<u8>())
        .prop_map(|(table, key, mut mask, priority, port, kind, metadata)| {
            let goto = Some(table + 1 + kind % 2).filter(|&goto| kind < 4 && goto < 3);
            if table > 0 && kind % 3 == 0 {
                mask.set(Field::Metadata, 3);
            }
            let mut key = key;
            key.set(Field::Metadata, u128::from(metadata & 3));
            let output = Action::Output(Output::Port(port));
            let instructions = Instructions {
                apply: if goto.is_none() || kind == 1 { vec![output] } else { vec![] },
                metadata: (kind % 2 == 0)
                    .then_some((metadata.into(), 3))
                    .filter(|_| goto.is_some()),
                goto,
                ..Instructions::default()
            };
            FlowMod { table: Some(table), key, mask, priority, instructions, ..FlowMod::default() }
        })
}

/// Everything a packet's verdict can be, in order.
#[derive(Default, PartialEq, Debug)]
pub(super) struct Verdicts(Vec<(usize, Vec<PortNo>)>);

impl Sink for Verdicts {
    fn output(&mut self, index: usize, _: &Packet<'_>, ports: &[PortNo], _: Then) {
        self.0.push((index, ports.to_vec()));
    }
    fn packet_in(&mut self, _: usize, _: &Packet<'_>, _: PacketIn) {}
    fn lose(&mut self, index: usize, _: &Packet<'_>, _: DropReason) {
        self.0.push((index, vec![]));
    }
}

pub(super) fn verdicts(snapshot: &Snapshot, cache: &mut Workspace, keys: &[Key]) -> Verdicts {
    let mut heads = vec![Head::default(); keys.len()];
    let mut packets: Vec<Packet<'_>> = heads
        .iter_mut()
        .zip(keys)
        .map(|(head, &key)| Packet {
            head,
            key,
            layers: Layers::default(),
            offload: Offload::default(),
            frame_len: 60,
            queue: 0,
        })
        .collect();
    let mut packets: Vec<&mut Packet<'_>> = packets.iter_mut().collect();
    let mut sink = Verdicts::default();
    process(snapshot, cache, &mut packets, Nanos(0), &mut sink);
    sink
}

/// Lookups and matches of every table, and packets of every entry.
type Counts = (Vec<(u64, u64)>, Vec<(u8, Key, Key, u16, u64)>);

fn counts(pipeline: &Pipeline) -> Counts {
    let tables = (0..3)
        .map(|table| pipeline.table_stats(table))
        .map(|stats| (stats.lookups, stats.matches))
        .collect();
    let mut entries: Vec<_> = pipeline
        .flows(&FlowFilter::default(), Nanos(0))
        .map(|flow| (flow.table, flow.mask, flow.key, flow.priority, flow.packets))
        .collect();
    entries.sort_by_key(|&(table, mask, key, priority, _)| (table, mask.0, key.0, priority));
    (tables, entries)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn with_and_without_cache_verdicts_and_counters_are_the_same(
        changes in vec(link_strategy(), 1..120),
        late in vec(link_strategy(), 1..10),
        keys in vec(key_strategy(), 1..80),
    ) {
        let (mut cached, mut plain) = (pipeline(4), pipeline(4));
        let (mut with, mut without) = (Workspace::new(0, [1, 2], 64), Workspace::new(0, [1, 2], 0));
        for round in [&changes, &late] {
            for change in round {
                cached.flow_mod(change, Nanos(0)).unwrap();
                plain.flow_mod(change, Nanos(0)).unwrap();
            }
            for _ in 0..3 {
                let a = verdicts(&cached.snapshot(), &mut with, &keys);
                let b = verdicts(&plain.snapshot(), &mut without, &keys);
                prop_assert_eq!(a, b);
            }
        }
        prop_assert_eq!(counts(&cached), counts(&plain));
    }

    #[test]
    fn no_lookup_costs_more_probes_than_the_bound(
        changes in vec(link_strategy(), 1..300),
        keys in vec(key_strategy(), 1..64),
        masks in prop_oneof![Just(2_u8), Just(32)],
    ) {
        let mut pipeline = pipeline(masks);
        for change in &changes {
            pipeline.flow_mod(change, Nanos(0)).unwrap();
        }
        let snapshot = pipeline.snapshot();
        let mut cache = Workspace::new(0, [1, 2], 0);
        for key in &keys {
            let before: Vec<_> = (0..3).map(|table| pipeline.table_stats(table)).collect();
            verdicts(&snapshot, &mut cache, &[*key]);
            let mut spent = 0;
            for (table, before) in before.iter().enumerate() {
                let after = pipeline.table_stats(table as u8);
                prop_assert!(after.probes - before.probes <= u64::from(after.probe_bound));
                spent += after.probes - before.probes;
            }
            prop_assert!(spent <= u64::from(snapshot.probe_bound()));
        }
    }
}

#[test]
fn several_workers_count_exactly() {
    let mut pipeline = pipeline(32);
    pipeline
        .flow_mod(&FlowMod { instructions: to_port(2), ..FlowMod::default() }, Nanos(0))
        .unwrap();
    let snapshot = pipeline.snapshot();
    let mut key = Key::default();
    key.set(Field::InPort, 1);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let snapshot = &snapshot;
            scope.spawn(move || {
                let mut cache = Workspace::new(worker, [1, 2], 64);
                (0..1000).for_each(|_| {
                    verdicts(snapshot, &mut cache, &[key; LANES]);
                });
            });
        }
    });
    let sum = total(&pipeline);
    assert_eq!((sum.packets, sum.bytes), (4 * 1000 * LANES as u64, 4 * 1000 * LANES as u64 * 60));
}

#[test]
fn a_pipeline_that_looks_at_one_field_shares_a_line_among_all_connections() {
    let mut pipeline = pipeline(32);
    for table in 0..3 {
        let mut mask = Key::default();
        mask.set(Field::TpDst, 0xffff);
        let mut instructions = to_port(2);
        instructions.goto = Some(table + 1).filter(|&goto| goto < 3);
        let change =
            FlowMod { table: Some(table), mask, instructions, priority: 3, ..FlowMod::default() };
        pipeline.flow_mod(&change, Nanos(0)).unwrap();
        let miss = FlowMod {
            table: Some(table),
            priority: 0,
            instructions: to_port(3),
            ..FlowMod::default()
        };
        pipeline.flow_mod(&miss, Nanos(0)).unwrap();
    }
    let snapshot = pipeline.snapshot();
    let mut cache = Workspace::new(0, [1, 2], 64);
    for source in 0..320_u32 {
        let mut key = Key::default();
        key.set(Field::InPort, 1);
        key.set(Field::Ipv4Src, source.into());
        verdicts(&snapshot, &mut cache, &[key]);
    }
    let probes: u64 = (0..3).map(|table| pipeline.table_stats(table).probes).sum();
    assert_eq!(probes, 3, "only the first packet is searched for");
}
