//! Table features: read, and set where the tables have what is asked for (OpenFlow 1.3.5 §7.3.5.5).

use crate::harness::{Bench, Session, Suite};
use openflow::{
    EntryScope, ErrorCode, Message, MultipartReply, MultipartRequest, OxmField, OxmId, Part,
    TableFeatures, TableId, TableProperty, TypeId,
};

/// Tables of one request in parts: each is about 3 KiB.
const TABLES: usize = 16;

/// What each table of the pipeline can do.
pub fn features(session: &mut Session) -> Vec<TableFeatures> {
    let parts = session.ask_parts(&MultipartRequest::TableFeatures(vec![]));
    parts.into_iter().flat_map(list).collect()
}

fn list(part: MultipartReply) -> Vec<TableFeatures> {
    match part {
        MultipartReply::TableFeatures(list) => list,
        other => panic!("{other:?}"),
    }
}

/// Asks for these tables in parts; returns the answer's tables, or the error.
pub fn set(
    session: &mut Session,
    wanted: &[TableFeatures],
) -> Result<Vec<TableFeatures>, ErrorCode> {
    let chunks: Vec<_> = wanted.chunks(TABLES).collect();
    let xid = 0x7ab1e;
    for (at, chunk) in chunks.iter().enumerate() {
        let part = Part {
            more: at + 1 < chunks.len(),
            body: MultipartRequest::TableFeatures(chunk.to_vec()),
        };
        session.send_as(xid, &Message::MultipartRequest(part));
    }
    let mut found = Vec::new();
    loop {
        match session.answer(xid) {
            Message::MultipartReply(Part { more, body }) => {
                found.extend(list(body));
                if !more {
                    return Ok(found);
                }
            }
            Message::Error(error) => match error.kind {
                openflow::ErrorKind::Known(code) => return Err(code),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}

/// What is said when the second table is asked to be as `change` makes it.
fn changed(
    bench: &mut Bench,
    change: impl FnOnce(&mut TableFeatures),
) -> Result<Vec<TableFeatures>, ErrorCode> {
    let mut wanted = features(&mut bench.session);
    change(&mut wanted[1]);
    set(&mut bench.session, &wanted)
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    suite.case("multiparts::table_features_describe_every_table", |bench| {
        let tables = features(&mut bench.session);
        assert_eq!(tables.len(), 254);
        for (number, table) in tables.iter().enumerate() {
            assert_eq!(usize::from(table.table.0), number);
            assert_eq!((table.metadata_match, table.metadata_write), (u64::MAX, u64::MAX));
            assert!(table.max_entries >= 1_000_000);
        }
        let next = TableProperty::NextTables(EntryScope::Regular, vec![TableId(253)]);
        assert!(tables[252].properties.contains(&next));
    });
    suite.case("multiparts::table_features_name_every_field_of_the_specification", |bench| {
        let tables = features(&mut bench.session);
        let fields = tables[0].properties.iter().find_map(|property| match property {
            TableProperty::Match(fields) => Some(fields.clone()),
            _ => None,
        });
        let fields = fields.unwrap();
        for (field, maskable) in OxmField::of_tables() {
            let id = OxmId::of(field, maskable);
            assert!(fields.contains(&id), "{field:?}");
        }
    });
    suite.case("multiparts::table_features_may_be_set_to_what_they_are", |bench| {
        let have = features(&mut bench.session);
        assert_eq!(set(&mut bench.session, &have), Ok(have));
    });
    suite.case("multiparts::table_features_may_be_asked_for_less_and_entries_stay", |bench| {
        bench.add(&super::from_port(1, 1, 1));
        let have = features(&mut bench.session);
        let answer = changed(bench, |table| {
            table.max_entries = 5;
            table.properties.retain(|property| {
                !matches!(property, TableProperty::ApplyActions(EntryScope::Miss, _))
            });
        });
        assert_eq!(answer, Ok(have), "the answer says what the tables can do, which is more");
        assert_eq!(bench.cookies(), [1]);
    });
    suite.case("multiparts::table_features_that_the_tables_lack_are_refused", |bench| {
        let bad_table = Err(ErrorCode::TableFeaturesFailedBadTable);
        assert_eq!(changed(bench, |table| table.table = TableId(0)), bad_table);
        let bad_argument = Err(ErrorCode::TableFeaturesFailedBadArgument);
        assert_eq!(changed(bench, |table| table.max_entries = u32::MAX), bad_argument);
        let teach = |table: &mut TableFeatures| {
            for property in &mut table.properties {
                if let TableProperty::ApplyActions(EntryScope::Regular, kinds) = property {
                    kinds.push(TypeId::Standard(1));
                }
            }
        };
        assert_eq!(changed(bench, teach), bad_argument);
        let bad_type = Err(ErrorCode::TableFeaturesFailedBadType);
        assert_eq!(
            changed(bench, |table| drop(
                table.properties.pop().and(table.properties.drain(..1).next())
            )),
            bad_type
        );
    });
}
