//! What OpenFlow says of flow-mods, one claim at a time.

use super::*;
use crate::{Bucket, GroupKind, GroupMod};
use std::collections::BTreeSet;

const SECOND: u64 = 1_000_000_000;

/// A match on this IPv4 destination under a prefix.
fn to(address: u32, length: u32) -> (Key, Key) {
    let (mut key, mut mask) = (Key::default(), Key::default());
    key.set(Field::EthType, 0x800);
    mask.set(Field::EthType, 0xffff);
    let bits = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    key.set(Field::Ipv4Dst, u128::from(address & bits));
    mask.set(Field::Ipv4Dst, u128::from(bits));
    (key, mask)
}

fn add(address: u32, length: u32, priority: u16, port: PortNo) -> FlowMod {
    let (key, mask) = to(address, length);
    FlowMod { key, mask, priority, instructions: to_port(port), ..FlowMod::default() }
}

fn packet(address: u32) -> Key {
    let mut key = to(address, 32).0;
    key.set(Field::InPort, 1);
    key
}

fn all(pipeline: &Pipeline) -> Vec<crate::FlowStats> {
    pipeline.flows(&FlowFilter::default(), Nanos(0)).collect()
}

/// Sends `count` packets to `address`.
fn hit(pipeline: &mut Pipeline, address: u32, count: usize, now: Nanos) {
    let snapshot = pipeline.snapshot();
    send(&snapshot, &mut cache(), &vec![packet(address); count], now);
}

fn apply(pipeline: &mut Pipeline, change: &FlowMod) -> Vec<crate::Removed> {
    pipeline.flow_mod(change, Nanos(0)).unwrap()
}

#[test]
fn a_modify_keeps_counters_and_cookie_and_a_reset_clears_counters() {
    let mut pipeline = pipeline(32);
    apply(&mut pipeline, &FlowMod { cookie: 7, ..add(1, 32, 5, 2) });
    hit(&mut pipeline, 1, 3, Nanos(0));
    let modify = FlowMod { command: FlowCommand::ModifyStrict, cookie: 9, ..add(1, 32, 5, 3) };
    apply(&mut pipeline, &modify);
    hit(&mut pipeline, 1, 2, Nanos(0));
    let flow = &all(&pipeline)[0];
    assert_eq!(
        (flow.packets, flow.bytes, flow.cookie, port_of(&flow.instructions)),
        (5, 500, 7, 3)
    );
    let flags = FlowFlags { reset_counts: true, ..FlowFlags::default() };
    apply(&mut pipeline, &FlowMod { flags, ..modify });
    assert_eq!(all(&pipeline)[0].packets, 0);
    hit(&mut pipeline, 1, 4, Nanos(0));
    assert_eq!(all(&pipeline)[0].packets, 4);
}

#[test]
fn an_add_over_the_same_match_and_priority_replaces_and_keeps_counters_unless_told_otherwise() {
    let mut pipeline = pipeline(32);
    apply(&mut pipeline, &add(1, 32, 5, 2));
    hit(&mut pipeline, 1, 3, Nanos(0));
    apply(&mut pipeline, &FlowMod { cookie: 4, ..add(1, 32, 5, 3) });
    let flows = all(&pipeline);
    assert_eq!((flows.len(), flows[0].packets, flows[0].cookie), (1, 3, 4));
    let flags = FlowFlags { reset_counts: true, ..FlowFlags::default() };
    apply(&mut pipeline, &FlowMod { flags, ..add(1, 32, 5, 3) });
    assert_eq!(all(&pipeline)[0].packets, 0);
}

#[test]
fn an_add_that_starts_afresh_clears_counters_and_does_not_show_in_the_flags() {
    let mut pipeline = pipeline(32);
    apply(&mut pipeline, &add(1, 32, 5, 2));
    hit(&mut pipeline, 1, 3, Nanos(0));
    apply(&mut pipeline, &FlowMod { starts_afresh: true, ..add(1, 32, 5, 2) });
    let flow = &all(&pipeline)[0];
    assert_eq!((flow.packets, flow.flags), (0, FlowFlags::default()));
}

