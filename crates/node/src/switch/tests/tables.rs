//! A pipeline of fewer tables over restarts and flushes.

use super::*;
use openflow::{TableFeatures, TableProperty, TypeId};

/// A request for the first table and no other.
fn first_table(switch: &Switch) -> Vec<TableFeatures> {
    let mut only: Vec<_> = switch.table_features().take(1).collect();
    only[0].properties.iter_mut().for_each(|property| match property {
        TableProperty::NextTables(_, next) => next.clear(),
        TableProperty::Instructions(_, kinds) => kinds.retain(|kind| *kind != TypeId::Standard(1)),
        _ => {}
    });
    only
}

#[test]
fn tables_are_journalled_after_the_entries_that_go_with_them_and_come_back_before_entries() {
    let memory = Arc::new(Memory::default());
    let (before, _) = switch_with(memory.clone(), FailMode::Secure);
    before.flow_mod(&entry(1)).unwrap();
    let only = first_table(&before);
    before.set_table_features(&only).unwrap();
    before.flow_mod(&entry(2)).unwrap();
    let changes = memory.take();
    let [Change::FlowSet(..), Change::FlowGone(_), Change::Tables(Some(tables)), kept] =
        &changes[..]
    else {
        panic!("{changes:?}")
    };

    let journal = Arc::new(Memory::default());
    let (after, _) = switch_with(journal.clone(), FailMode::Secure);
    after.restore_tables(tables.clone());
    assert_eq!(after.restore(vec![kept.clone()]), []);
    assert!(journal.take().is_empty(), "nothing is journalled again");
    assert_eq!(after.table_features().collect::<Vec<_>>(), only);
    let elsewhere = FlowMod { table: TableId(1), ..entry(3) };
    let code = after.flow_mod(&elsewhere).unwrap_err().code;
    assert_eq!(code, ErrorCode::FlowModFailedBadTableId);
    after.restore_tables(TableNames::from([(1, "".into())]));
    assert_eq!(after.table_features().count(), 1, "what is no pipeline is left out");
}

#[test]
fn removed_tables_come_back_with_a_flush_and_stay_removed_without() {
    let keep = FailPolicy::of(FailMode::Secure);
    let flush = FailPolicy { on_reconnect: Rules::Flush, ..keep };
    for (policy, tables) in [(keep, 1), (flush, 254)] {
        let memory = Arc::new(Memory::default());
        let (switch, _) = switch_with(memory.clone(), FailMode::Secure);
        switch.set_fail_policy(policy);
        switch.join(memory.clone());
        switch.set_table_features(&first_table(&switch)).unwrap();
        memory.take();
        switch.leave(7);
        switch.join(memory.clone());
        assert_eq!(switch.tables(), tables, "{policy:?}");
        assert_eq!(memory.take().contains(&Change::Tables(None)), tables == 254);
    }
}
