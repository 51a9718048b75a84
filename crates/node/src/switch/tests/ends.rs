//! Rules that name the ends of tunnels.

use super::*;
use openflow::Oxm;

/// Sends to this IPv4 end.
fn to(end: u32) -> Action {
    Action::SetField(Oxm::exact(OxmField::TunIpv4Dst, end.into()))
}

/// Ends that one switch may name.
const HALF: u32 = Ends::MOST as u32 / 2;

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
    assert_eq!(switch.ends.held(), 0);
    switch.flow_mod(&from(7)).unwrap();
    assert_eq!((switch.ends.held(), switch.aggregate(&asked).unwrap().flow_count), (1, 1));
}

#[test]
fn an_end_more_than_a_switch_may_name_is_refused_wherever_it_stands_and_old_ones_go_on() {
    let (switch, plane) = switch();
    for at in 1..=HALF {
        switch.flow_mod(&from(at)).unwrap();
    }
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

#[test]
fn ends_come_back_with_the_last_rule_or_group_that_names_them() {
    let (switch, _) = switch();
    let group = |command, end| {
        let (watch_port, watch_group) = (PortNo::ANY, GroupId::ANY);
        let bucket = Bucket { weight: 0, watch_port, watch_group, actions: vec![to(end)] };
        GroupMod { command, kind: GroupType::All, id: GroupId(1), buckets: vec![bucket] }
    };
    switch.group_mod(&group(GroupModCommand::Add, 1)).unwrap();
    switch.flow_mod(&sending_to(2)).unwrap();
    for at in 3..=HALF {
        switch.flow_mod(&from(at)).unwrap();
    }
    let command = FlowModCommand::DeleteStrict;
    let gone = |end| FlowMod { command, ..from(end) };
    assert!(switch.flow_mod(&from(0x0b00_0000)).is_err());
    for at in 3..=9 {
        switch.flow_mod(&gone(at)).unwrap();
    }
    assert!((0x0b00_0000..0x0b00_0007).all(|at| switch.flow_mod(&from(at)).is_ok()), "seven went");
    assert!(switch.flow_mod(&from(0x0c00_0000)).is_err());
    let known = |at: u32| switch.ends.number(std::net::Ipv4Addr::from_bits(at).into());
    assert!(known(1).is_some() && known(2).is_some(), "a group and an action name them still");
    // A group or a frame that names a new one makes room, too.
    switch.flow_mod(&gone(10)).unwrap();
    switch.group_mod(&group(GroupModCommand::Modify, 0x0c00_0000)).unwrap();
    let data = vec![0; 60];
    let (in_port, actions) = (PortNo::CONTROLLER, vec![to(0x0d00_0000)]);
    switch.packet_out(PacketOut { buffer_id: None, in_port, actions, data }).unwrap();
}

#[test]
fn a_switch_that_goes_gives_its_ends_back_and_one_that_is_restored_holds_them() {
    let ends = Arc::new(Ends::default());
    let a_switch = || switch_of(Arc::new(Discard), FailMode::Standalone, ends.clone()).0;
    let first = a_switch();
    [from(7), sending_to(8)].iter().for_each(|change| first.flow_mod(change).unwrap());
    let (kept, second) = (first.kept(), a_switch());
    drop(first);
    assert_eq!(ends.held(), 0);
    assert_eq!(second.restore(kept), []);
    assert_eq!(ends.held(), 2);
}