#[test]
fn an_entry_that_comes_back_has_its_age_and_its_hard_timeout_but_was_used_just_now() {
    let mut pipeline = pipeline(32);
    let now = Nanos(5 * SECOND);
    let old = FlowMod { age_ns: 8 * SECOND, hard_timeout_s: 10, ..add(1, 32, 5, 2) };
    pipeline.flow_mod(&old, now).unwrap();
    let idle = FlowMod { age_ns: 8 * SECOND, idle_timeout_s: 5, ..add(2, 32, 5, 2) };
    pipeline.flow_mod(&idle, now).unwrap();
    let ages: Vec<_> =
        pipeline.flows(&FlowFilter::default(), now).map(|flow| flow.age_ns).collect();
    assert_eq!(ages, [8 * SECOND; 2]);
    let gone = |pipeline: &mut Pipeline, seconds| {
        let gone = pipeline.expire(Nanos(seconds * SECOND));
        gone.iter().map(|gone| gone.reason).collect::<Vec<_>>()
    };
    assert_eq!(gone(&mut pipeline, 6), []);
    assert_eq!(gone(&mut pipeline, 8), [RemovedReason::HardTimeout]);
    assert_eq!(gone(&mut pipeline, 11), [RemovedReason::IdleTimeout]);
}

#[test]
fn the_idle_timeout_of_an_entry_that_comes_back_goes_on_until_it_is_used() {
    let mut pipeline = pipeline(32);
    let now = Nanos(5 * SECOND);
    let old = |dst, priority| FlowMod {
        age_ns: 20 * SECOND,
        idle_ns: 12 * SECOND,
        idle_timeout_s: 15,
        ..add(dst, 32, priority, 2)
    };
    for (dst, priority) in [(1, 5), (2, 5), (3, 5)] {
        pipeline.flow_mod(&old(dst, priority), now).unwrap();
    }
    let modify = FlowMod { command: FlowCommand::ModifyStrict, ..add(3, 32, 5, 3) };
    pipeline.flow_mod(&modify, now).unwrap();
    let idle: Vec<_> =
        pipeline.flows(&FlowFilter::default(), now).map(|flow| flow.idle_ns / SECOND).collect();
    assert_eq!(idle, [12; 3]);
    assert_eq!(pipeline.idle_entry_ids(|timeout_s| timeout_s == 15).len(), 3);
    assert_eq!(pipeline.idle_entry_ids(|timeout_s| timeout_s == 14), []);
    hit(&mut pipeline, 2, 1, Nanos(6 * SECOND));
    let left = |pipeline: &mut Pipeline, seconds| {
        let gone = pipeline.expire(Nanos(seconds * SECOND));
        assert!(gone.iter().all(|gone| gone.reason == RemovedReason::IdleTimeout));
        pipeline.entries()
    };
    assert_eq!([7, 9, 20, 22].map(|second| left(&mut pipeline, second)), [3, 1, 1, 0]);
}

#[test]
fn a_modify_that_gives_its_cookie_keeps_counters_and_note() {
    let mut pipeline = pipeline(32);
    apply(&mut pipeline, &FlowMod { cookie: 7, note: 1, ..add(1, 32, 5, 2) });
    hit(&mut pipeline, 1, 3, Nanos(0));
    let command = FlowCommand::Modify;
    let modify = FlowMod { command, cookie: 9, note: 2, gives_cookie: true, ..add(1, 32, 5, 3) };
    apply(&mut pipeline, &modify);
    let flow = &all(&pipeline)[0];
    assert_eq!((flow.packets, flow.cookie, flow.note), (3, 9, 1));
}

#[test]
fn what_changes_no_packet_is_told_of_each_entry_as_it_was_sent() {
    let mut pipeline = pipeline(32);
    let worded = |address, wording: &Wording| {
        let instructions = Instructions { wording: wording.clone(), ..to_port(2) };
        FlowMod { instructions, note: address, ..add(address, 32, 5, 2) }
    };
    let wordings = [vec![], vec![128]].map(|max_len| Wording { max_len, ..Wording::default() });
    for (address, wording) in (1..).zip(&wordings) {
        apply(&mut pipeline, &worded(address, wording));
    }
    let mut told = all(&pipeline);
    told.sort_by_key(|flow| flow.note);
    let told: Vec<_> = told.iter().map(|flow| &flow.instructions.wording).collect();
    assert_eq!(told, wordings.iter().collect::<Vec<_>>());
}

