//! A pipeline of fewer tables than it may have (OpenFlow 1.3.5 §7.3.5.5.1).

use super::*;
use crate::TableSet;

/// An entry of a table that every packet of the port matches.
fn from_port(table: u8, priority: u16, port: u32) -> FlowMod {
    let (mut key, mut mask) = (Key::default(), Key::default());
    key.set(Field::InPort, port.into());
    mask.set(Field::InPort, Field::InPort.full());
    let instructions = to_port(port + 1);
    let flags = FlowFlags { send_flow_removed: true, ..FlowFlags::default() };
    FlowMod { table: Some(table), key, mask, priority, instructions, flags, ..FlowMod::default() }
}

fn leading(from: u8, to: u8) -> FlowMod {
    let instructions = Instructions { goto: Some(to), ..Instructions::default() };
    FlowMod { instructions, ..from_port(from, 1, 1) }
}

fn tables(pipeline: &Pipeline) -> Vec<u8> {
    let mut tables: Vec<u8> =
        pipeline.flows(&FlowFilter::default(), Nanos(0)).map(|flow| flow.table).collect();
    tables.sort_unstable();
    tables
}

fn set(pipeline: &mut Pipeline, tables: impl IntoIterator<Item = u8>) -> usize {
    pipeline.set_tables(TableSet::from_iter(tables), Nanos(0)).len()
}

#[test]
fn entries_up_to_the_last_table_that_comes_or_goes_go_and_nobody_is_told() {
    let mut pipeline = pipeline(32);
    for (table, priority) in [(0, 1), (0, 2), (2, 1), (3, 1), (4, 1), (9, 7)] {
        pipeline.flow_mod(&from_port(table, priority, 1), Nanos(0)).unwrap();
    }
    let seen = pipeline.snapshot();
    assert_eq!(set(&mut pipeline, (0..254).filter(|table| *table != 3)), 4);
    assert_eq!(tables(&pipeline), [4, 9]);
    drop(seen);
    pipeline.snapshot();
    assert!(pipeline.departed().is_empty() && !pipeline.has_leaving());
    assert_eq!(set(&mut pipeline, 0..254), 0, "table 3 comes back");
    assert_eq!(tables(&pipeline), [4, 9]);
    assert_eq!(set(&mut pipeline, 0..9), 2);
    assert!(tables(&pipeline).is_empty());
}

#[test]
fn the_same_tables_again_change_nothing() {
    let mut pipeline = pipeline(32);
    pipeline.flow_mod(&leading(0, 5), Nanos(0)).unwrap();
    let before = pipeline.snapshot();
    assert_eq!(set(&mut pipeline, 0..254), 0);
    assert!(Arc::ptr_eq(&before, &pipeline.snapshot()));
}

#[test]
fn a_removed_table_takes_no_change_and_none_leads_to_it() {
    let mut pipeline = pipeline(32);
    set(&mut pipeline, [0, 1, 5]);
    let said = |pipeline: &mut Pipeline, change| pipeline.flow_mod(&change, Nanos(0)).unwrap_err();
    assert_eq!(said(&mut pipeline, from_port(2, 1, 1)), FlowModError::BadTable);
    let delete = FlowMod { command: FlowCommand::Delete, ..from_port(2, 1, 1) };
    assert_eq!(said(&mut pipeline, delete.clone()), FlowModError::BadTable);
    let bad_goto = FlowModError::BadGoto { table: 0, goto: 2 };
    assert_eq!(said(&mut pipeline, leading(0, 2)), bad_goto);
    pipeline.flow_mod(&leading(0, 5), Nanos(0)).unwrap();
    pipeline.flow_mod(&from_port(5, 1, 1), Nanos(0)).unwrap();
    let mut key = Key::default();
    key.set(Field::InPort, 1);
    let snapshot = pipeline.snapshot();
    assert_eq!(send(&snapshot, &mut cache(), &[key], Nanos(0)), [Some(2)]);
    let all = FlowMod { table: None, key: Key::default(), mask: Key::default(), ..delete };
    assert_eq!(pipeline.flow_mod(&all, Nanos(0)).unwrap().len(), 2);
}
