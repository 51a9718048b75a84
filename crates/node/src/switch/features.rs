//! What every table of a suiro switch can do (OpenFlow 1.3.5 §7.3.5.5): all the same but for the tables that come after it, so one
//! description serves them.

use openflow::{
    EntryScope, FixedText, OxmField, OxmId, TableFeatures, TableId, TableProperty, TypeId,
};

/// `OFPIT_*` of §7.2.4.
const GOTO_TABLE: u16 = 1;
const INSTRUCTIONS: [u16; 6] = [GOTO_TABLE, 2, 3, 4, 5, 6];

/// `OFPAT_*` of §7.2.5: output, copy TTL out and in, set and decrement MPLS TTL, push and pop VLAN and MPLS, set queue, group,
/// set and decrement IP TTL, set field, push and pop PBB.
const ACTIONS: [u16; 16] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// Bit per action of [`ACTIONS`], as group features say it.
pub(crate) const ACTION_BITS: u32 = {
    let mut bits = 0;
    let mut at = 0;
    while at < ACTIONS.len() {
        bits |= 1 << ACTIONS[at];
        at += 1;
    }
    bits
};

/// The features of `table` in a pipeline of `tables`, each of at most `max_entries` entries; its name is not known here.
pub(crate) fn table_features(table: u8, tables: &[u8], max_entries: u32) -> TableFeatures {
    let later = tables.iter().filter(|&&other| other > table);
    TableFeatures {
        table: TableId(table),
        name: FixedText::default(),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: 0,
        max_entries,
        properties: properties(later.copied().map(TableId).collect()),
    }
}

fn properties(next: Vec<TableId>) -> Vec<TableProperty> {
    let is_last = next.is_empty();
    let instructions =
        INSTRUCTIONS.iter().copied().filter(|&kind| !(is_last && kind == GOTO_TABLE));
    let instructions: Vec<TypeId> = instructions.map(TypeId::Standard).collect();
    let actions: Vec<TypeId> = ACTIONS.iter().copied().map(TypeId::Standard).collect();
    let all: Vec<OxmId> =
        OxmField::of_tables().map(|(field, maskable)| OxmId::of(field, maskable)).collect();
    let fields = || OxmField::of_tables().map(|(field, _)| field);
    let wildcards: Vec<OxmId> = fields().map(|field| OxmId::of(field, false)).collect();
    let settable = fields().filter(|field| field.spec().settable);
    let settable: Vec<OxmId> = settable.map(|field| OxmId::of(field, false)).collect();
    let mut found = vec![TableProperty::Match(all), TableProperty::Wildcards(wildcards)];
    for scope in [EntryScope::Regular, EntryScope::Miss] {
        found.push(TableProperty::Instructions(scope, instructions.clone()));
        found.push(TableProperty::NextTables(scope, next.clone()));
        found.push(TableProperty::WriteActions(scope, actions.clone()));
        found.push(TableProperty::ApplyActions(scope, actions.clone()));
        found.push(TableProperty::WriteSetField(scope, settable.clone()));
        found.push(TableProperty::ApplySetField(scope, settable.clone()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_table_leads_nowhere() {
        let last = table_features(3, &[0, 2, 3], 10);
        assert!(last.properties.contains(&TableProperty::NextTables(EntryScope::Regular, vec![])));
        let lists_goto = |property: &TableProperty| {
            matches!(property,
            TableProperty::Instructions(_, kinds) if kinds.contains(&TypeId::Standard(GOTO_TABLE)))
        };
        assert!(!last.properties.iter().any(lists_goto));
        assert!(table_features(2, &[0, 2, 3], 10).properties.iter().any(lists_goto));
    }
}