#[test]
fn an_entry_under_another_with_the_same_match_comes_back_with_its_counters() {
    let mut pipeline = pipeline(32);
    apply(&mut pipeline, &add(1, 32, 5, 2));
    hit(&mut pipeline, 1, 3, Nanos(0));
    apply(&mut pipeline, &add(1, 32, 9, 3));
    let snapshot = pipeline.snapshot();
    assert_eq!(send(&snapshot, &mut cache(), &[packet(1)], Nanos(0)), [Some(3)]);
    apply(&mut pipeline, &FlowMod { command: FlowCommand::DeleteStrict, ..add(1, 32, 9, 0) });
    let snapshot = pipeline.snapshot();
    assert_eq!(send(&snapshot, &mut cache(), &[packet(1)], Nanos(0)), [Some(2)]);
    assert_eq!(all(&pipeline)[0].packets, 4);
}

#[test]
fn overlap_is_refused_only_at_the_same_priority_and_only_when_asked() {
    let mut pipeline = pipeline(32);
    apply(&mut pipeline, &add(0x0a00_0000, 8, 5, 2));
    let flags = FlowFlags { check_overlap: true, ..FlowFlags::default() };
    let overlapping = FlowMod { flags, ..add(0x0a01_0000, 16, 5, 2) };
    assert_eq!(pipeline.flow_mod(&overlapping, Nanos(0)), Err(FlowModError::Overlap { table: 0 }));
    apply(&mut pipeline, &FlowMod { flags, ..add(0x0a01_0000, 16, 6, 2) });
    apply(&mut pipeline, &FlowMod { flags, ..add(0x0b01_0000, 16, 5, 2) });
    apply(&mut pipeline, &add(0x0a02_0000, 16, 5, 2));
    assert_eq!(total(&pipeline).flows, 4);
}

#[test]
fn deletes_respect_cookie_port_group_and_table() {
    let mut pipeline = pipeline(32);
    for (n, port) in [(1, 2), (2, 3), (3, 2)] {
        apply(&mut pipeline, &FlowMod { cookie: n, ..add(n as u32, 32, 5, port) });
    }
    apply(&mut pipeline, &FlowMod { table: Some(4), ..add(9, 32, 5, 2) });
    let delete = FlowMod { command: FlowCommand::Delete, table: Some(0), ..FlowMod::default() };
    apply(&mut pipeline, &FlowMod { cookie: 1, cookie_mask: u64::MAX, ..delete.clone() });
    assert_eq!(total(&pipeline).flows, 3);
    apply(&mut pipeline, &FlowMod { out_group: Some(1), ..delete.clone() });
    assert_eq!(total(&pipeline).flows, 3);
    apply(&mut pipeline, &FlowMod { out_port: Some(Output::Port(2)), ..delete.clone() });
    assert_eq!(total(&pipeline).flows, 2);
    apply(&mut pipeline, &delete);
    assert_eq!(all(&pipeline)[0].table, 4);
    apply(&mut pipeline, &FlowMod { table: None, ..delete });
    assert_eq!(total(&pipeline).flows, 0);
}

#[test]
fn timeouts_fire_in_time_and_use_puts_an_idle_one_off() {
    let mut pipeline = pipeline(32);
    let flags = FlowFlags { send_flow_removed: true, ..FlowFlags::default() };
    apply(&mut pipeline, &FlowMod { idle_timeout_s: 10, flags, ..add(1, 32, 5, 2) });
    apply(&mut pipeline, &FlowMod { hard_timeout_s: 20, flags, ..add(2, 32, 5, 2) });
    apply(&mut pipeline, &FlowMod { hard_timeout_s: 1, ..add(3, 32, 5, 2) });
    hit(&mut pipeline, 1, 2, Nanos(7 * SECOND));
    let gone = pipeline.expire(Nanos(10 * SECOND));
    assert_eq!(
        (gone.len(), gone[0].reason, gone[0].flow.hard_timeout_s),
        (1, RemovedReason::HardTimeout, 1)
    );
    // Modified, the entry lives on under another record, and so do its timeouts.
    apply(&mut pipeline, &FlowMod { command: FlowCommand::Modify, ..add(1, 32, 5, 3) });
    assert_eq!(pipeline.expire(Nanos(16 * SECOND)), []);
    let gone = pipeline.expire(Nanos(17 * SECOND + SECOND / 5));
    assert_eq!(
        (gone.len(), gone[0].reason, gone[0].flow.packets),
        (1, RemovedReason::IdleTimeout, 2)
    );
    let gone = pipeline.expire(Nanos(20 * SECOND + SECOND / 5));
    assert_eq!((gone.len(), gone[0].reason), (1, RemovedReason::HardTimeout));
    assert_eq!(pipeline.next_expiry(), None);
}

