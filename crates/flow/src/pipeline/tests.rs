//! The classifier against a linear scan, under random updates, with snapshots taken in between.

mod chains;
mod churn;
mod depth;
mod removed_tables;
mod semantics;
mod through;
mod together;
mod validity;
mod weights;

use super::*;
use crate::limits::LANES;
use crate::{
    Action, Aggregate, FlowCommand, FlowFilter, FlowFlags, FlowMod, FlowModError, FragMode,
    Instructions, Miss, Output, Packet, PacketIn, PortNo, RemovedReason, Sink, SwitchConfig, Then,
    Wording, Workspace, process,
};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{DropReason, Field, Head, Key, Layers, Offload};

/// Where each packet of a batch went: the port of its only output.
#[derive(Default)]
struct Ports(Vec<Option<PortNo>>);

impl Sink for Ports {
    fn output(&mut self, index: usize, _: &Packet<'_>, ports: &[PortNo], _: Then) {
        self.0[index] = Some(ports[0]);
    }
    fn packet_in(&mut self, _: usize, _: &Packet<'_>, _: PacketIn) {}
    fn lose(&mut self, _: usize, _: &Packet<'_>, reason: DropReason) {
        assert_eq!(reason, DropReason::NoMatch);
    }
}

/// Sends packets with these keys, 100 bytes each.
fn send(
    snapshot: &Snapshot,
    cache: &mut Workspace,
    keys: &[Key],
    now: Nanos,
) -> Vec<Option<PortNo>> {
    let mut heads = vec![Head::default(); keys.len()];
    let mut packets: Vec<Packet<'_>> = heads
        .iter_mut()
        .zip(keys)
        .map(|(head, &key)| Packet {
            head,
            key,
            layers: Layers::default(),
            offload: Offload::default(),
            frame_len: 100,
            queue: 0,
        })
        .collect();
    let mut packets: Vec<&mut Packet<'_>> = packets.iter_mut().collect();
    let mut sink = Ports(vec![None; keys.len()]);
    process(snapshot, cache, &mut packets, now, &mut sink);
    sink.0
}

fn pipeline(masks: u8) -> Pipeline {
    pipeline_with(masks, &Serials::default())
}

fn pipeline_with(masks: u8, serials: &Serials) -> Pipeline {
    let mut pipeline = Pipeline::new(Limits { masks, ..Limits::default() }, serials);
    pipeline.set_ports((1..=4095).map(PortState::up).collect());
    pipeline
}

fn cache() -> Workspace {
    Workspace::new(0, [5, 6], 256)
}

/// A model entry.
#[derive(Clone, Debug)]
struct Entry {
    key: Key,
    mask: Key,
    priority: u16,
    cookie: u64,
    port: PortNo,
    packets: u64,
}

/// What the specification says, by linear scan.
#[derive(Clone, Default, Debug)]
struct Model(Vec<Entry>);

impl Model {
    fn best(&self, key: &Key) -> Option<u16> {
        self.matching(key).map(|entry| entry.priority).max()
    }
    fn matching(&self, key: &Key) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(move |entry| entry.key.matches(&entry.mask, key))
    }
    fn refines(entry: &Entry, change: &FlowMod) -> bool {
        (0..16).all(|i| change.mask.0[i] & !entry.mask.0[i] == 0)
            && entry.key.masked(&change.mask) == change.key.masked(&change.mask)
            && (entry.cookie ^ change.cookie) & change.cookie_mask == 0
    }
    fn same(entry: &Entry, change: &FlowMod) -> bool {
        entry.mask == change.mask
            && entry.key == change.key.masked(&change.mask)
            && entry.priority == change.priority
            && (entry.cookie ^ change.cookie) & change.cookie_mask == 0
    }
    fn apply(&mut self, change: &FlowMod) {
        let port = port_of(&change.instructions);
        match change.command {
            FlowCommand::Add => {
                let plain = FlowMod { cookie_mask: 0, ..change.clone() };
                let kept = self
                    .0
                    .iter()
                    .find(|entry| Self::same(entry, &plain))
                    .map_or(0, |entry| entry.packets);
                self.0.retain(|entry| !Self::same(entry, &plain));
                self.0.push(Entry {
                    key: change.key.masked(&change.mask),
                    mask: change.mask,
                    priority: change.priority,
                    cookie: change.cookie,
                    port,
                    packets: kept,
                });
            }
            FlowCommand::Modify => {
                self.0
                    .iter_mut()
                    .filter(|entry| Self::refines(entry, change))
                    .for_each(|entry| entry.port = port);
            }
            FlowCommand::ModifyStrict => {
                self.0
                    .iter_mut()
                    .filter(|entry| Self::same(entry, change))
                    .for_each(|entry| entry.port = port);
            }
            FlowCommand::Delete => self.0.retain(|entry| !Self::refines(entry, change)),
            FlowCommand::DeleteStrict => self.0.retain(|entry| !Self::same(entry, change)),
        }
    }
}

fn port_of(instructions: &Instructions) -> PortNo {
    match instructions.apply.first() {
        Some(Action::Output(Output::Port(port))) => *port,
        _ => 0,
    }
}

fn to_port(port: PortNo) -> Instructions {
    Instructions { apply: vec![Action::Output(Output::Port(port))], ..Instructions::default() }
}

/// Keys from a small world, so that rules meet.
fn key_strategy() -> impl Strategy<Value = Key> {
    (0_u128..3, 0_u128..4, 0_u8..12, 0_u8..12).prop_map(|(port, kind, a, b)| {
        let mut key = Key::default();
        key.set(Field::InPort, port + 1);
        key.set(Field::EthType, 0x800 + kind / 3);
        key.set(Field::Ipv4Src, (u128::from(a) << 28 & 0xf000_0000) | u128::from(a));
        key.set(Field::Ipv4Dst, (u128::from(b) << 26 & 0xff00_0000) | (u128::from(b) << 12));
        key.set(Field::TpDst, u128::from(b & 7));
        key
    })
}

