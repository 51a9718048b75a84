//! Tables that are full: as many as are allowed are taken, and one more is refused.

use crate::groups::change;
use crate::harness::{Bench, Place, Session, Suite, entry, output, privileged};
use openflow::{
    ErrorCode, FlowMod, GroupModCommand, GroupType, Match, Message, MeterFlags, MeterId, MeterMod,
    MeterModCommand, OxmField, Version,
};

/// Takes so many, and refuses one more by this code.
fn fill(bench: &mut Bench, count: u32, code: ErrorCode, add: impl Fn(u32) -> Message) {
    for id in 1..=count {
        bench.session.send(&add(id));
    }
    bench.session.barrier();
    bench.session.has_no_error();
    bench.session.refuse(&add(count + 1), code);
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    suite.fresh("errors::group_mod_failed_OFPGMFC_OUT_OF_GROUPS", |bench| {
        fill(bench, 32_768, ErrorCode::GroupModFailedOutOfGroups, |id| {
            change(GroupModCommand::Add, id, GroupType::All, vec![])
        });
    });
    suite.fresh("errors::meter_mod_failed_OFPMMFC_OUT_OF_METERS", |bench| {
        fill(bench, 65_536, ErrorCode::MeterModFailedOutOfMeters, |id| {
            let (command, flags) = (MeterModCommand::Add, MeterFlags::PKTPS);
            Message::MeterMod(MeterMod { command, flags, id: MeterId(id), bands: vec![] })
        });
    });
    suite.plain("errors::flow_mod_failed_OFPFMFC_TABLE_FULL", || {
        if privileged() {
            two_entries_and_no_more();
        }
    });
}

/// On a node of its own, whose tables are small.
fn two_entries_and_no_more() {
    let mut place = Place::new(&[]);
    place.configure("flows_per_table = 2\n");
    place.start();
    place.suiro(&["switch", "add", "small"]);
    let mut session = Session::open(&place.path("run/small.mgmt"), Version::V1_3);
    let to = |address: u128| {
        let fields = Match::default().with(OxmField::EthDst, address);
        Message::FlowMod(entry(1, fields, vec![output(1)]))
    };
    session.accept(&to(1));
    session.accept(&to(2));
    session.refuse(&to(3), ErrorCode::FlowModFailedTableFull);
    session.accept(&to(2)); // a replacement needs no room
    let later = FlowMod { table: openflow::TableId(1), ..entry(1, Match::default(), vec![]) };
    session.accept(&Message::FlowMod(later));
}