#[test]
fn what_workers_count_while_an_entry_goes_is_told_with_it() {
    let mut pipeline = pipeline(32);
    let flags = FlowFlags { send_flow_removed: true, ..FlowFlags::default() };
    let (told, untold) = (FlowMod { flags, ..add(1, 32, 5, 2) }, add(2, 32, 5, 2));
    apply(&mut pipeline, &told);
    apply(&mut pipeline, &untold);
    let snapshot = pipeline.snapshot();
    let modify = FlowMod { command: FlowCommand::Modify, ..add(1, 32, 5, 3) };
    apply(&mut pipeline, &modify); // from here on two records count for the entry
    drop(pipeline.snapshot());
    send(&snapshot, &mut cache(), &[packet(1); 3], Nanos(0));
    let delete = FlowMod { command: FlowCommand::Delete, table: Some(0), ..FlowMod::default() };
    assert_eq!(apply(&mut pipeline, &delete).len(), 2);
    drop(pipeline.snapshot());
    assert!(pipeline.has_leaving() && pipeline.departed().is_empty(), "a worker has it still");
    send(&snapshot, &mut cache(), &[packet(1); 2], Nanos(0));
    drop(snapshot);
    let departed = pipeline.departed();
    assert_eq!((departed.len(), departed[0].flow.packets), (1, 5));
    assert!(!pipeline.has_leaving() && pipeline.departed().is_empty());
    // Nobody ever saw this one.
    apply(&mut pipeline, &told);
    apply(&mut pipeline, &delete);
    assert_eq!(pipeline.departed().len(), 1);
}

#[test]
fn a_modify_that_resets_counts_does_not_put_an_idle_timeout_off() {
    let mut pipeline = pipeline(32);
    apply(&mut pipeline, &FlowMod { idle_timeout_s: 10, ..add(1, 32, 5, 2) });
    hit(&mut pipeline, 1, 2, Nanos(4 * SECOND));
    let flags = FlowFlags { reset_counts: true, ..FlowFlags::default() };
    let modify = FlowMod { command: FlowCommand::Modify, flags, ..add(1, 32, 5, 3) };
    pipeline.flow_mod(&modify, Nanos(9 * SECOND)).unwrap();
    drop(pipeline.snapshot());
    assert_eq!(pipeline.expire(Nanos(13 * SECOND + SECOND / 2)), []);
    let gone = pipeline.expire(Nanos(14 * SECOND + SECOND / 5));
    assert_eq!((gone.len(), gone[0].reason), (1, RemovedReason::IdleTimeout));
    assert_eq!(gone[0].flow.packets, 0);
}

#[test]
fn refusals_name_their_reason_and_change_nothing() {
    let mut pipeline = Pipeline::new(
        Limits { tables: 4, entries_per_table: 2, ..Limits::default() },
        &Serials::default(),
    );
    let refused = |pipeline: &mut Pipeline, change: FlowMod| {
        pipeline.flow_mod(&change, Nanos(0)).unwrap_err()
    };
    assert_eq!(
        refused(&mut pipeline, FlowMod { table: Some(4), ..add(1, 32, 1, 1) }),
        FlowModError::BadTable
    );
    assert_eq!(
        refused(&mut pipeline, FlowMod { table: None, ..add(1, 32, 1, 1) }),
        FlowModError::BadTable
    );
    for goto in [1, 0, 4] {
        let instructions = Instructions { goto: Some(goto), ..Instructions::default() };
        let change = FlowMod { table: Some(1), instructions, ..add(1, 32, 1, 1) };
        assert_eq!(refused(&mut pipeline, change), FlowModError::BadGoto { table: 1, goto });
    }
    let instructions = Instructions { apply: vec![Action::Group(7)], ..Instructions::default() };
    let error = refused(&mut pipeline, FlowMod { instructions, ..add(1, 32, 1, 1) });
    assert_eq!(error, FlowModError::Action(crate::ActionError::BadOutGroup(7)));
    apply(&mut pipeline, &add(1, 32, 1, 1));
    apply(&mut pipeline, &add(2, 32, 1, 1));
    assert!(matches!(
        refused(&mut pipeline, add(3, 32, 1, 1)),
        FlowModError::TableFull { table: 0, .. }
    ));
    apply(&mut pipeline, &add(2, 32, 1, 3)); // a replacement needs no room
    assert_eq!(total(&pipeline).flows, 2);
}

