//! Actions that are refused, each with its code (§7.4.4.3).

use crate::fields::{ROWS, Row, needs};
use crate::harness::{Suite, entry, plain_frame};
use crate::oracle::{Framing, Sample};
use openflow::{Action, ErrorCode, FlowMod, GroupId, Instruction, Match, Oxm, OxmField, PortNo};

/// The cases.
pub fn cases(suite: &mut Suite) {
    for row in ROWS {
        of_field(suite, row);
    }
    let to = |port| Action::output(port);
    let cases = [
        ("output::any", to(PortNo::ANY), ErrorCode::BadActionBadOutPort),
        ("output::zero", to(PortNo(0)), ErrorCode::BadActionBadOutPort),
        ("output::above_max", to(PortNo(0xffff_ff01)), ErrorCode::BadActionBadOutPort),
        ("output::table", to(PortNo::TABLE), ErrorCode::BadActionBadOutPort),
        ("group::any", Action::Group(GroupId::ANY), ErrorCode::BadActionBadOutGroup),
        ("group::absent", Action::Group(GroupId(77)), ErrorCode::BadActionBadOutGroup),
        ("set_queue::all", Action::SetQueue(u32::MAX), ErrorCode::BadActionBadQueue),
        ("push_vlan", Action::PushVlan(0x8847), ErrorCode::BadActionBadArgument),
        ("push_mpls", Action::PushMpls(0x8100), ErrorCode::BadActionBadArgument),
        ("push_pbb", Action::PushPbb(0x8100), ErrorCode::BadActionBadArgument),
        (
            "experimenter",
            Action::Experimenter { experimenter: 0x00ab_cdef, body: vec![0; 4] },
            ErrorCode::BadActionBadExperimenter,
        ),
    ];
    for (name, action, code) in cases {
        refused(suite, name, Match::default(), action, code);
    }
    let inconsistent = [
        ("pop_vlan", Action::PopVlan),
        ("pop_mpls", Action::PopMpls(0x0800)),
        ("pop_pbb", Action::PopPbb),
        ("copy_ttl_out", Action::CopyTtlOut),
        ("copy_ttl_in", Action::CopyTtlIn),
        ("dec_mpls_ttl", Action::DecMplsTtl),
        ("set_mpls_ttl", Action::SetMplsTtl(9)),
        ("dec_nw_ttl", Action::DecNwTtl),
        ("set_nw_ttl", Action::SetNwTtl(9)),
    ];
    for (name, action) in inconsistent {
        let arp = Match::default().with(OxmField::EthType, 0x0806).with(OxmField::VlanVid, 0);
        let code = ErrorCode::BadActionMatchInconsistent;
        refused(suite, &format!("{name}::without_its_header"), arp, action, code);
    }
}

/// Set-fields of one field.
fn of_field(suite: &mut Suite, row: Row) {
    let ipv6 = Framing::Untagged.around(Sample::Ipv6Udp);
    let frame = row.frames().next().map_or(ipv6, |(_, _, frame)| frame);
    let needed = needs(row.field, &frame);
    let name = |what: &str| format!("set_field::{what}::{}", row.name);
    let bytes = row.bytes();
    let whole = row.raw(false, vec![0; bytes]);
    if !row.settable {
        let code = ErrorCode::BadActionBadSetType;
        refused(suite, &name("not_settable"), needed, Action::SetField(whole), code);
        return;
    }
    let long = row.raw(false, vec![0; bytes + 1]);
    let code = ErrorCode::BadActionBadSetLen;
    refused(suite, &name("bad_length"), needed.clone(), Action::SetField(long), code);
    let code = ErrorCode::BadActionBadSetArgument;
    if !row.bits.is_multiple_of(8) {
        let wide = row.raw(false, vec![0xff; bytes]);
        refused(suite, &name("bad_value"), needed.clone(), Action::SetField(wide), code);
    }
    if row.field == OxmField::VlanVid {
        let set = Action::SetField(Oxm::exact(row.field, 0x1007));
        let untagged = Match::default().with(OxmField::VlanVid, 0);
        let inconsistent = ErrorCode::BadActionMatchInconsistent;
        refused(suite, &name("prerequisite_missing"), untagged, set, inconsistent);
        let set = Action::SetField(Oxm::exact(row.field, 7));
        let tagged = Match::default().with(OxmField::VlanVid, 0x1007);
        refused(suite, &name("no_present_bit"), tagged, set, code);
    }
    if !needed.0.is_empty() {
        let set = Action::SetField(Oxm::exact(row.field, 1));
        let code = ErrorCode::BadActionMatchInconsistent;
        refused(suite, &name("prerequisite_missing"), Match::default(), set, code);
    }
}

/// Both in apply-actions and in write-actions; and nothing was added.
fn refused(suite: &mut Suite, name: &str, fields: Match, action: Action, code: ErrorCode) {
    for how in ["apply", "write"] {
        let (fields, action) = (fields.clone(), action.clone());
        suite.case(format!("action_refused::{name}::{how}"), move |bench| {
            let instruction = match how {
                "apply" => Instruction::ApplyActions(vec![action]),
                _ => Instruction::WriteActions(vec![action]),
            };
            let instructions = vec![instruction];
            bench.refuse(&FlowMod { instructions, ..entry(1, fields, vec![]) }, code);
            bench.send(1, &plain_frame("nothing was added")).is_nothing();
        });
    }
}
