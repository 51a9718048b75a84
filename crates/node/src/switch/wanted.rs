//! Whether the tables are as a controller wants them (OpenFlow 1.3.5 §7.3.5.5.1).
//!
//! A request describes the whole pipeline: tables that it leaves out are removed, those that it names are there and have its names, and
//! it is granted when the tables' features are "a superset of, or equal to" what it asks for. suiro's tables can always do all that
//! they ever can, so one that is asked for less still does more, as the answer says. Where a table leads is the exception: only to
//! later tables of the request. What cannot be granted is refused whole.

use crate::journal::TableNames;
use crate::switch::features::table_features;
use openflow::{ErrorCode, Fault, OxmId, TableFeatures, TableProperty};

/// `OFPTC_DEPRECATED_MASK`: the bits that may be set and mean nothing.
const CONFIG: u32 = 3;

/// Checks a request to a switch that has `tables` tables of at most `max_entries` entries. Returns the tables that it asks for.
///
/// # Errors
/// `OFPTFFC_*`.
pub(crate) fn check(
    wanted: &[TableFeatures],
    tables: u8,
    max_entries: u32,
) -> Result<TableNames, Fault> {
    let mut named = TableNames::new();
    for table in wanted {
        let is_twice = named.insert(table.table.0, table.name.clone()).is_some();
        if table.table.0 >= tables || is_twice {
            return refused(ErrorCode::TableFeaturesFailedBadTable, "no such table, or one twice");
        }
    }
    if !named.contains_key(&0) {
        return refused(ErrorCode::TableFeaturesFailedEperm, "table 0 cannot be removed");
    }
    let numbers: Vec<u8> = named.keys().copied().collect();
    for table in wanted {
        check_table(table, &table_features(table.table.0, &numbers, max_entries))?;
    }
    Ok(named)
}

fn check_table(wanted: &TableFeatures, have: &TableFeatures) -> Result<(), Fault> {
    if wanted.max_entries > have.max_entries || wanted.config & !CONFIG != 0 {
        return refused(
            ErrorCode::TableFeaturesFailedBadArgument,
            "more entries than a table can have, or an unknown configuration",
        );
    }
    if wanted.properties.iter().any(|one| matches!(one, TableProperty::Experimenter { .. })) {
        return refused(ErrorCode::TableFeaturesFailedBadType, "an experimenter's property");
    }
    have.properties.iter().try_for_each(|property| check_property(&wanted.properties, property))
}

/// There is exactly one property of each kind; that for table-miss entries may be left out.
fn check_property(wanted: &[TableProperty], have: &TableProperty) -> Result<(), Fault> {
    let found: Vec<bool> = wanted.iter().filter_map(|property| covers(have, property)).collect();
    match found[..] {
        [] if is_miss(have) => Ok(()),
        [true] => Ok(()),
        [false] => refused(
            ErrorCode::TableFeaturesFailedBadArgument,
            "an instruction, action, field or next table that the table does not have",
        ),
        _ => {
            refused(ErrorCode::TableFeaturesFailedBadType, "a property is missing, or there twice")
        }
    }
}

/// Whether all that is wanted is there; `None` when the properties are of different kinds.
fn covers(have: &TableProperty, wanted: &TableProperty) -> Option<bool> {
    use TableProperty as Is;
    Some(match (have, wanted) {
        (Is::Instructions(a, have), Is::Instructions(b, wanted))
        | (Is::WriteActions(a, have), Is::WriteActions(b, wanted))
        | (Is::ApplyActions(a, have), Is::ApplyActions(b, wanted))
            if a == b =>
        {
            wanted.iter().all(|id| have.contains(id))
        }
        (Is::NextTables(a, have), Is::NextTables(b, wanted)) if a == b => {
            wanted.iter().all(|table| have.contains(table))
        }
        (Is::WriteSetField(a, have), Is::WriteSetField(b, wanted))
        | (Is::ApplySetField(a, have), Is::ApplySetField(b, wanted))
            if a == b =>
        {
            has_fields(have, wanted)
        }
        (Is::Match(have), Is::Match(wanted)) | (Is::Wildcards(have), Is::Wildcards(wanted)) => {
            has_fields(have, wanted)
        }
        _ => return None,
    })
}

fn has_fields(have: &[OxmId], wanted: &[OxmId]) -> bool {
    let has = |id: &OxmId| {
        let field = id.field()?;
        let masked = id.header >> 8 & 1 == 1;
        (!masked || field.spec().maskable)
            .then(|| have.iter().any(|known| known.field() == Some(field)))
    };
    wanted.iter().all(|id| has(id) == Some(true))
}

fn is_miss(property: &TableProperty) -> bool {
    use TableProperty as Is;
    let scope = match property {
        Is::Instructions(scope, _) | Is::WriteActions(scope, _) | Is::ApplyActions(scope, _) => {
            scope
        }
        Is::NextTables(scope, _) => scope,
        Is::WriteSetField(scope, _) | Is::ApplySetField(scope, _) => scope,
        Is::Match(_) | Is::Wildcards(_) | Is::Experimenter { .. } => return false,
    };
    *scope == openflow::EntryScope::Miss
}

