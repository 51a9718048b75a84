//! OpenFlow 1.0 byte by byte: messages written by hand from the specification's structures (1.0.0 §5), each in both directions.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use openflow::*;

/// The bytes that are written as hexadecimal with spaces, the length of the message filled in.
fn wire(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let mut bytes: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal"))
        .collect();
    let len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    bytes
}

/// These bytes are this message, and this message is these bytes.
fn same(text: &str, message: Message) {
    let bytes = wire(text);
    assert_eq!(Message::decode(&bytes).map(|(_, found)| found).as_ref(), Ok(&message));
    assert_eq!(message.encode(Version::V1_0, 0x1234).unwrap(), bytes, "{message:?}");
}

fn code(text: &str) -> ErrorCode {
    Message::decode(&wire(text)).unwrap_err().code
}

/// `OFPFW_ALL` as suiro writes it: 32 ignored bits for each address.
const NOTHING: &str = "003820ff 0000 000000000000 000000000000 0000 00 00 0000 00 00 0000 00000000 00000000 0000 0000";

/// §5.2.3: wildcards, in_port, dl_src, dl_dst, dl_vlan, dl_vlan_pcp, pad, dl_type, nw_tos, nw_proto, pad[2], nw_src, nw_dst,
/// tp_src, tp_dst. No wildcard: an exact match.
const EXACT: &str = "00000000 0003 020000000001 020000000002 0064 05 00 0800 b8 06 0000 0a000001 0a000002 1000 0050";

fn exact() -> Match {
    Match::default()
        .with(OxmField::InPort, 3)
        .with(OxmField::EthDst, 0x0200_0000_0002)
        .with(OxmField::EthSrc, 0x0200_0000_0001)
        .with(OxmField::EthType, 0x0800)
        .with(OxmField::VlanVid, 0x1064)
        .with(OxmField::VlanPcp, 5)
        .with(OxmField::IpDscp, 46)
        .with(OxmField::IpProto, 6)
        .with(OxmField::Ipv4Src, 0x0a00_0001)
        .with(OxmField::Ipv4Dst, 0x0a00_0002)
        .with(OxmField::TcpSrc, 0x1000)
        .with(OxmField::TcpDst, 80)
}

