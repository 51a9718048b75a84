//! The cache's hit rate under a controller that changes rules 1000 times a second.
//!
//! 500 flows pass two tables; time is a value, so every figure is the same in every run.

use super::*;
use crate::CacheCounts;

/// Milliseconds that are played.
const SPAN_MS: u64 = 1000;
/// Packets a millisecond: fewer than there are flows, and more.
const RATES: [u64; 2] = [256, 1024];
/// Flows of the steady traffic.
const FLOWS: u64 = 500;
/// Masks of each table that the traffic visits.
const MASKS: u32 = 8;

/// An address of a flow, below 10.0.0.0/8.
fn key(flow: u64) -> Key {
    let mut key = Key::default();
    key.set(Field::InPort, 1);
    key.set(Field::EthType, 0x0800);
    key.set(Field::Ipv4Src, u128::from(0x0a00_0000 | flow as u32));
    key.set(Field::Ipv4Dst, u128::from(0x0b00_0000 | flow as u32));
    key
}

/// An entry with one of the masks, which are no prefixes of each other.
fn rule(table: u8, number: u32, key: Key, instructions: Instructions) -> FlowMod {
    let mut mask = Key::default();
    mask.set(Field::EthType, 0xffff);
    mask.set(Field::Ipv4Src, 0xffff_ffff);
    mask.set(Field::Ipv4Dst, u128::from(0xff00_0000 | 0xfff_u32 << (number % MASKS)));
    let priority = 100 + (number % MASKS) as u16;
    FlowMod { table: Some(table), key, mask, priority, instructions, ..FlowMod::default() }
}

/// Tables 0 and 1, which the flows pass, and table 2, which they do not.
fn switch() -> Pipeline {
    let mut pipeline = pipeline(32);
    let onward = Instructions { goto: Some(1), ..Instructions::default() };
    for flow in 0..FLOWS {
        for (table, instructions) in [(0, onward.clone()), (1, to_port(2)), (2, to_port(3))] {
            pipeline
                .flow_mod(&rule(table, flow as u32, key(flow), instructions), Nanos(0))
                .unwrap();
        }
    }
    pipeline
}

/// Plays the traffic while an entry of `table` comes or goes each millisecond that no flow finds.
fn churned(table: u8, rate: u64) -> CacheCounts {
    let (mut pipeline, mut cache) = (switch(), Workspace::new(0, [5, 6], 4096));
    let mut flow = 0;
    for ms in 0..SPAN_MS {
        let now = Nanos(ms * 1_000_000);
        let other = 10_000 + ms / 2;
        let command = [FlowCommand::Add, FlowCommand::DeleteStrict][(ms % 2) as usize];
        let change = rule(table, other as u32, key(other), to_port(4));
        pipeline.flow_mod(&FlowMod { command, ..change }, now).unwrap();
        let snapshot = pipeline.snapshot();
        for _ in 0..rate / LANES as u64 {
            // Flows come in an order that no batch repeats.
            let keys: Vec<Key> = (flow..flow + LANES as u64).map(|n| key(n * 7 % FLOWS)).collect();
            flow += LANES as u64;
            assert!(send(&snapshot, &mut cache, &keys, now).iter().all(|port| *port == Some(2)));
        }
    }
    cache.take_counts()
}

/// Packets of a thousand whose trace was found.
fn hits(counts: CacheCounts) -> u64 {
    counts.hits * 1000 / (counts.lookups() + counts.passed_by)
}

#[test]
fn changes_that_are_about_other_packets_leave_the_cache_its_hits() {
    for (table, rate) in [0, 2].into_iter().flat_map(|table| RATES.map(|rate| (table, rate))) {
        let counts = churned(table, rate);
        println!("table {table}, {rate} packets a change: {} ‰ hit, {counts:?}", hits(counts));
        assert_eq!(counts.lookups() + counts.passed_by, SPAN_MS * rate);
        assert!(hits(counts) >= 960, "{counts:?}");
        let most = counts.lookups() / rate * FLOWS * 64;
        assert!(
            counts.compared <= most,
            "64 comparisons a line and publication, all in all {most}"
        );
    }
}
