//! A pipeline of fewer tables, and of all again (OpenFlow 1.3.5 §7.3.5.5.1).

use super::features::{features, set};
use super::{cookies, from_port, refuse};
use crate::harness::{Bench, Place, Session, Suite, entry, output, plain_frame, privileged};
use openflow::{
    ErrorCode, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest, Instruction, Match,
    Message, MultipartReply, MultipartRequest, OxmField, TableFeatures, TableId, TableMod,
    TableProperty, TypeId, Version,
};
use rustix::process::Signal;

/// `OFPIT_GOTO_TABLE`.
const GOTO_TABLE: TypeId = TypeId::Standard(1);

/// A request for exactly these tables, which is what the answer to it will say.
fn only(session: &mut Session, tables: &[u8]) -> Vec<TableFeatures> {
    let mut wanted = features(session);
    wanted.retain(|table| tables.contains(&table.table.0));
    for TableFeatures { table, properties, .. } in &mut wanted {
        let leads_on = tables.iter().any(|other| *other > table.0);
        for property in properties {
            match property {
                TableProperty::NextTables(_, next) => next.retain(|id| tables.contains(&id.0)),
                TableProperty::Instructions(_, kinds) if !leads_on => {
                    kinds.retain(|kind| *kind != GOTO_TABLE);
                }
                _ => {}
            }
        }
    }
    wanted
}

/// Makes the pipeline these tables.
fn reduce(session: &mut Session, tables: &[u8]) {
    let wanted = only(session, tables);
    assert_eq!(wanted.len(), tables.len());
    assert_eq!(set(session, &wanted), Ok(wanted));
}

/// An entry of a table that matches everything and leads to another.
fn leading(cookie: u64, from: u8, to: u8) -> FlowMod {
    let instructions = vec![Instruction::GotoTable(TableId(to))];
    FlowMod { cookie, table: TableId(from), instructions, ..entry(1, Match::default(), vec![]) }
}

fn numbers(bench: &mut Bench) -> Vec<u8> {
    bench.tables().iter().map(|table| table.table.0).collect()
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    removal(suite);
    entries(suite);
    returning(suite);
    suite.plain("multiparts::tables_and_their_names_survive_a_kill", || {
        if privileged() {
            survive_a_kill();
        }
    });
}

fn removal(suite: &mut Suite) {
    suite.fresh("multiparts::tables_left_out_of_a_request_are_removed", |bench| {
        let wanted = only(&mut bench.session, &[0, 1, 5]);
        assert_eq!(set(&mut bench.session, &wanted), Ok(wanted.clone()));
        assert_eq!(features(&mut bench.session), wanted);
        assert_eq!(numbers(bench), [0, 1, 5]);
    });
    suite.fresh("multiparts::tables_that_are_left_pass_packets_on", |bench| {
        reduce(&mut bench.session, &[0, 3, 253]);
        bench.add(&leading(1, 0, 3));
        bench.add(&leading(2, 3, 253));
        bench.add(&FlowMod { table: TableId(253), ..entry(1, Match::default(), vec![output(2)]) });
        bench.send(1, &plain_frame("far")).is_only(2, &plain_frame("far"));
    });
    suite.fresh("multiparts::tables_that_were_removed_are_no_tables", |bench| {
        reduce(&mut bench.session, &[0, 1, 5]);
        let bad_table = ErrorCode::FlowModFailedBadTableId;
        let absent = TableId(2);
        bench.refuse(&from_port(1, absent.0, 1), bad_table);
        let delete =
            FlowMod { command: FlowModCommand::Delete, table: absent, ..Default::default() };
        bench.refuse(&delete, bad_table);
        bench.refuse(&leading(1, 0, absent.0), ErrorCode::BadInstructionBadTableId);
        let request = FlowStatsRequest { table: absent, ..Default::default() };
        let bad_request = ErrorCode::BadRequestBadTableId;
        refuse(bench, MultipartRequest::Flow(request.clone()), bad_request);
        refuse(bench, MultipartRequest::Aggregate(request), bad_request);
        let change = Message::TableMod(TableMod { table: absent, config: 0 });
        bench.session.refuse(&change, ErrorCode::TableModFailedBadTable);
        bench.add(&FlowMod { table: TableId::ALL, ..delete });
        bench.session.accept(&Message::TableMod(TableMod { table: TableId::ALL, config: 0 }));
        let Message::FeaturesReply(reply) = bench.session.ask(&Message::FeaturesRequest) else {
            panic!("no features")
        };
        assert_eq!(reply.tables, 254, "so many are supported, and can be had back");
    });
    suite.on_node("multiparts::tables_that_were_removed_are_none_in_1_0_either", |node| {
        let mut bench = Bench::make(node);
        reduce(&mut bench.session, &[0, 7]);
        let mut session = Session::open(&node.socket(&bench.switch), Version::V1_0);
        let parts = session.ask_parts(&MultipartRequest::Table);
        let [MultipartReply::Table(tables)] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!(tables.iter().map(|table| table.table.0).collect::<Vec<_>>(), [0, 7]);
        bench.remove(node);
    });
    suite.fresh("multiparts::tables_are_as_before_when_the_request_is_refused", |bench| {
        bench.add(&from_port(1, 0, 1));
        let have = features(&mut bench.session);
        let refused = |bench: &mut Bench, wanted: &[TableFeatures]| {
            set(&mut bench.session, wanted).expect_err("it cannot be granted")
        };
        let without_first = only(&mut bench.session, &[1, 2, 3]);
        assert_eq!(refused(bench, &without_first), ErrorCode::TableFeaturesFailedEperm);
        let bad_argument = ErrorCode::TableFeaturesFailedBadArgument;
        assert_eq!(refused(bench, &have[..200]), bad_argument, "its tables lead to others");
        let mut too_able = only(&mut bench.session, &[0, 1, 2]);
        too_able[2].max_entries = u32::MAX;
        assert_eq!(refused(bench, &too_able), bad_argument);
        assert_eq!(features(&mut bench.session), have);
        assert_eq!(bench.cookies(), [1]);
    });
}