/// A flow statistics request (§5.3.5), which is little more than a match, for this one.
fn matched(text: &str) -> Match {
    let request = wire(&format!("01 10 0000 00001234 0001 0000 {text} ff 00 ffff"));
    match Message::decode(&request).unwrap().1 {
        Message::MultipartRequest(Part { body: MultipartRequest::Flow(request), .. }) => {
            request.fields
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_of_a_header_alone() {
    same("01 02 0000 00001234 abcd", Message::EchoRequest(vec![0xab, 0xcd]));
    same("01 03 0000 00001234", Message::EchoReply(vec![]));
    same("01 05 0000 00001234", Message::FeaturesRequest);
    same("01 07 0000 00001234", Message::GetConfigRequest);
    same("01 12 0000 00001234", Message::BarrierRequest);
    same("01 13 0000 00001234", Message::BarrierReply);
    same("01 00 0000 00001234", Message::Hello(Hello { versions: None }));
}

#[test]
fn a_hello_of_1_0_may_have_a_body_that_is_ignored() {
    let (header, message) = Message::decode(&wire("01 00 0000 00001234 0001")).unwrap();
    assert_eq!((header.version, message), (1, Message::Hello(Hello { versions: None })));
}

#[test]
fn configuration_and_vendor() {
    let config = SwitchConfig { fragments: FragmentMode::Drop, miss_send_len: 0x80 };
    same("01 09 0000 00001234 0001 0080", Message::SetConfig(config));
    same("01 08 0000 00001234 0001 0080", Message::GetConfigReply(config));
    let vendor = Experimenter { experimenter: 0x2320, exp_type: 10, body: vec![1] };
    same("01 04 0000 00001234 00002320 0000000a 01", Message::Experimenter(vendor));
    assert_eq!(code("01 04 0000 00001234 00002320"), ErrorCode::BadRequestBadExperimenter);
}

#[test]
fn features_list_ports_of_48_bytes() {
    // §5.3.1: datapath_id, n_buffers, n_tables, pad[3], capabilities, actions, then §5.2.1's ports: port_no, hw_addr, name[16],
    // config, state, curr, advertised, supported, peer.
    same(
        "01 06 0000 00001234 0000000000001234 00000400 fe 000000 00000087 00000fff
         fffe 020000000001 73773000000000000000000000000000 00000001 00000001 00000000 00000000 00000000 00000000
         0003 020000000002 65746831000000000000000000000000 00000010 00000300 000000a0 00000c00 00000240 00000080",
        Message::FeaturesReply(Features {
            datapath_id: 0x1234,
            buffers: 1024,
            tables: 254,
            auxiliary_id: 0,
            capabilities: Capabilities::FLOW_STATS
                | Capabilities::TABLE_STATS
                | Capabilities::PORT_STATS
                | Capabilities::ARP_MATCH_IP,
            actions: 0xfff,
            ports: vec![
                PortDesc {
                    number: PortNo::LOCAL,
                    hw_addr: Mac([2, 0, 0, 0, 0, 1]),
                    name: "sw0".into(),
                    config: PortConfig::PORT_DOWN,
                    state: PortState::LINK_DOWN,
                    ..PortDesc::default()
                },
                PortDesc {
                    number: PortNo(3),
                    hw_addr: Mac([2, 0, 0, 0, 0, 2]),
                    name: "eth1".into(),
                    config: PortConfig::NO_FLOOD,
                    state: PortState::BLOCKED,
                    current: PortFeatures::FD_1GB | PortFeatures::COPPER,
                    advertised: PortFeatures::PAUSE | PortFeatures::PAUSE_ASYM,
                    supported: PortFeatures::FD_10GB | PortFeatures::AUTONEG,
                    peer: PortFeatures::COPPER,
                    ..PortDesc::default()
                },
            ],
        }),
    );
}

#[test]
fn ports_above_0xff00_and_later_capabilities_are_not_told() {
    let port = |number| PortDesc { number: PortNo(number), ..PortDesc::default() };
    let features = Features {
        capabilities: Capabilities::GROUP_STATS | Capabilities::PORT_BLOCKED,
        ports: vec![port(1), port(0xff00), port(70_000)],
        ..Features::default()
    };
    let bytes = Message::FeaturesReply(features).encode(Version::V1_0, 1).unwrap();
    assert_eq!(bytes.len(), 32 + 48);
    assert_eq!(bytes[24..28], [0; 4]);
}

#[test]
fn a_flow_mod_without_wildcards_has_the_highest_priority() {
    // §5.3.3: match, cookie, command, idle_timeout, hard_timeout, priority, buffer_id, out_port, flags, actions.
    let flow = |priority| {
        format!(
            "01 0e 0000 00001234 {EXACT} 00000000000000aa 0000 000a 0014 {priority} ffffffff ffff 0003
             0000 0008 0002 0000"
        )
    };
    let message = Message::FlowMod(FlowMod {
        cookie: 0xaa,
        idle_timeout_s: 10,
        hard_timeout_s: 20,
        priority: 0xffff,
        flags: FlowModFlags::SEND_FLOW_REM | FlowModFlags::CHECK_OVERLAP,
        fields: exact(),
        instructions: vec![Instruction::ApplyActions(vec![Action::Output {
            port: PortNo(2),
            max_len: 0,
        }])],
        version: Version::V1_0,
        ..FlowMod::default()
    });
    same(&flow("ffff"), message.clone());
    let (_, said) = Message::decode(&wire(&flow("0001"))).unwrap();
    same(&flow("0001"), said.clone());
    let (Message::FlowMod(highest), Message::FlowMod(said)) = (message, said) else { panic!() };
    assert_eq!(FlowMod { wording: Wording::default(), ..said }, highest, "whatever it says");
}

#[test]
fn adds_are_for_table_0_and_deletions_for_every_table() {
    for (command, table) in [(0, 0), (1, 0), (2, 0), (3, 0xff), (4, 0xff)] {
        let text = format!(
            "01 0e 0000 00001234 {NOTHING} 0000000000000000 000{command} 0000 0000 8000 ffffffff fffd 0000"
        );
        let Message::FlowMod(flow) = Message::decode(&wire(&text)).unwrap().1 else { panic!() };
        assert_eq!((flow.table, flow.out_port), (TableId(table), PortNo::CONTROLLER));
        assert_eq!(flow.command.wire(), command);
        same(&text, Message::FlowMod(flow));
    }
}

#[test]
fn flow_mods_that_cannot_be_are_refused_by_their_code() {
    let flow = |command: &str, timeout: &str, flags: &str, actions: &str| {
        code(&format!(
            "01 0e 0000 00001234 {NOTHING} 0000000000000000 {command} {timeout} 0000 8000 ffffffff ffff {flags} {actions}"
        ))
    };
    assert_eq!(flow("0005", "0000", "0000", ""), ErrorCode::FlowModFailedBadCommand);
    assert_eq!(flow("0100", "0000", "0000", ""), ErrorCode::FlowModFailedBadCommand);
    assert_eq!(flow("0000", "0001", "0004", ""), ErrorCode::FlowModFailedBadTimeout);
    assert_eq!(flow("0000", "0000", "0004", ""), ErrorCode::FlowModFailedTableFull);
    assert_eq!(flow("0000", "0000", "0008", ""), ErrorCode::FlowModFailedBadFlags);
    assert_eq!(flow("0000", "0000", "0000", "000c 0008 00000000"), ErrorCode::BadActionBadType);
    assert_eq!(flow("0000", "0000", "0000", "0000 0004"), ErrorCode::BadActionBadLen);
    assert_eq!(flow("0000", "0000", "0000", "0000 0010 0001 0000"), ErrorCode::BadActionBadLen);
    assert_eq!(flow("0000", "0000", "0000", "0004 0008 02000000"), ErrorCode::BadActionBadLen);
    assert_eq!(
        flow("0000", "0000", "0000", "0001 0008 1000 0000"),
        ErrorCode::BadActionBadArgument
    );
    assert_eq!(
        flow("0000", "0000", "0000", "0002 0008 08 000000"),
        ErrorCode::BadActionBadArgument
    );
    assert_eq!(
        flow("0000", "0000", "0000", "0008 0008 01 000000"),
        ErrorCode::BadActionBadArgument
    );
    let enqueue = "000b 0010 fffc 000000000000 00000001";
    assert_eq!(flow("0000", "0000", "0000", enqueue), ErrorCode::BadActionBadOutPort);
}

#[test]
fn every_action_has_its_bytes() {
    let set = |field, value| Action::SetField(Oxm::exact(field, value));
    // §5.2.4 in order of their types, then a vendor's.
    same(
        "01 0d 0000 00001234 ffffffff ffff 0080
         0000 0008 fffd 0040
         0001 0008 0064 0000
         0002 0008 05 000000
         0003 0008 00000000
         0004 0010 020000000001 000000000000
         0005 0010 020000000002 000000000000
         0006 0008 0a000001
         0007 0008 0a000002
         0008 0008 b8 000000
         0009 0008 1000 0000
         000a 0008 0050 0000
         000b 0010 0003 000000000000 00000007
         ffff 0008 00002320",
        Message::PacketOut(PacketOut {
            buffer_id: None,
            in_port: PortNo::CONTROLLER,
            actions: vec![
                Action::Output { port: PortNo::CONTROLLER, max_len: 0x40 },
                Action::EnsureVlan,
                set(OxmField::VlanVid, 0x1064),
                Action::EnsureVlan,
                set(OxmField::VlanPcp, 5),
                Action::PopVlan,
                set(OxmField::EthSrc, 0x0200_0000_0001),
                set(OxmField::EthDst, 0x0200_0000_0002),
                set(OxmField::Ipv4Src, 0x0a00_0001),
                set(OxmField::Ipv4Dst, 0x0a00_0002),
                set(OxmField::IpDscp, 46),
                set(OxmField::TcpSrc, 0x1000),
                set(OxmField::UdpSrc, 0x1000),
                set(OxmField::TcpDst, 80),
                set(OxmField::UdpDst, 80),
                Action::SetQueue(7),
                Action::Output { port: PortNo(3), max_len: 0 },
                Action::SetQueue(0),
                Action::Experimenter { experimenter: 0x2320, body: vec![] },
            ],
            data: vec![],
        }),
    );
}

#[test]
fn an_output_under_a_queue_is_told_as_an_enqueue_and_what_1_0_lacks_is_left_out() {
    let set = |field, value| Action::SetField(Oxm::exact(field, value));
    let actions = vec![
        Action::SetQueue(7),
        Action::output(PortNo(3)),
        Action::output(PortNo(70_000)),
        Action::PushVlan(0x8100),
        set(OxmField::VlanVid, 0x1005),
        Action::PushMpls(0x8847),
        Action::DecNwTtl,
        set(OxmField::UdpDst, 53),
        set(OxmField::TcpDst, 80),
        set(OxmField::UdpDst, 81),
        set(OxmField::Ipv6Dst, 1),
        Action::Group(GroupId(1)),
        Action::output(PortNo(4)),
    ];
    let out = PacketOut { buffer_id: None, in_port: PortNo(1), actions, data: vec![] };
    assert_eq!(
        Message::PacketOut(out).encode(Version::V1_0, 0x1234).unwrap(),
        wire(
            "01 0d 0000 00001234 ffffffff 0001 0040
             000b 0010 0003 000000000000 00000007
             0001 0008 0005 0000
             000a 0008 0035 0000
             000a 0008 0050 0000
             000a 0008 0051 0000
             000b 0010 0004 000000000000 00000007"
        )
    );
}

#[test]
fn fields_have_the_meaning_of_their_protocol() {
    assert_eq!(matched(NOTHING), Match::default());
    assert_eq!(matched(EXACT), exact());
    let ip = Match::default().with(OxmField::EthType, 0x0800);
    let arp = Match::default().with(OxmField::EthType, 0x0806);
    // ARP: opcode in nw_proto, addresses with 8 and 32 ignored bits.
    assert_eq!(
        matched(
            "003808cf 0000 000000000000 000000000000 0000 00 00 0806 00 02 0000 0a0000ff 00000000 0000 0000"
        ),
        arp.with(OxmField::ArpOp, 2).with_masked(OxmField::ArpSpa, 0x0a00_0000, 0xffff_ff00)
    );
    // ICMP: type and code in the ports.
    assert_eq!(
        matched(
            "0038200f 0000 000000000000 000000000000 0000 00 00 0800 00 01 0000 00000000 00000000 0008 0000"
        ),
        ip.clone()
            .with(OxmField::IpProto, 1)
            .with(OxmField::Icmpv4Type, 8)
            .with(OxmField::Icmpv4Code, 0)
    );
    // Ports without a protocol, a protocol without a type: ignored.
    assert_eq!(
        matched(
            "0038202f 0000 000000000000 000000000000 0000 00 00 0800 00 06 0000 00000000 00000000 0016 0016"
        ),
        ip
    );
    assert_eq!(
        matched(
            "0038201f 0000 000000000000 000000000000 0000 00 00 0800 00 06 0000 00000000 00000000 0016 0016"
        ),
        Match::default()
    );
    // More than 32 ignored bits ignore the address.
    assert_eq!(
        matched(
            "003fffef 0000 000000000000 000000000000 0000 00 00 0800 00 00 0000 0a000001 0a000001 0000 0000"
        ),
        Match::default().with(OxmField::EthType, 0x0800)
    );
}

#[test]
fn vlans_are_told_apart_by_id_priority_and_their_absence() {
    let vlan = |wildcards: &str, id: &str, pcp: &str| {
        matched(&format!(
            "{wildcards} 0000 000000000000 000000000000 {id} {pcp} 00 0000 00 00 0000 00000000 00000000 0000 0000"
        ))
    };
    let none = Match::default().with(OxmField::VlanVid, 0);
    assert_eq!(vlan("003820fd", "ffff", "00"), none);
    assert_eq!(vlan("002820fd", "ffff", "03"), none, "what is not there has no priority");
    assert_eq!(vlan("003820fd", "0000", "00"), Match::default().with(OxmField::VlanVid, 0x1000));
    assert_eq!(
        vlan("002820ff", "0000", "03"),
        Match::default().with_masked(OxmField::VlanVid, 0x1000, 0x1000).with(OxmField::VlanPcp, 3)
    );
}

#[test]
fn events_have_their_bytes() {
    // §5.4.1: buffer_id, total_len, in_port, reason, pad.
    same(
        "01 0a 0000 00001234 00000007 0040 0003 00 00 aabb",
        Message::PacketIn(PacketIn {
            buffer_id: Some(7),
            total_len: 64,
            reason: PacketInReason::NoMatch,
            table: TableId(0),
            cookie: u64::MAX,
            fields: Match::default().with(OxmField::InPort, 3),
            data: vec![0xaa, 0xbb],
        }),
    );
    // §5.4.2: match, cookie, priority, reason, pad, duration_sec, duration_nsec, idle_timeout, pad[2], packets, bytes.
    same(
        &format!(
            "01 0b 0000 00001234 {EXACT} 00000000000000aa ffff 01 00 00000001 00000002 000a 0000 0000000000000003 0000000000000100"
        ),
        Message::FlowRemoved(FlowRemoved {
            wording: Wording::default(),
            cookie: 0xaa,
            priority: 0xffff,
            reason: FlowRemovedReason::HardTimeout,
            table: TableId(0),
            duration_s: 1,
            duration_ns: 2,
            idle_timeout_s: 10,
            hard_timeout_s: 0,
            packet_count: 3,
            byte_count: 256,
            fields: exact(),
        }),
    );
    // §5.4.3: reason, pad[7], port.
    same(
        "01 0c 0000 00001234 02 00000000000000
         0003 020000000002 65746831000000000000000000000000 00000000 00000001 00000000 00000000 00000000 00000000",
        Message::PortStatus(PortStatus {
            reason: PortReason::Modify,
            port: PortDesc {
                number: PortNo(3),
                hw_addr: Mac([2, 0, 0, 0, 0, 2]),
                name: "eth1".into(),
                state: PortState::LINK_DOWN,
                ..PortDesc::default()
            },
        }),
    );
    // §5.4.4: type, code, data.
    let error = |kind, data: &[u8]| Message::Error(ErrorMsg { kind, data: data.to_vec() });
    let full = ErrorKind::Known(ErrorCode::FlowModFailedTableFull);
    same("01 01 0000 00001234 0003 0000 0102", error(full, &[1, 2]));
    let port = ErrorKind::Known(ErrorCode::QueueOpFailedBadPort);
    same("01 01 0000 00001234 0005 0000", error(port, &[]));
}

#[test]
fn events_of_what_1_0_does_not_know_are_told_by_what_it_knows() {
    let packet = PacketIn {
        buffer_id: None,
        total_len: 2,
        reason: PacketInReason::InvalidTtl,
        table: TableId(7),
        cookie: 9,
        fields: Match::default().with(OxmField::InPort, 70_000).with(OxmField::TunnelId, 1),
        data: vec![1, 2],
    };
    assert_eq!(
        Message::PacketIn(packet).encode(Version::V1_0, 0x1234).unwrap(),
        wire("01 0a 0000 00001234 ffffffff 0002 ffff 01 00 0102")
    );
    let removed = Message::FlowRemoved(FlowRemoved {
        wording: Wording::default(),
        cookie: 0,
        priority: 1,
        reason: FlowRemovedReason::GroupDelete,
        table: TableId(7),
        duration_s: 0,
        duration_ns: 0,
        idle_timeout_s: 0,
        hard_timeout_s: 9,
        packet_count: 0,
        byte_count: 0,
        fields: Match::default(),
    });
    let bytes = removed.encode(Version::V1_0, 1).unwrap();
    assert_eq!((bytes.len(), bytes[58]), (88, 2), "deleted");
}

#[test]
fn port_mod_has_its_bytes() {
    // §5.3.4: port_no, hw_addr, config, mask, advertise, pad[4].
    same(
        "01 0f 0000 00001234 0003 020000000002 00000011 00000031 00000080 00000000",
        Message::PortMod(PortMod {
            number: PortNo(3),
            hw_addr: Mac([2, 0, 0, 0, 0, 2]),
            config: PortConfig::PORT_DOWN | PortConfig::NO_FLOOD,
            mask: PortConfig::PORT_DOWN | PortConfig::NO_FLOOD | PortConfig::NO_FWD,
            advertise: PortFeatures::COPPER,
        }),
    );
}

#[test]
fn statistics_requests_have_their_bytes() {
    let ask = |body| Message::MultipartRequest(Part::last(body));
    // §5.3.5: type, flags.
    same("01 10 0000 00001234 0000 0000", ask(MultipartRequest::Desc));
    same("01 10 0000 00001234 0003 0000", ask(MultipartRequest::Table));
    // match, table_id, pad, out_port.
    let flows = FlowStatsRequest {
        table: TableId::ALL,
        out_port: PortNo(2),
        fields: exact(),
        ..FlowStatsRequest::default()
    };
    let body = format!("{EXACT} ff 00 0002");
    same(
        &format!("01 10 0000 00001234 0001 0000 {body}"),
        ask(MultipartRequest::Flow(flows.clone())),
    );
    same(&format!("01 10 0000 00001234 0002 0000 {body}"), ask(MultipartRequest::Aggregate(flows)));
    // port_no, pad[6]: OFPP_NONE asks for all.
    let all = "01 10 0000 00001234 0004 0000 ffff 000000000000";
    same(all, ask(MultipartRequest::PortStats(PortNo::ANY)));
    // port_no, pad[2], queue_id: OFPP_ALL asks for all.
    let all = MultipartRequest::Queue { port: PortNo::ANY, queue: ALL_QUEUES };
    same("01 10 0000 00001234 0005 0000 fffc 0000 ffffffff", ask(all));
    assert_eq!(code("01 10 0000 00001234 0006 0000"), ErrorCode::BadRequestBadMultipart);
    assert_eq!(code("01 10 0000 00001234 0001 0000 00"), ErrorCode::BadRequestBadLen);
}

#[test]
fn statistics_replies_have_their_bytes() {
    let tell = |more, body| Message::MultipartReply(Part { more, body });
    // length, table_id, pad, match, duration_sec, duration_nsec, priority, idle, hard, pad[6], cookie, packets, bytes, actions.
    same(
        &format!(
            "01 11 0000 00001234 0001 0001
             0060 00 00 {EXACT} 00000001 00000002 8000 0003 0004 000000000000 0000000000000005 0000000000000006 0000000000000007
             0000 0008 fffb 0000"
        ),
        tell(
            true,
            MultipartReply::Flow(vec![FlowStats {
                // The priority that was sent; without a wildcard another is in force.
                wording: Wording::from_bits(1 << 16 | 0x8000),
                table: TableId(0),
                duration_s: 1,
                duration_ns: 2,
                priority: u16::MAX,
                idle_timeout_s: 3,
                hard_timeout_s: 4,
                flags: FlowModFlags::empty(),
                cookie: 5,
                packet_count: 6,
                byte_count: 7,
                fields: exact(),
                instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])],
            }]),
        ),
    );
    let sums = AggregateStats { packet_count: 1, byte_count: 2, flow_count: 3 };
    same(
        "01 11 0000 00001234 0002 0000 0000000000000001 0000000000000002 00000003 00000000",
        tell(false, MultipartReply::Aggregate(sums)),
    );
    // table_id, pad[3], name[32], wildcards, max_entries, active_count, lookup_count, matched_count.
    let name = format!("7461626c6537{}", "00".repeat(26));
    same(
        &format!(
            "01 11 0000 00001234 0003 0000 07 000000 {name} 003fffff 00000064 00000003 0000000000000009 0000000000000008"
        ),
        tell(
            false,
            MultipartReply::Table(vec![TableStats {
                table: TableId(7),
                max_entries: 100,
                active: 3,
                lookups: 9,
                matches: 8,
            }]),
        ),
    );
    // port_no, pad[6], twelve counters.
    let counters: String = (1..=12).map(|n| format!("{n:016x}")).collect();
    let ports = PortStats {
        number: PortNo::LOCAL,
        rx_packets: 1,
        tx_packets: 2,
        rx_bytes: 3,
        tx_bytes: 4,
        rx_dropped: 5,
        tx_dropped: 6,
        rx_errors: 7,
        tx_errors: 8,
        rx_frame_err: 9,
        rx_over_err: 10,
        rx_crc_err: 11,
        collisions: 12,
        ..PortStats::default()
    };
    same(
        &format!("01 11 0000 00001234 0004 0000 fffe 000000000000 {counters}"),
        tell(false, MultipartReply::PortStats(vec![ports])),
    );
    // port_no, pad[2], queue_id, tx_bytes, tx_packets, tx_errors.
    let queue = QueueStats {
        port: PortNo(3),
        queue: 7,
        tx_bytes: 1,
        tx_packets: 2,
        tx_errors: 3,
        ..QueueStats::default()
    };
    same(
        "01 11 0000 00001234 0005 0000 0003 0000 00000007 0000000000000001 0000000000000002 0000000000000003",
        tell(false, MultipartReply::Queue(vec![queue])),
    );
}

