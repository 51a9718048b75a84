use super::*;
use crate::action::ActionError;
use crate::action::{Action, Output, PortNo};
use crate::limits::MAX_CHAIN;
use crate::ports::PortState;
use crate::tally::Counted;
use std::collections::BTreeSet;

const NOW: Nanos = Nanos(5_000);

fn to(port: PortNo) -> Bucket {
    Bucket { actions: vec![Action::Output(Output::Port(port))], ..Bucket::default() }
}

fn watching(port: PortNo) -> Bucket {
    Bucket { watch_port: Some(port), ..to(port) }
}

fn weighted(port: PortNo, weight: u16) -> Bucket {
    Bucket { weight, ..to(port) }
}

fn chained(group: u32) -> Bucket {
    Bucket { actions: vec![Action::Group(group)], ..Bucket::default() }
}

fn ports(live: &[PortNo]) -> PortTable {
    PortTable::new(
        (1..=4)
            .map(|port| PortState { live: live.contains(&port), ..PortState::up(port) })
            .collect(),
    )
}

fn add(id: u32, kind: GroupKind, buckets: Vec<Bucket>) -> GroupMod {
    GroupMod::Add { id, kind, buckets }
}

fn modify(id: u32, kind: GroupKind, buckets: Vec<Bucket>) -> GroupMod {
    GroupMod::Modify { id, kind, buckets }
}

/// A table to which all of `changes` were made, with ports 1 to 4 live.
fn table(changes: impl IntoIterator<Item = GroupMod>) -> GroupTable {
    let mut table = GroupTable::default();
    for change in changes {
        table.apply(change, &ports(&[1, 2, 3, 4]), NOW).unwrap();
    }
    table
}

fn refused(table: &mut GroupTable, change: GroupMod) -> GroupModError {
    table.apply(change, &ports(&[1, 2, 3, 4]), NOW).unwrap_err()
}

/// The ports that a packet with this hash leaves by.
fn chosen(table: &GroupTable, id: u32, hash: u64) -> Vec<PortNo> {
    let actions =
        table.get(id).unwrap().choose(|| hash).iter().flat_map(|program| &program.actions);
    let port = |action: &Action| match action {
        Action::Output(Output::Port(port)) => Some(*port),
        _ => None,
    };
    actions.filter_map(port).collect()
}

#[test]
fn every_kind_chooses_its_buckets() {
    use GroupKind::{All, FastFailover, Indirect, Select};
    let table = table([
        add(1, All, vec![to(1), to(2)]),
        add(2, Indirect, vec![to(3)]),
        add(3, FastFailover, vec![watching(4), watching(1)]),
        add(4, Select, vec![weighted(1, 1), weighted(2, 0)]),
        add(5, All, vec![]),
    ]);
    assert_eq!(chosen(&table, 1, 0), [1, 2]);
    assert_eq!(chosen(&table, 2, 0), [3]);
    assert_eq!(chosen(&table, 3, 0), [4]);
    assert_eq!(chosen(&table, 4, u64::MAX), [1]);
    assert!(chosen(&table, 5, 0).is_empty());
}

#[test]
fn fast_failover_takes_the_first_live_bucket_and_returns() {
    let mut table = table([add(3, GroupKind::FastFailover, vec![watching(1), watching(2)])]);
    for (live, expected) in [(&[2u32][..], vec![2]), (&[], vec![]), (&[1, 2], vec![1])] {
        table.set_ports(&ports(live));
        assert_eq!(chosen(&table, 3, 0), expected);
    }
}

#[test]
fn a_watched_group_lends_its_liveness_down_a_chain() {
    let watch = |group| Bucket { watch_group: Some(group), ..to(group) };
    let mut table = table([
        add(1, GroupKind::FastFailover, vec![watching(1)]),
        add(2, GroupKind::FastFailover, vec![watch(1)]),
        add(3, GroupKind::FastFailover, vec![watch(2), watching(4)]),
    ]);
    assert_eq!(chosen(&table, 3, 0), [2]);
    table.set_ports(&ports(&[4]));
    assert_eq!(chosen(&table, 3, 0), [4]);
    table.set_ports(&ports(&[1, 4]));
    assert_eq!(chosen(&table, 3, 0), [2]);
    table.apply(GroupMod::Delete { id: 2 }, &ports(&[1, 4]), NOW).unwrap();
    assert_eq!(chosen(&table, 3, 0), [4]);
}

#[test]
fn select_leaves_out_buckets_whose_port_is_down() {
    let mut table =
        table([add(1, GroupKind::Select, vec![weighted(1, 1), weighted(2, 1), weighted(3, 1)])]);
    table.set_ports(&ports(&[1, 3]));
    let taken: BTreeSet<PortNo> = (0..64).flat_map(|flow| chosen(&table, 1, flow << 58)).collect();
    assert_eq!(taken, BTreeSet::from([1, 3]));
    table.set_ports(&ports(&[]));
    assert!(chosen(&table, 1, 0).is_empty());
}

#[test]
fn a_snapshot_keeps_its_buckets_and_shares_its_counters() {
    let mut table = table([add(1, GroupKind::Indirect, vec![to(1)])]);
    let snapshot = table.view();
    snapshot.get(1).unwrap().tally().count(100);
    table
        .apply(modify(1, GroupKind::Indirect, vec![to(2)]), &ports(&[1, 2]), Nanos(9_000))
        .unwrap();
    snapshot.get(1).unwrap().tally().count(50);
    assert_eq!((chosen(&snapshot, 1, 0), chosen(&table, 1, 0)), (vec![1], vec![2]));
    let stats = &table.stats(Some(1), Nanos(15_000))[0];
    assert_eq!((stats.counted, stats.age_ns), (Counted { packets: 2, bytes: 150 }, 10_000));
}

