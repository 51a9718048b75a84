//! Changes of very many entries, a portion at a time.

use super::*;

/// Entries that drop.
fn dropping(switch: &Arc<Switch>) -> usize {
    let all = switch.flows(&FlowStatsRequest::default()).unwrap();
    all.filter(|flow| flow.instructions.is_empty()).count()
}

#[test]
fn a_change_of_very_many_lets_others_in_and_is_published_whole() {
    let (switch, plane) = switch();
    (0..1000).for_each(|at| switch.flow_mod(&entry(at)).unwrap());
    switch.publish();
    let snapshots = plane.snapshots.load(Ordering::Relaxed);
    let drop_all =
        FlowMod { command: FlowModCommand::Modify, instructions: vec![], ..FlowMod::default() };
    let mut change = pin!(switch.flow_mods(std::iter::once(&drop_all)));
    assert!(step(change.as_mut()).is_pending());
    let half = dropping(&switch); // takes the lock, which nobody has
    assert!(half > 0 && half < 1000, "{half}");
    assert!(!switch.publish_whole());
    assert_eq!(plane.snapshots.load(Ordering::Relaxed), snapshots);
    switch.flow_mod(&FlowMod { command: FlowModCommand::DeleteStrict, ..entry(999) }).unwrap();
    assert!(finish(change).is_empty());
    assert_eq!(dropping(&switch), 999);
    assert!(switch.publish_whole());
    assert_eq!(plane.snapshots.load(Ordering::Relaxed), snapshots + 1);
}

#[test]
fn of_two_long_changes_the_later_one_wins_everywhere() {
    let (switch, _) = switch();
    (0..1000).for_each(|at| switch.flow_mod(&entry(at)).unwrap());
    let all = |instructions| FlowMod {
        command: FlowModCommand::Modify,
        instructions,
        ..FlowMod::default()
    };
    let (forward, drop) = (all(entry(0).instructions), all(vec![]));
    let mut first = pin!(switch.flow_mods(std::iter::once(&drop)));
    let mut second = pin!(switch.flow_mods(std::iter::once(&forward)));
    assert!(step(first.as_mut()).is_pending() && step(second.as_mut()).is_pending());
    finish(first);
    assert_eq!(dropping(&switch), 1000);
    finish(second);
    assert_eq!(dropping(&switch), 0);
}

#[test]
fn a_session_that_ends_in_the_middle_of_a_change_holds_nobody_up() {
    let (switch, _) = switch();
    (0..1000).for_each(|at| switch.flow_mod(&entry(at)).unwrap());
    let delete =
        FlowMod { command: FlowModCommand::Delete, table: TableId::ALL, ..FlowMod::default() };
    {
        let mut change = pin!(switch.flow_mods(std::iter::once(&delete)));
        assert!(step(change.as_mut()).is_pending());
    }
    assert!(switch.publish_whole());
    assert!(finish(pin!(switch.flow_mods(std::iter::once(&delete)))).is_empty());
    assert_eq!(switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count, 0);
}

#[test]
fn entries_whose_time_has_come_go_in_portions() {
    let (switch, plane) = switch();
    let short = |at| FlowMod { hard_timeout_s: 2, ..entry(at) };
    (0..1000).for_each(|at| switch.flow_mod(&short(at)).unwrap());
    assert!(!switch.tick());
    plane.now.store(3_000_000_000, Ordering::Relaxed);
    assert!(switch.tick() && switch.expire());
    let left = || switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count;
    assert!(left() > 0 && left() < 1000, "{}", left());
    while switch.expire() {}
    assert_eq!(left(), 0);
}
