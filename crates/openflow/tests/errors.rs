//! Every error that decoding and checking can answer with, each from the smallest message that provokes it.

use openflow::{
    Action, ErrorCode, ErrorKind, ErrorMsg, FlowMod, FlowModCommand, FlowModFlags, GroupId,
    GroupMod, GroupModCommand, GroupType, Instruction, Match, Message, MeterBand, MeterFlags,
    MeterId, MeterMod, MeterModCommand, Oxm, OxmField, PacketOut, PortNo, TableId, Version,
};

/// A message of 1.3 with this type and these bytes after the header, written as hexadecimal with spaces.
fn message(kind: u8, body: &str) -> Vec<u8> {
    let digits: String = body.split_whitespace().collect();
    let body = (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal"));
    let mut bytes = vec![4, kind, 0, 0, 0, 0, 0, 1];
    bytes.extend(body);
    bytes[3] = bytes.len() as u8;
    bytes
}

fn code(kind: u8, body: &str) -> Option<ErrorCode> {
    Message::decode(&message(kind, body)).err().map(|fault| fault.code)
}

/// A flow-mod up to its match: command `command`.
fn flow_mod_head(command: u8) -> String {
    format!("{:032x} 00 {command:02x} 0000 0000 8000 ffffffff ffffffff ffffffff 0000 0000", 0)
}

fn with_match(rest: &str) -> Option<ErrorCode> {
    code(14, &(flow_mod_head(0) + rest))
}

fn with_instructions(rest: &str) -> Option<ErrorCode> {
    with_match(&format!("0001 0004 00000000 {rest}"))
}

#[test]
fn the_envelope() {
    use ErrorCode::{
        BadRequestBadLen, BadRequestBadMultipart, BadRequestBadType, BadRequestBadVersion,
    };
    assert_eq!(code(30, ""), Some(BadRequestBadType));
    assert_eq!(code(255, ""), Some(BadRequestBadType));
    assert_eq!(code(5, "00"), Some(BadRequestBadLen), "a features request has no body");
    assert_eq!(code(4, "00002320"), Some(BadRequestBadLen), "an experimenter without its type");
    assert_eq!(code(18, "0063 0000 00000000"), Some(BadRequestBadMultipart));
    assert_eq!(code(18, "0001 0000 00000000 ff"), Some(BadRequestBadLen));
    let mut old = message(5, "");
    old[0] = 2;
    assert_eq!(Message::decode(&old).unwrap_err().code, BadRequestBadVersion);
    let mut short = message(2, "0000");
    short[3] = 9;
    assert_eq!(Message::decode(&short).unwrap_err().code, BadRequestBadLen);
    assert_eq!(Message::decode(&[4, 0, 0]).unwrap_err().code, BadRequestBadLen);
}

#[test]
fn matches() {
    use ErrorCode::{BadMatchBadLen, BadMatchBadType, BadRequestBadLen};
    assert_eq!(
        with_match("0000 0004 00000000"),
        Some(BadMatchBadType),
        "OpenFlow 1.1's standard match"
    );
    assert_eq!(with_match("0001 0003 00000000"), Some(BadMatchBadLen));
    assert_eq!(with_match("0001 0040 00000000"), Some(BadMatchBadLen));
    assert_eq!(
        with_match("0001 0009 80000001 00 00000000000000"),
        Some(BadMatchBadLen),
        "in_port of one byte"
    );
    assert_eq!(
        with_match("0001 0009 80000a02 08 00000000000000"),
        Some(BadMatchBadLen),
        "a TLV past the match's end"
    );
    assert_eq!(with_match("0001 0006 8000 0000"), Some(BadMatchBadLen), "half a TLV header");
    assert_eq!(
        with_match("0001 000a 80000a02 0800 0000"),
        Some(BadRequestBadLen),
        "padding is missing"
    );
    assert_eq!(with_match("0001 000a 80000a02 0800 000000000000"), None);
}

#[test]
fn instructions() {
    use ErrorCode::{BadInstructionBadLen, BadInstructionUnknownInst};
    assert_eq!(with_instructions("0007 0008 00000000"), Some(BadInstructionUnknownInst));
    assert_eq!(with_instructions("0000 0008 00000000"), Some(BadInstructionUnknownInst));
    assert_eq!(with_instructions("0001 0007 00000000"), Some(BadInstructionBadLen));
    assert_eq!(with_instructions("0001 0000 00000000"), Some(BadInstructionBadLen));
    assert_eq!(with_instructions("0001 0010 05000000"), Some(BadInstructionBadLen));
    assert_eq!(
        with_instructions("0001 0010 05000000 0000000000000000"),
        Some(BadInstructionBadLen),
        "goto of 16 bytes"
    );
    assert_eq!(
        with_instructions("0002 0008 00000000"),
        Some(BadInstructionBadLen),
        "metadata of 8 bytes"
    );
    assert_eq!(with_instructions("0001"), Some(BadInstructionBadLen));
    assert_eq!(with_instructions("ffff 0008 00002320"), None, "an experimenter's is kept");
}

fn with_action(action: &str) -> Option<ErrorCode> {
    let len = 8 + action.split_whitespace().collect::<String>().len() / 2;
    with_instructions(&format!("0004 {len:04x} 00000000 {action}"))
}

#[test]
fn actions() {
    use ErrorCode::{
        BadActionBadLen, BadActionBadSetArgument, BadActionBadSetLen, BadActionBadType,
    };
    assert_eq!(with_action("001c 0008 00000000"), Some(BadActionBadType));
    assert_eq!(
        with_action("0001 0008 00000000"),
        Some(BadActionBadType),
        "OpenFlow 1.0's set_vlan_vid"
    );
    assert_eq!(with_action("0000 0008 00000001"), Some(BadActionBadLen), "output of 8 bytes");
    assert_eq!(
        with_action("0018 0010 00000000 0000000000000000"),
        Some(BadActionBadLen),
        "dec_nw_ttl of 16 bytes"
    );
    assert_eq!(with_action("0018 0000 00000000"), Some(BadActionBadLen));
    assert_eq!(
        with_action("0018 000c 00000000 00000000 00000000"),
        Some(BadActionBadLen),
        "no multiple of 8"
    );
    assert_eq!(with_action("0018 0018 00000000"), Some(BadActionBadLen), "past the end");
    assert_eq!(with_action("0019 0010 80000a04 08000000 00000000"), Some(BadActionBadSetLen));
    assert_eq!(
        with_action("0019 0010 80000b04 0800ff00 00000000"),
        Some(BadActionBadSetArgument),
        "a mask"
    );
    assert_eq!(
        with_action("0019 0018 8000070c 000000000001 ffffffffffff 00000000"),
        None,
        "a full mask is none"
    );
    assert_eq!(
        with_action("0019 0018 8000070c 000000000001 0000000000ff 00000000"),
        Some(BadActionBadSetArgument)
    );
    assert_eq!(
        with_action("ffff 0010 00000001 0000000000000000"),
        None,
        "an experimenter's is kept"
    );
}

#[test]
fn a_message_that_is_too_short_is_not_blamed_for_its_contents() {
    let message = |version: u8, kind: u8, len: usize| {
        let mut bytes = vec![version, kind, 0, 8 + len as u8, 0, 0, 0, 1];
        bytes.resize(8 + len, b'x');
        Message::decode(&bytes).unwrap_err().code
    };
    // 1.3: flow-mod, group-mod, port-mod, table-mod, multipart, role, meter-mod.
    for (kind, least) in [(14, 48), (15, 8), (16, 32), (17, 8), (18, 8), (24, 16), (29, 8)] {
        for len in [0, 2, 4, least - 1] {
            assert_eq!(message(4, kind, len), ErrorCode::BadRequestBadLen, "type {kind}, {len}");
        }
    }
    // 1.0: flow-mod, port-mod, statistics, queue configuration.
    for (kind, least) in [(14, 64), (15, 24), (16, 4), (20, 4)] {
        for len in [0, 2, least - 1] {
            assert_eq!(message(1, kind, len), ErrorCode::BadRequestBadLen, "type {kind}, {len}");
        }
    }
    assert_eq!(message(4, 9, 3), ErrorCode::SwitchConfigFailedBadLen);
}

#[test]
fn commands_and_types() {
    assert_eq!(
        code(14, &(flow_mod_head(5) + "0001 0004 00000000")),
        Some(ErrorCode::FlowModFailedBadCommand)
    );
    assert_eq!(code(15, "0003 00 00 00000001"), Some(ErrorCode::GroupModFailedBadCommand));
    assert_eq!(code(15, "0000 04 00 00000001"), Some(ErrorCode::GroupModFailedBadType));
    assert_eq!(
        code(15, "0000 00 00 00000001 0008 0000 00000000"),
        Some(ErrorCode::GroupModFailedBadBucket)
    );
    assert_eq!(code(29, "0003 0001 00000001"), Some(ErrorCode::MeterModFailedBadCommand));
    assert_eq!(
        code(29, "0000 0001 00000001 0003 0010 00000000 00000000 00000000"),
        Some(ErrorCode::MeterModFailedBadBand)
    );
    assert_eq!(
        code(29, "0000 0001 00000001 0001 000c 00000000 00000000"),
        Some(ErrorCode::BadRequestBadLen)
    );
    assert_eq!(
        code(24, "00000004 00000000 0000000000000000"),
        Some(ErrorCode::RoleRequestFailedBadRole)
    );
    assert_eq!(code(9, "0003 0080"), Some(ErrorCode::SwitchConfigFailedBadFlags));
    assert_eq!(code(9, "0000"), Some(ErrorCode::SwitchConfigFailedBadLen));
    assert_eq!(code(9, "0000 0080 00"), Some(ErrorCode::SwitchConfigFailedBadLen));
}

#[test]
fn table_features() {
    let with = |property: &str| {
        let len = 64 + property.split_whitespace().collect::<String>().len() / 2;
        code(
            18,
            &format!(
                "000c 0000 00000000 {len:04x} 00 0000000000 {:096x} 00000000 00000000 {property}",
                0
            ),
        )
    };
    assert_eq!(with("0000 0004 00000000"), None);
    assert_eq!(
        with("0009 0004 00000000"),
        Some(ErrorCode::TableFeaturesFailedBadType),
        "match has no miss variant"
    );
    assert_eq!(with("0010 0004 00000000"), Some(ErrorCode::TableFeaturesFailedBadType));
    assert_eq!(with("0000 0003 00000000"), Some(ErrorCode::TableFeaturesFailedBadLen));
    assert_eq!(with("0000 000c 00000000"), Some(ErrorCode::TableFeaturesFailedBadLen));
    assert_eq!(
        with("0008 0006 0000 0000"),
        Some(ErrorCode::TableFeaturesFailedBadLen),
        "half an OXM id"
    );
    assert_eq!(
        with("0000 0008 0001 0003"),
        Some(ErrorCode::TableFeaturesFailedBadLen),
        "an id below its header"
    );
    assert_eq!(
        code(18, "000c 0000 00000000 0008 00 0000000000"),
        Some(ErrorCode::TableFeaturesFailedBadLen)
    );
}

fn flow(fields: Match, instructions: Vec<Instruction>) -> Option<ErrorCode> {
    FlowMod { fields, instructions, ..FlowMod::default() }.check().err().map(|fault| fault.code)
}

fn apply(fields: Match, action: Action) -> Option<ErrorCode> {
    flow(fields, vec![Instruction::ApplyActions(vec![action])])
}

#[test]
fn checks_of_flows() {
    let check = |change: fn(&mut FlowMod)| {
        let mut flow = FlowMod::default();
        change(&mut flow);
        flow.check().err().map(|fault| fault.code)
    };
    assert_eq!(
        check(|f| f.flags = FlowModFlags::from_bits_retain(32)),
        Some(ErrorCode::FlowModFailedBadFlags)
    );
    assert_eq!(check(|f| f.table = TableId::ALL), Some(ErrorCode::FlowModFailedBadTableId));
    assert_eq!(check(|f| (f.table, f.command) = (TableId::ALL, FlowModCommand::Delete)), None);
    let goto = Instruction::GotoTable(TableId(0));
    assert_eq!(flow(Match::default(), vec![goto]), Some(ErrorCode::BadInstructionBadTableId));
    let next = Instruction::GotoTable(TableId(1));
    assert_eq!(flow(Match::default(), vec![next.clone()]), None);
    assert_eq!(
        flow(Match::default(), vec![next.clone(), next]),
        Some(ErrorCode::BadInstructionUnsupInst)
    );
    let meter = Instruction::Meter(MeterId(0));
    assert_eq!(flow(Match::default(), vec![meter]), Some(ErrorCode::MeterModFailedInvalidMeter));
    let unknown = Instruction::Experimenter { experimenter: 1, body: vec![] };
    assert_eq!(
        flow(Match::default(), vec![unknown]),
        Some(ErrorCode::BadInstructionBadExperimenter)
    );
    let prerequisite = Match::default().with(OxmField::TcpDst, 80);
    assert_eq!(flow(prerequisite, vec![]), Some(ErrorCode::BadMatchBadPrereq));
}

#[test]
fn checks_of_actions() {
    let any = Match::default;
    let output = |port| Action::Output { port, max_len: 0 };
    assert_eq!(apply(any(), output(PortNo(0))), Some(ErrorCode::BadActionBadOutPort));
    assert_eq!(apply(any(), output(PortNo::ANY)), Some(ErrorCode::BadActionBadOutPort));
    assert_eq!(apply(any(), output(PortNo::TABLE)), Some(ErrorCode::BadActionBadOutPort));
    assert_eq!(apply(any(), output(PortNo::NORMAL)), None);
    assert_eq!(apply(any(), Action::Group(GroupId::ANY)), Some(ErrorCode::BadActionBadOutGroup));
    assert_eq!(apply(any(), Action::PushVlan(0x0800)), Some(ErrorCode::BadActionBadArgument));
    assert_eq!(apply(any(), Action::PushMpls(0x8100)), Some(ErrorCode::BadActionBadArgument));
    assert_eq!(apply(any(), Action::PushPbb(0x8100)), Some(ErrorCode::BadActionBadArgument));
    let unknown = Action::Experimenter { experimenter: 1, body: vec![] };
    assert_eq!(apply(any(), unknown), Some(ErrorCode::BadActionBadExperimenter));
    let set = |field, value| Action::SetField(Oxm::exact(field, value));
    assert_eq!(apply(any(), set(OxmField::InPort, 1)), Some(ErrorCode::BadActionBadSetType));
    assert_eq!(apply(any(), set(OxmField::VlanVid, 5)), Some(ErrorCode::BadActionBadSetArgument));
    assert_eq!(apply(any(), set(OxmField::VlanPcp, 9)), Some(ErrorCode::BadActionBadSetArgument));
    assert_eq!(
        apply(any(), set(OxmField::Ipv4Dst, 9)),
        Some(ErrorCode::BadActionMatchInconsistent)
    );
    assert_eq!(apply(any().with(OxmField::EthType, 0x0800), set(OxmField::Ipv4Dst, 9)), None);
}

#[test]
fn a_pushed_header_grants_what_the_match_does_not() {
    let label = Action::SetField(Oxm::exact(OxmField::MplsLabel, 5));
    let priority = Action::SetField(Oxm::exact(OxmField::VlanPcp, 5));
    let actions = vec![Action::PushMpls(0x8847), label.clone(), Action::PushVlan(0x8100), priority];
    assert_eq!(flow(Match::default(), vec![Instruction::ApplyActions(actions)]), None);
    assert_eq!(apply(Match::default(), label), Some(ErrorCode::BadActionMatchInconsistent));
}

#[test]
fn checks_of_groups_meters_and_packets() {
    let group = |command, kind, id| {
        GroupMod { command, kind, id, buckets: vec![] }.check().err().map(|f| f.code)
    };
    use GroupModCommand::{Add, Delete};
    assert_eq!(
        group(Add, GroupType::All, GroupId::ALL),
        Some(ErrorCode::GroupModFailedInvalidGroup)
    );
    assert_eq!(
        group(Add, GroupType::Indirect, GroupId(1)),
        Some(ErrorCode::GroupModFailedInvalidGroup)
    );
    assert_eq!(group(Delete, GroupType::All, GroupId::ALL), None);
    let meter = |id, flags, rate| {
        let bands = vec![MeterBand { kind: openflow::BandKind::Drop, rate, burst_size: 0 }];
        let meter = MeterMod { command: MeterModCommand::Add, flags, id: MeterId(id), bands };
        meter.check().err().map(|fault| fault.code)
    };
    assert_eq!(meter(0, MeterFlags::KBPS, 1), Some(ErrorCode::MeterModFailedInvalidMeter));
    assert_eq!(meter(u32::MAX, MeterFlags::KBPS, 1), Some(ErrorCode::MeterModFailedInvalidMeter));
    assert_eq!(
        meter(1, MeterFlags::KBPS | MeterFlags::PKTPS, 1),
        Some(ErrorCode::MeterModFailedBadFlags)
    );
    assert_eq!(meter(1, MeterFlags::KBPS, 0), Some(ErrorCode::MeterModFailedBadRate));
    assert_eq!(meter(1, MeterFlags::KBPS, 1), None);
    let packet = |in_port, port| {
        let actions = vec![Action::Output { port, max_len: 0 }];
        PacketOut { buffer_id: None, in_port, actions, data: vec![] }
            .check()
            .err()
            .map(|fault| fault.code)
    };
    assert_eq!(packet(PortNo(0), PortNo(1)), Some(ErrorCode::BadRequestBadPort));
    assert_eq!(packet(PortNo::CONTROLLER, PortNo::TABLE), None);
    assert_eq!(packet(PortNo(1), PortNo::ANY), Some(ErrorCode::BadActionBadOutPort));
}

#[test]
fn an_answer_repeats_at_most_64_bytes_of_the_request() {
    let request = message(30, &"00".repeat(100));
    let answer = ErrorMsg::answer(ErrorCode::BadRequestBadType, &request);
    assert_eq!(answer.data, request[..64]);
    let bytes = Message::Error(answer).encode(Version::V1_3, 1).unwrap();
    assert_eq!(bytes[..12], [4, 1, 0, 76, 0, 0, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn unknown_error_numbers_and_experimenters_are_kept() {
    let decoded = |body: &str| match Message::decode(&message(1, body)) {
        Ok((_, Message::Error(error))) => error.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(decoded("0004 0008"), ErrorKind::Known(ErrorCode::BadMatchBadMask));
    assert_eq!(decoded("0063 0001"), ErrorKind::Unknown { kind: 0x63, code: 1 });
    assert_eq!(
        decoded("ffff 0001 00002320"),
        ErrorKind::Experimenter { experimenter: 0x2320, exp_type: 1 }
    );
}