#[test]
fn what_nobody_sees_any_more_is_freed() {
    let mut pipeline = pipeline(32);
    for round in 0..20 {
        for n in 0..1000 {
            apply(&mut pipeline, &add(n, 32, 5, 1 + round));
        }
        drop(pipeline.snapshot());
        apply(
            &mut pipeline,
            &FlowMod { command: FlowCommand::Modify, mask: Key::default(), ..add(0, 0, 0, 9) },
        );
        drop(pipeline.snapshot());
        apply(&mut pipeline, &FlowMod { command: FlowCommand::Delete, ..FlowMod::default() });
        drop(pipeline.snapshot());
    }
    drop(pipeline.snapshot());
    pipeline.expire(Nanos(0));
    assert_eq!(pipeline.store.waiting(), 0);
    assert!(pipeline.issued.len() <= 1);
    assert!(pipeline.memory() < 1 << 20, "{} bytes", pipeline.memory());
}

#[test]
fn a_record_may_outlive_its_mask_whose_number_is_used_again() {
    let mut pipeline = pipeline(32);
    apply(&mut pipeline, &add(1, 32, 5, 2));
    let held = pipeline.snapshot();
    apply(&mut pipeline, &FlowMod { command: FlowCommand::Delete, ..FlowMod::default() });
    let wide = FlowMod { key: packet(7), mask: Key([u64::MAX; 16]), ..add(0, 0, 5, 3) };
    apply(&mut pipeline, &wide);
    let snapshot = pipeline.snapshot();
    assert_eq!(send(&held, &mut cache(), &[packet(1)], Nanos(0)), [Some(2)]);
    drop(held);
    pipeline.expire(Nanos(0));
    assert_eq!(pipeline.store.waiting(), 0);
    assert_eq!(send(&snapshot, &mut cache(), &[packet(7)], Nanos(0)), [Some(3)]);
}

/// A worker keeps its cache when a switch goes and its number is given to a new one.
#[test]
fn what_is_cached_of_a_switch_is_not_found_by_a_later_one_of_its_number() {
    let (mut cache, serials) = (cache(), Serials::default());
    let lengths: [[u32; 3]; 2] = [[22, 23, 24], [24, 23, 22]];
    for (first, lengths) in [100, 200].into_iter().zip(lengths) {
        let mut pipeline = pipeline_with(8, &serials);
        for length in lengths {
            // The wider, the more important: no prefix table.
            let change = add(0x0a00_0000, length, 32 - length as u16, first + length);
            apply(&mut pipeline, &change);
        }
        let snapshot = pipeline.snapshot();
        for _ in 0..3 {
            let sent = send(&snapshot, &mut cache, &[packet(0x0a00_0001); 4], Nanos(0));
            assert_eq!(sent, [Some(first + 22); 4]);
        }
        let through = |snapshot: &Snapshot, cache: &mut Workspace| {
            snapshot.decide_port(cache, 1).map(|through| through.port())
        };
        assert_eq!(through(&snapshot, &mut cache), None);
        apply(&mut pipeline, &FlowMod { command: FlowCommand::Delete, ..FlowMod::default() });
        let all = FlowMod { instructions: to_port(first), ..FlowMod::default() };
        apply(&mut pipeline, &all);
        assert_eq!(through(&pipeline.snapshot(), &mut cache), Some(first));
    }
}

#[test]
fn a_held_snapshot_keeps_its_records_and_only_them() {
    let mut pipeline = pipeline(32);
    for n in 0..100 {
        apply(&mut pipeline, &add(n, 32, 5, 2));
    }
    let held = pipeline.snapshot();
    apply(&mut pipeline, &FlowMod { command: FlowCommand::Delete, ..FlowMod::default() });
    for n in 0..100 {
        apply(&mut pipeline, &add(n + 1000, 32, 5, 3));
        drop(pipeline.snapshot());
    }
    let keys: Vec<Key> = (0..100).map(packet).collect();
    assert!(send(&held, &mut cache(), &keys, Nanos(0)).iter().all(|&port| port == Some(2)));
    drop(held);
    pipeline.expire(Nanos(0));
    assert_eq!(pipeline.store.waiting(), 0);
}