fn entries(suite: &mut Suite) {
    suite.fresh("multiparts::tables_that_go_or_lead_elsewhere_lose_their_entries", |bench| {
        let told = |change: FlowMod| FlowMod { flags: FlowModFlags::SEND_FLOW_REM, ..change };
        bench.add(&told(leading(1, 0, 9)));
        bench.add(&told(leading(2, 3, 9)));
        bench.add(&told(from_port(3, 9, 1)));
        let all_but_3: Vec<u8> = (0..254).filter(|table| *table != 3).collect();
        reduce(&mut bench.session, &all_but_3);
        assert_eq!(bench.cookies(), [3], "tables behind the removed one do what they did");
        assert_eq!(bench.flows_removed(), [], "no flow-removed is sent (§7.3.5.5.1)");
    });
    suite.fresh("multiparts::tables_get_names_and_keep_their_entries", |bench| {
        bench.add(&from_port(1, 1, 1));
        let mut wanted = features(&mut bench.session);
        assert_eq!(wanted[1].name.to_string(), "table1");
        wanted[1].name = "routes".into();
        wanted[2].name = "a name of thirty-two bytes, no NUL".into();
        assert_eq!(set(&mut bench.session, &wanted), Ok(wanted.clone()));
        assert_eq!(features(&mut bench.session), wanted);
        assert_eq!(bench.cookies(), [1]);
    });
}

fn returning(suite: &mut Suite) {
    suite.fresh("multiparts::tables_come_back_when_they_are_asked_for", |bench| {
        let all = features(&mut bench.session);
        reduce(&mut bench.session, &[0, 1]);
        bench.add(&leading(1, 0, 1));
        bench.add(&from_port(2, 1, 1));
        assert_eq!(set(&mut bench.session, &all), Ok(all.clone()));
        assert!(bench.cookies().is_empty(), "both tables lead to more tables now");
        bench.add(&leading(1, 0, 77));
        let fields = Match::default().with(OxmField::InPort, 1);
        bench.add(&FlowMod { table: TableId(77), ..entry(2, fields, vec![output(3)]) });
        bench.send(1, &plain_frame("back")).is_only(3, &plain_frame("back"));
    });
    suite.fresh("multiparts::tables_stay_removed_when_another_controller_comes", |bench| {
        reduce(&mut bench.session, &[0, 1]);
        bench.add(&from_port(1, 1, 1));
        assert_eq!(cookies(bench, FlowStatsRequest::default()), [1]);
        assert_eq!(numbers(bench), [0, 1]);
    });
}

/// A node of its own, killed and started again.
fn survive_a_kill() {
    let mut place = Place::new(&[]);
    place.start();
    place.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    let socket = place.path("run/sw0.mgmt");
    let mut session = Session::open(&socket, Version::V1_3);
    let mut wanted = only(&mut session, &[0, 1, 5]);
    wanted[2].name = "last".into();
    assert_eq!(set(&mut session, &wanted), Ok(wanted.clone()));
    // Its answer says that everything before is on disk.
    place.suiro(&["flow", "add", "sw0", "table=5,priority=3,actions=drop"]);
    for _ in 0..2 {
        place.end(Signal::KILL);
        place.start();
        let mut session = Session::open(&socket, Version::V1_3);
        assert_eq!(features(&mut session), wanted);
        let flows = place.suiro(&["flow", "list", "sw0"]);
        assert!(flows.contains("table=5"), "{flows}");
    }
    let said = place.says(&["flow", "add", "sw0", "table=2,actions=drop"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("name tables that the switch has"), "{}", said.err);
}