#[test]
fn a_change_of_liveness_keeps_bucket_counters_and_a_modify_clears_them() {
    let mut table = table([add(1, GroupKind::FastFailover, vec![watching(1), watching(2)])]);
    table.get(1).unwrap().choose(|| 0)[0].tally.count(60);
    table.set_ports(&ports(&[2]));
    assert_eq!(table.stats(None, NOW)[0].buckets[0], Counted { packets: 1, bytes: 60 });
    table.apply(modify(1, GroupKind::FastFailover, vec![watching(1)]), &ports(&[2]), NOW).unwrap();
    assert_eq!(table.stats(None, NOW)[0].buckets, [Counted::default()]);
}

#[test]
fn each_refusal_has_its_error_and_changes_nothing() {
    use GroupKind::{All, FastFailover, Indirect, Select};
    let mut table = table([add(1, Indirect, vec![to(1)]), add(2, All, vec![chained(1)])]);
    let cases = [
        (add(1, All, vec![]), GroupModError::Exists(1)),
        (add(MAX_GROUP + 1, All, vec![]), GroupModError::Invalid(MAX_GROUP + 1)),
        (add(3, Indirect, vec![]), GroupModError::Invalid(3)),
        (add(3, Indirect, vec![to(1), to(2)]), GroupModError::Invalid(3)),
        (add(3, Select, vec![to(1); 1025]), GroupModError::OutOfBuckets(1024)),
        (modify(9, All, vec![]), GroupModError::Unknown(9)),
        (modify(1, All, vec![chained(2)]), GroupModError::Loop(1)),
        (modify(1, All, vec![chained(1)]), GroupModError::Loop(1)),
        (GroupMod::Delete { id: 1 }, GroupModError::Chained { id: 1, by: 2 }),
        (add(3, All, vec![weighted(1, 7)]), GroupModError::BadBucket(0)),
        (add(3, FastFailover, vec![watching(1), to(2)]), GroupModError::BadWatch(1)),
        (add(3, FastFailover, vec![watching(0)]), GroupModError::BadWatch(0)),
        (
            add(3, FastFailover, vec![Bucket { watch_group: Some(8), ..to(1) }]),
            GroupModError::BadWatch(0),
        ),
        (
            add(3, All, vec![to(1), chained(8)]),
            GroupModError::Action { bucket: 1, source: ActionError::BadOutGroup(8) },
        ),
    ];
    for (change, error) in cases {
        assert_eq!(refused(&mut table, change), error);
        assert_eq!((table.len(), chosen(&table, 1, 0)), (2, vec![1]));
    }
}

#[test]
fn limits_of_groups_and_buckets_hold() {
    let limits = GroupLimits { groups: 2, buckets: 3, total_buckets: 4 };
    let mut table = GroupTable::new(limits);
    let mut apply = |change| table.apply(change, &ports(&[1]), NOW);
    apply(add(1, GroupKind::All, vec![to(1); 3])).unwrap();
    assert_eq!(apply(add(2, GroupKind::All, vec![to(1); 2])), Err(GroupModError::OutOfBuckets(4)));
    apply(modify(1, GroupKind::All, vec![to(1); 2])).unwrap();
    apply(add(2, GroupKind::All, vec![to(1); 2])).unwrap();
    assert_eq!(apply(add(3, GroupKind::All, vec![])), Err(GroupModError::OutOfGroups(2)));
    assert_eq!(apply(GroupMod::Delete { id: 7 }), Ok(vec![]));
    assert_eq!(apply(GroupMod::Delete { id: 1 }), Ok(vec![1]));
    apply(add(4, GroupKind::All, vec![to(1); 2])).unwrap();
    assert_eq!(apply(GroupMod::DeleteAll), Ok(vec![2, 4]));
    assert!(table.is_empty());
}

#[test]
fn a_chain_as_long_as_allowed_is_allowed_and_no_longer() {
    let longest = u32::from(MAX_CHAIN);
    let link =
        |id| add(id, GroupKind::All, if id == 1 { vec![to(1)] } else { vec![chained(id - 1)] });
    let mut table = table((1..=longest).map(link));
    assert_eq!(refused(&mut table, link(longest + 1)), GroupModError::ChainTooLong(longest + 1));
    // Making the lowest group deeper makes the highest too deep.
    table.apply(add(50, GroupKind::All, vec![]), &ports(&[]), NOW).unwrap();
    assert_eq!(
        refused(&mut table, modify(1, GroupKind::All, vec![chained(50)])),
        GroupModError::ChainTooLong(1)
    );
    assert_eq!(table.stats(Some(1), NOW)[0].groups_to_it, 1);
}

#[test]
fn a_dense_graph_of_groups_is_checked_in_no_time() {
    // Each of 8 layers forwards to the next one 200 times: 200^7 ways.
    let layer = |id| {
        add(id, GroupKind::All, if id == 1 { vec![to(1)] } else { vec![chained(id - 1); 200] })
    };
    let table = table((1..=8).map(layer));
    assert_eq!(table.len(), 8);
}

#[test]
fn views_give_back_what_was_put_in() {
    let buckets = vec![Bucket { watch_group: Some(1), ..weighted(2, 9) }, weighted(1, 1)];
    let table = table([add(1, GroupKind::All, vec![]), add(7, GroupKind::Select, buckets.clone())]);
    let views: Vec<_> = table.views().collect();
    assert_eq!(views[1], GroupView { id: 7, kind: GroupKind::Select, buckets: &buckets });
}