#[test]
fn queues_have_their_bytes() {
    same("01 14 0000 00001234 0003 0000", Message::QueueGetConfigRequest(PortNo(3)));
    assert_eq!(code("01 14 0000 00001234 ffff 0000"), ErrorCode::QueueOpFailedBadPort);
    // §5.3.4: port, pad[6]; §5.2.2: queue_id, len, pad[2], then property, len, pad[4], rate, pad[6].
    same(
        "01 15 0000 00001234 0003 000000000000
         00000007 0018 0000 0001 0010 00000000 01f4 000000000000
         00000008 0008 0000",
        Message::QueueGetConfigReply(QueueConfig {
            port: PortNo(3),
            queues: vec![
                Queue { id: 7, port: PortNo(3), properties: vec![QueueProperty::MinRate(500)] },
                Queue { id: 8, port: PortNo(3), properties: vec![] },
            ],
        }),
    );
}

#[test]
fn what_1_0_has_no_message_for_is_not_encoded() {
    let none = EncodeError::NotInVersion { version: Version::V1_0 };
    for message in [
        Message::GetAsyncRequest,
        Message::TableMod(TableMod { table: TableId(0), config: 0 }),
        Message::MultipartRequest(Part::last(MultipartRequest::PortDesc)),
        Message::MultipartReply(Part::last(MultipartReply::PortDesc(vec![]))),
    ] {
        assert_eq!(message.encode(Version::V1_0, 1), Err(none), "{message:?}");
    }
    assert_eq!(
        encode_reply(Version::V1_0, 1, &MultipartReply::GroupDesc(vec![]), false),
        Err(none)
    );
    assert_eq!(code("01 16 0000 00001234"), ErrorCode::BadRequestBadType);
}

#[test]
fn a_dump_of_more_than_64_kib_comes_in_parts() {
    let flow = |priority| FlowStats {
        wording: Wording::default(),
        table: TableId(0),
        duration_s: 0,
        duration_ns: 0,
        priority,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: FlowModFlags::empty(),
        cookie: 0,
        packet_count: 0,
        byte_count: 0,
        fields: Match::default(),
        instructions: vec![],
    };
    let reply = MultipartReply::Flow((0..2000).map(flow).collect());
    let parts = encode_reply(Version::V1_0, 9, &reply, false).unwrap();
    // (65535 - 12) / 88 entries fit one message.
    let more: Vec<bool> = parts.iter().map(|part| part[11] == 1).collect();
    assert_eq!((parts[0].len(), more), (12 + 744 * 88, vec![true, true, false]));
    let mut found = Vec::new();
    for part in &parts {
        match Message::decode(part).unwrap().1 {
            Message::MultipartReply(Part { body: MultipartReply::Flow(list), .. }) => {
                found.extend(list)
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(MultipartReply::Flow(found), reply);
}
