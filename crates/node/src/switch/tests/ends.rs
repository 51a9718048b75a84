//! Rules that name the ends of tunnels.

use super::*;
use openflow::Oxm;

/// Sends to this IPv4 end.
fn to(end: u32) -> Action {
    Action::SetField(Oxm::exact(OxmField::TunIpv4Dst, end.into()))
}

fn sending_to(end: u32) -> FlowMod {
    let instructions = vec![Instruction::ApplyActions(vec![to(end), Action::output(PortNo(1))])];
    FlowMod { instructions, ..FlowMod::default() }
}

fn from(end: u32) -> FlowMod {
    FlowMod {
        fields: Match::default().with(OxmField::TunIpv4Src, end.into()),
        ..FlowMod::default()
    }
}

#[test]
fn who_only_asks_or_deletes_gives_no_numbers() {
    let (switch, _) = switch();
    let asked = FlowStatsRequest { fields: from(7).fields, ..FlowStatsRequest::default() };
    assert_eq!(switch.aggregate(&asked).unwrap().flow_count, 0);
    let command = FlowModCommand::Delete;
    switch.flow_mod(&FlowMod { command, table: TableId::ALL, ..from(7) }).unwrap();
    assert_eq!(switch.ends.count(), 0);
    switch.flow_mod(&from(7)).unwrap();
    assert_eq!((switch.ends.count(), switch.aggregate(&asked).unwrap().flow_count), (1, 1));
}

#[test]
fn an_end_more_than_there_are_numbers_is_refused_wherever_it_stands_and_old_ones_go_on() {
    let (switch, plane) = switch();
    let known = |at| std::net::Ipv4Addr::from_bits(at).into();
    assert!((1..=Ends::MOST as u32).all(|at| switch.ends.name(known(at)).is_ok()));
    let new = u32::MAX;
    let code = |change: &FlowMod| switch.flow_mod(change).map_err(|fault| fault.code);
    for change in [sending_to(new), from(new)] {
        assert_eq!(code(&change), Err(ErrorCode::FlowModFailedTableFull));
    }
    let bucket = Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: vec![to(new)],
    };
    let (command, kind) = (GroupModCommand::Add, GroupType::All);
    let group = GroupMod { command, kind, id: GroupId(1), buckets: vec![bucket] };
    let refused = switch.group_mod(&group).unwrap_err();
    assert_eq!(refused.code, ErrorCode::GroupModFailedOutOfBuckets);
    let out = |end| PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        actions: vec![to(end)],
        data: vec![0; 60],
    };
    let refused = switch.packet_out(out(new)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadActionTooMany);
    assert_eq!((code(&sending_to(7)), code(&from(7))), (Ok(()), Ok(())));
    switch.packet_out(out(7)).unwrap();
    assert_eq!(plane.sent.lock().unwrap().len(), 1);
}