fn refused<T>(code: ErrorCode, what: &'static str) -> Result<T, Fault> {
    Err(Fault::new(code, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::{EntryScope, OxmField, TableId, TypeId};

    fn pipeline() -> Vec<TableFeatures> {
        pipeline_of(&[0, 1, 2])
    }

    fn pipeline_of(tables: &[u8]) -> Vec<TableFeatures> {
        tables.iter().map(|&table| table_features(table, tables, 100)).collect()
    }

    fn code(wanted: &[TableFeatures]) -> Option<ErrorCode> {
        check(wanted, 3, 100).err().map(|fault| fault.code)
    }

    /// What is said of the second table, as `change` leaves it.
    fn changed(change: impl FnOnce(&mut TableFeatures)) -> Option<ErrorCode> {
        let mut wanted = pipeline();
        change(&mut wanted[1]);
        code(&wanted)
    }

    #[test]
    fn what_the_tables_are_they_may_be_told_to_be() {
        assert_eq!(code(&pipeline()), None);
    }

    #[test]
    fn less_is_granted_and_properties_of_table_misses_may_be_left_out() {
        let fewer = changed(|table| {
            table.max_entries = 10;
            table.properties.retain(|property| !is_miss(property));
            for property in &mut table.properties {
                if let TableProperty::Match(fields) = property {
                    *fields = vec![OxmId::of(OxmField::InPort, false)];
                }
            }
        });
        assert_eq!(fewer, None);
    }

    #[test]
    fn tables_may_be_left_out_and_named_but_for_the_first() {
        for tables in [&[0][..], &[0, 2], &[0, 1]] {
            assert_eq!(code(&pipeline_of(tables)), None, "{tables:?}");
        }
        for tables in [&[1][..], &[1, 2]] {
            let refused = code(&pipeline_of(tables));
            assert_eq!(refused, Some(ErrorCode::TableFeaturesFailedEperm), "{tables:?}");
        }
        let mut named = pipeline_of(&[0, 2]);
        named[1].name = "routes".into();
        let tables = check(&named, 3, 100).unwrap();
        assert_eq!(tables.into_iter().collect::<Vec<_>>(), [(0, "".into()), (2, "routes".into())]);
    }

    #[test]
    fn a_table_that_is_left_out_is_nowhere_to_go_to() {
        let bad_argument = Some(ErrorCode::TableFeaturesFailedBadArgument);
        assert_eq!(code(&pipeline()[..2]), bad_argument, "table 1 leads to table 2");
        let mut wanted = pipeline_of(&[0, 2]);
        wanted[0] = pipeline().swap_remove(0);
        assert_eq!(code(&wanted), bad_argument, "table 0 leads to table 1");
    }

    #[test]
    fn a_table_that_does_not_exist_or_is_there_twice_is_a_bad_table() {
        let bad_table = Some(ErrorCode::TableFeaturesFailedBadTable);
        assert_eq!(changed(|table| table.table = TableId(3)), bad_table);
        assert_eq!(changed(|table| table.table = TableId(0)), bad_table);
    }

    #[test]
    fn more_than_a_table_can_do_is_a_bad_argument() {
        let bad_argument = Some(ErrorCode::TableFeaturesFailedBadArgument);
        assert_eq!(changed(|table| table.max_entries = 101), bad_argument);
        assert_eq!(changed(|table| table.config = 4), bad_argument);
        let replace = |new: TableProperty| {
            changed(|table| {
                let old = table.properties.iter_mut().find(|old| covers(old, &new).is_some());
                *old.unwrap() = new;
            })
        };
        let regular = EntryScope::Regular;
        let masked = OxmId {
            header: OxmId::of(OxmField::EthType, false).header | 1 << 8,
            experimenter: None,
        };
        for property in [
            TableProperty::Instructions(regular, vec![TypeId::Standard(9)]),
            TableProperty::ApplyActions(regular, vec![TypeId::Standard(1)]),
            TableProperty::NextTables(regular, vec![TableId(1)]),
            TableProperty::WriteSetField(regular, vec![OxmId::of(OxmField::InPort, false)]),
            TableProperty::Match(vec![masked]),
            TableProperty::Match(vec![OxmId { header: 0x8000_fe04, experimenter: None }]),
        ] {
            assert_eq!(replace(property.clone()), bad_argument, "{property:?}");
        }
    }

    #[test]
    fn a_property_missing_or_twice_or_unknown_is_a_bad_type() {
        let bad_type = Some(ErrorCode::TableFeaturesFailedBadType);
        assert_eq!(changed(|table| drop(table.properties.remove(0))), bad_type);
        assert_eq!(changed(|table| table.properties.push(table.properties[0].clone())), bad_type);
        let scope = EntryScope::Regular;
        let unknown =
            TableProperty::Experimenter { scope, experimenter: 1, exp_type: 1, body: vec![] };
        assert_eq!(changed(|table| table.properties.push(unknown)), bad_type);
    }
}