fn mask_strategy() -> impl Strategy<Value = Key> {
    let prefix = |bits: u32| if bits == 0 { 0 } else { u128::from(u32::MAX << (32 - bits)) };
    (0_u8..9, any::<u32>(), any::<u32>(), 0_u32..=32, 0_u32..=32).prop_map(
        move |(kind, a, b, len, len2)| {
            let mut mask = Key::default();
            mask.set(Field::EthType, if kind < 6 { 0xffff } else { 0 });
            match kind {
                0 | 1 => mask.set(Field::Ipv4Dst, prefix(len)),
                2 => {
                    mask.set(Field::Ipv4Dst, prefix(len));
                    mask.set(Field::Ipv4Src, prefix(len2));
                }
                3 => {
                    mask.set(Field::Ipv4Src, u128::from(a & 0xff00_0003));
                    mask.set(Field::Ipv4Dst, u128::from(b & 0xff0f_f000));
                }
                4 => {
                    mask.set(Field::InPort, 0xffff_ffff);
                    mask.set(Field::Ipv4Src, 0xffff_ffff);
                    mask.set(Field::Ipv4Dst, 0xffff_ffff);
                    mask.set(Field::TpDst, 0xffff);
                }
                5 => mask.set(Field::TpDst, u128::from(a & 7)),
                6 => mask.set(Field::InPort, 0xffff_ffff),
                7 => mask = Key([u64::MAX; 16]),
                _ => {}
            }
            mask
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Change(Box<FlowMod>),
    Snapshot,
}

fn step_strategy() -> impl Strategy<Value = Step> {
    let command = prop_oneof![
        12 => Just(FlowCommand::Add),
        1 => Just(FlowCommand::Modify),
        2 => Just(FlowCommand::ModifyStrict),
        1 => Just(FlowCommand::Delete),
        2 => Just(FlowCommand::DeleteStrict),
    ];
    let change =
        (command, key_strategy(), mask_strategy(), 0_u16..40, 0_u64..4, 0_u64..4, 10_u32..4000);
    let change = change.prop_map(|(command, key, mask, priority, cookie, cookie_mask, port)| {
        let broad = matches!(command, FlowCommand::Delete) && priority > 4;
        let cookie_mask = if broad { 3 } else { cookie_mask & 1 };
        Step::Change(Box::new(FlowMod {
            command,
            key,
            mask,
            priority,
            cookie,
            cookie_mask,
            instructions: to_port(port),
            ..FlowMod::default()
        }))
    });
    prop_oneof![9 => change, 1 => Just(Step::Snapshot)]
}

/// Checks every verdict and every counter of one snapshot.
fn check(snapshot: &Snapshot, cache: &mut Workspace, model: &Model, keys: &[Key]) {
    for (key, port) in keys.iter().zip(send(snapshot, cache, keys, Nanos(0))) {
        let best = model.best(key);
        assert_eq!(port.is_some(), best.is_some(), "{key:?}");
        if let Some(port) = port {
            let right =
                model.matching(key).any(|entry| Some(entry.priority) == best && entry.port == port);
            assert!(right, "{key:?} went to {port}, best {best:?}");
        }
    }
}

fn total(pipeline: &Pipeline) -> Aggregate {
    pipeline.aggregate(&FlowFilter::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_snapshot_classifies_like_a_linear_scan_of_what_was_there_when_it_was_taken(
        steps in vec(step_strategy(), 1..400),
        keys in vec(key_strategy(), 1..100),
        masks in prop_oneof![Just(32_u8), Just(4), Just(1)],
    ) {
        let (mut pipeline, mut model, mut cache) = (pipeline(masks), Model::default(), cache());
        let mut taken = vec![(pipeline.snapshot(), model.clone())];
        for step in steps {
            match step {
                Step::Change(change) => {
                    pipeline.flow_mod(&change, Nanos(0)).unwrap();
                    model.apply(&change);
                }
                Step::Snapshot => {
                    taken.push((pipeline.snapshot(), model.clone()));
                    if taken.len() > 6 { taken.remove(2); }
                }
            }
        }
        taken.push((pipeline.snapshot(), model.clone()));
        prop_assert_eq!(total(&pipeline).flows as usize, model.0.len());
        let mut hits = 0;
        for (snapshot, model) in &taken {
            check(snapshot, &mut cache, model, &keys);
            check(snapshot, &mut cache, model, &keys);
            hits += 2 * keys.iter().filter(|key| model.best(key).is_some()).count();
        }
        // Entries that went took their counts along; the others have them all.
        prop_assert!(total(&pipeline).packets <= hits as u64);
        drop(taken);
        let before = total(&pipeline).packets;
        let snapshot = pipeline.snapshot();
        check(&snapshot, &mut cache, &model, &keys);
        let matched = keys.iter().filter(|key| model.best(key).is_some()).count() as u64;
        prop_assert_eq!(total(&pipeline).packets, before + matched);
        prop_assert_eq!(total(&pipeline).bytes, 100 * total(&pipeline).packets);
        let mut dump: Vec<_> = pipeline.flows(&FlowFilter::default(), Nanos(0)).map(|flow| (flow.mask.0, flow.key.0, flow.priority, port_of(&flow.instructions))).collect();
        let mut expected: Vec<_> = model.0.iter().map(|entry| (entry.mask.0, entry.key.0, entry.priority, entry.port)).collect();
        dump.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(dump, expected);
    }
}