#[test]
fn masks_beyond_the_bound_are_taken_in_until_the_blocks_are_full_and_then_refused() {
    let mut pipeline = pipeline(2);
    let scattered = |n: u32| {
        let mut mask = Key::default();
        mask.set(Field::Ipv4Dst, u128::from((n % 4096) << 12 | 1));
        mask.set(Field::EthType, 0xffff);
        let mut key = Key([u64::MAX; 16]);
        key.set(Field::EthType, 0x800);
        FlowMod {
            key,
            mask,
            priority: (n >> 4) as u16,
            instructions: to_port(2),
            ..FlowMod::default()
        }
    };
    let mut kept = 0;
    let full = (0..20_000).find(|&n| {
        let (mask, priority) = (n % 4096, (n / 4096) as u16);
        let refused =
            pipeline.flow_mod(&FlowMod { priority, ..scattered(mask) }, Nanos(0)).is_err();
        kept += u32::from(!refused);
        refused
    });
    assert!(
        full.is_some() && kept as usize >= crate::template::ternary::CAPACITY,
        "{full:?} {kept}"
    );
    let snapshot = pipeline.snapshot();
    assert_eq!(pipeline.table_stats(0).template, "ternary");
    assert!(snapshot.probe_bound() <= 1 + 2 + 16 * 3);
    let mut key = Key([u64::MAX; 16]);
    key.set(Field::EthType, 0x800);
    key.set(Field::InPort, 1);
    assert_eq!(send(&snapshot, &mut cache(), &[key], Nanos(0)), [Some(2)]);
}

#[test]
fn a_change_in_portions_passes_over_what_went_or_changed_meanwhile() {
    let mut pipeline = pipeline(32);
    (0..6).for_each(|address| drop(apply(&mut pipeline, &add(address, 32, 5, 2))));
    drop(pipeline.snapshot());
    let change =
        FlowMod { command: FlowCommand::Modify, instructions: to_port(3), ..FlowMod::default() };
    let mut chosen = pipeline.choose(&change).unwrap();
    apply(&mut pipeline, &FlowMod { command: FlowCommand::DeleteStrict, ..add(0, 32, 5, 2) });
    apply(&mut pipeline, &FlowMod { command: FlowCommand::ModifyStrict, ..add(1, 32, 5, 4) });
    let mut modified = 0;
    while !chosen.is_done() {
        let portion = pipeline.go_on(&change, &mut chosen, 2, Nanos(0));
        assert!(portion.failed.is_none() && portion.removed.is_empty());
        let now_there = portion.modified.iter().filter_map(|&name| pipeline.entry(name, Nanos(0)));
        modified += now_there.filter(|flow| port_of(&flow.instructions) == 3).count();
    }
    assert_eq!((modified, all(&pipeline).len()), (4, 5));
}

#[test]
fn a_value_is_in_use_while_an_entry_or_a_group_names_it() {
    let mut pipeline = pipeline(8);
    let from = |end: u128, priority| {
        let (mut key, mut mask) = (Key::default(), Key::default());
        key.set(Field::TunSrc, end);
        mask.set(Field::TunSrc, Field::TunSrc.full());
        FlowMod { key, mask, priority, instructions: to_port(1), ..FlowMod::default() }
    };
    let set = |value| {
        let (field, of, mask) = (Field::TunDst, None, Field::TunDst.full());
        Action::SetField { field, of, value, mask }
    };
    let setting = FlowMod {
        instructions: Instructions { apply: vec![set(2)], ..Instructions::default() },
        ..add(1, 32, 5, 1)
    };
    [from(1, 5), from(1, 6), setting].iter().for_each(|change| drop(apply(&mut pipeline, change)));
    let bucket = Bucket { weight: 0, watch_port: None, watch_group: None, actions: vec![set(3)] };
    let (kind, buckets) = (GroupKind::All, vec![bucket]);
    pipeline.group_mod(GroupMod::Add { id: 1, kind, buckets }, Nanos(0)).unwrap();
    let values = |pipeline: &Pipeline| {
        [Field::TunSrc, Field::TunDst]
            .into_iter()
            .flat_map(|field| pipeline.values(field))
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(values(&pipeline), BTreeSet::from([1, 2, 3]));
    let command = FlowCommand::DeleteStrict;
    apply(&mut pipeline, &FlowMod { command, ..from(1, 6) });
    assert_eq!(values(&pipeline), BTreeSet::from([1, 2, 3]), "one below it names it, too");
    apply(
        &mut pipeline,
        &FlowMod { command: FlowCommand::Delete, table: None, ..FlowMod::default() },
    );
    pipeline.group_mod(GroupMod::DeleteAll, Nanos(0)).unwrap();
    assert_eq!(values(&pipeline), BTreeSet::new());
}
