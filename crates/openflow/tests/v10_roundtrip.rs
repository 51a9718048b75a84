//! decode ∘ encode = identity on every message of OpenFlow 1.0, and nothing panics on any bytes.

use openflow::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const IP: u128 = 0x0800;

fn bytes(max: usize) -> BoxedStrategy<Vec<u8>> {
    vec(any::<u8>(), 0..max).boxed()
}

fn text<const N: usize>() -> BoxedStrategy<FixedText<N>> {
    bytes(N + 4).prop_map(|bytes| FixedText::new(&bytes)).boxed()
}

fn list<T: std::fmt::Debug + 'static>(item: BoxedStrategy<T>) -> BoxedStrategy<Vec<T>> {
    vec(item, 0..5).boxed()
}

/// A port that 1.0 can name.
fn port() -> BoxedStrategy<PortNo> {
    let reserved = (0xff00u32..=0xffff).prop_map(|low| PortNo(0xffff_0000 | low));
    prop_oneof![(0u32..0xff00).prop_map(PortNo), reserved].boxed()
}

/// Perhaps one more field of at most `full`.
fn perhaps(field: OxmField, full: u128) -> impl Fn(Match) -> BoxedStrategy<Match> {
    move |fields| {
        let with = fields.clone();
        prop_oneof![
            Just(fields),
            any::<u128>().prop_map(move |value| with.clone().with(field, value & full))
        ]
        .boxed()
    }
}

fn address(field: OxmField) -> impl Fn(Match) -> BoxedStrategy<Match> {
    move |fields| {
        (any::<u32>(), 0u32..=32)
            .prop_map(move |(value, length)| {
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                match mask {
                    0 => fields.clone(),
                    _ => fields.clone().with_masked(field, (value & mask).into(), mask.into()),
                }
            })
            .boxed()
    }
}

fn network(fields: Match) -> BoxedStrategy<Match> {
    let plain = fields.clone();
    let ip = fields.clone().with(OxmField::EthType, IP);
    let arp = fields.with(OxmField::EthType, 0x0806);
    let ip = perhaps(OxmField::IpDscp, 63)(ip)
        .prop_flat_map(perhaps(OxmField::IpProto, 0xff))
        .prop_flat_map(address(OxmField::Ipv4Src))
        .prop_flat_map(address(OxmField::Ipv4Dst));
    let tcp = Match(plain.0.clone()).with(OxmField::EthType, IP).with(OxmField::IpProto, 6);
    let tcp =
        perhaps(OxmField::TcpSrc, 0xffff)(tcp).prop_flat_map(perhaps(OxmField::TcpDst, 0xffff));
    let icmp = Match(plain.0.clone()).with(OxmField::EthType, IP).with(OxmField::IpProto, 1);
    let icmp = perhaps(OxmField::Icmpv4Type, 0xff)(icmp)
        .prop_flat_map(perhaps(OxmField::Icmpv4Code, 0xff));
    let arp = perhaps(OxmField::ArpOp, 0xff)(arp)
        .prop_flat_map(address(OxmField::ArpSpa))
        .prop_flat_map(address(OxmField::ArpTpa));
    let other = plain.clone().with(OxmField::EthType, 0x88cc);
    prop_oneof![Just(plain), Just(other), ip, tcp, icmp, arp].boxed()
}

/// VLAN fields come before those of the network and after the Ethernet type; as a list is compared, the order is that of decoding.
fn vlan(fields: Match) -> BoxedStrategy<Match> {
    let present = u128::from(VLAN_PRESENT);
    let (none, any_tag, id) = (fields.clone(), fields.clone(), fields.clone());
    prop_oneof![
        Just(fields),
        Just(none.with(OxmField::VlanVid, 0)),
        (0u128..8).prop_map(move |pcp| any_tag
            .clone()
            .with_masked(OxmField::VlanVid, present, present)
            .with(OxmField::VlanPcp, pcp)),
        (0u128..4096).prop_map(move |vid| id.clone().with(OxmField::VlanVid, present | vid)),
    ]
    .boxed()
}

/// A match that 1.0 can express: its fields in a fixed order, whatever the draw.
fn fields() -> BoxedStrategy<Match> {
    let link = port()
        .prop_flat_map(|port| {
            prop_oneof![
                Just(Match::default()),
                Just(Match::default().with(OxmField::InPort, port.0.into()))
            ]
        })
        .prop_flat_map(perhaps(OxmField::EthDst, (1 << 48) - 1))
        .prop_flat_map(perhaps(OxmField::EthSrc, (1 << 48) - 1));
    link.prop_flat_map(vlan).prop_flat_map(network).prop_map(sorted).boxed()
}

/// As decoding orders them: Ethernet type before VLAN.
fn sorted(mut fields: Match) -> Match {
    let place = |oxm: &Oxm| match oxm.field() {
        Some(OxmField::InPort) => 0,
        Some(OxmField::EthDst) => 1,
        Some(OxmField::EthSrc) => 2,
        Some(OxmField::EthType) => 3,
        Some(OxmField::VlanVid) => 4,
        Some(OxmField::VlanPcp) => 5,
        Some(OxmField::IpDscp) => 6,
        Some(OxmField::IpProto | OxmField::ArpOp) => 7,
        _ => 8,
    };
    fields.0.sort_by_key(place);
    fields
}

fn set(field: OxmField, full: u128) -> BoxedStrategy<Vec<Action>> {
    any::<u128>()
        .prop_map(move |value| vec![Action::SetField(Oxm::exact(field, value & full))])
        .boxed()
}

fn set_ports(tcp: OxmField, udp: OxmField) -> BoxedStrategy<Vec<Action>> {
    any::<u16>()
        .prop_map(move |port| {
            [tcp, udp].map(|field| Action::SetField(Oxm::exact(field, port.into()))).to_vec()
        })
        .boxed()
}

fn set_vlan(field: OxmField, full: u128, present: u128) -> BoxedStrategy<Vec<Action>> {
    any::<u128>()
        .prop_map(move |value| {
            let set = Action::SetField(Oxm::exact(field, value & full | present));
            vec![Action::EnsureVlan, set]
        })
        .boxed()
}

fn action() -> BoxedStrategy<Vec<Action>> {
    let output =
        (port(), any::<u16>()).prop_map(|(port, max_len)| vec![Action::Output { port, max_len }]);
    let enqueue = (1u32..0xff00, any::<u32>()).prop_map(|(port, queue)| {
        let output = Action::Output { port: PortNo(port), max_len: 0 };
        vec![Action::SetQueue(queue), output, Action::SetQueue(0)]
    });
    let vendor = (any::<u32>(), (0..4usize).prop_flat_map(|n| vec(any::<u8>(), n * 8)))
        .prop_map(|(experimenter, body)| vec![Action::Experimenter { experimenter, body }]);
    prop_oneof![
        output,
        enqueue,
        vendor,
        Just(vec![Action::PopVlan]),
        set_vlan(OxmField::VlanVid, 0xfff, VLAN_PRESENT.into()),
        set_vlan(OxmField::VlanPcp, 7, 0),
        set(OxmField::EthSrc, (1 << 48) - 1),
        set(OxmField::EthDst, (1 << 48) - 1),
        set(OxmField::Ipv4Src, u32::MAX.into()),
        set(OxmField::Ipv4Dst, u32::MAX.into()),
        set(OxmField::IpDscp, 63),
        set_ports(OxmField::TcpSrc, OxmField::UdpSrc),
        set_ports(OxmField::TcpDst, OxmField::UdpDst),
    ]
    .boxed()
}

fn actions() -> BoxedStrategy<Vec<Action>> {
    list(action()).prop_map(|lists| lists.concat()).boxed()
}

fn instructions() -> BoxedStrategy<Vec<Instruction>> {
    actions()
        .prop_map(|list| match list.is_empty() {
            true => vec![],
            false => vec![Instruction::ApplyActions(list)],
        })
        .boxed()
}

fn buffer() -> BoxedStrategy<Option<u32>> {
    any::<u32>().prop_map(|id| (id != u32::MAX).then_some(id)).boxed()
}

fn is_exact(fields: &Match) -> bool {
    let whole = |field| fields.exact(field).is_some();
    [OxmField::InPort, OxmField::EthSrc, OxmField::EthDst].into_iter().all(whole)
        && [OxmField::VlanVid, OxmField::VlanPcp, OxmField::IpDscp].into_iter().all(whole)
}

fn flow_mod() -> BoxedStrategy<Message> {
    let numbers = any::<(u64, u16, u16, u16)>();
    (numbers, select(FlowModCommand::ALL), buffer(), port(), 0u16..4, fields(), instructions())
        .prop_map(|(n, command, buffer_id, out_port, flags, fields, instructions)| {
            let deletes = matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
            // Without any wildcard the priority is not the sender's to say: see the test of that.
            let priority = if is_exact(&fields) { u16::MAX } else { n.3 };
            Message::FlowMod(FlowMod {
                cookie: n.0,
                table: if deletes { TableId::ALL } else { TableId(0) },
                command,
                idle_timeout_s: n.1,
                hard_timeout_s: n.2,
                priority,
                buffer_id,
                out_port,
                flags: FlowModFlags::from_bits_retain(flags),
                fields,
                instructions,
                version: Version::V1_0,
                ..FlowMod::default()
            })
        })
        .boxed()
}

fn features() -> BoxedStrategy<PortFeatures> {
    let bits = |bits: u32| PortFeatures::from_bits_retain(bits & 0x7f | (bits & 0xf80) << 4);
    any::<u32>().prop_map(bits).boxed()
}

fn port_desc() -> BoxedStrategy<PortDesc> {
    let states = vec![PortState::empty(), PortState::LINK_DOWN, PortState::BLOCKED];
    let features = (features(), features(), features(), features());
    (port(), any::<[u8; 6]>(), text(), any::<u32>(), select(states), features)
        .prop_map(|(number, mac, name, config, state, (current, advertised, supported, peer))| {
            PortDesc {
                number,
                hw_addr: Mac(mac),
                name,
                config: PortConfig::from_bits_retain(config),
                state,
                current,
                advertised,
                supported,
                peer,
                ..PortDesc::default()
            }
        })
        .boxed()
}

fn queue(port: PortNo) -> BoxedStrategy<Queue> {
    let property = any::<u16>().prop_map(QueueProperty::MinRate).boxed();
    (any::<u32>(), list(property))
        .prop_map(move |(id, properties)| Queue { id, port, properties })
        .boxed()
}

fn request() -> BoxedStrategy<MultipartRequest> {
    let tables = (0..=u8::MAX).prop_filter("the emergency table is none", |table| *table != 0xfe);
    let flows = (fields(), tables, port()).prop_map(|(fields, table, out_port)| FlowStatsRequest {
        fields,
        table: TableId(table),
        out_port,
        ..FlowStatsRequest::default()
    });
    let queues = (port(), any::<u32>()).prop_map(|(port, queue)| MultipartRequest::Queue {
        port: if port == PortNo::ALL { PortNo::ANY } else { port },
        queue,
    });
    prop_oneof![
        Just(MultipartRequest::Desc),
        flows.clone().prop_map(MultipartRequest::Flow),
        flows.prop_map(MultipartRequest::Aggregate),
        Just(MultipartRequest::Table),
        port().prop_map(MultipartRequest::PortStats),
        queues,
        vendor().prop_map(MultipartRequest::Experimenter),
    ]
    .boxed()
}

fn vendor() -> BoxedStrategy<Experimenter> {
    (any::<(u32, u32)>(), bytes(20))
        .prop_map(|((experimenter, exp_type), body)| Experimenter { experimenter, exp_type, body })
        .boxed()
}

fn flow_stats() -> BoxedStrategy<FlowStats> {
    let numbers = any::<(u8, u32, u32, u16, u16, u16, u64, u64, u64)>();
    (numbers, fields(), instructions())
        .prop_map(|(n, fields, instructions)| FlowStats {
            wording: Wording::default(),
            table: TableId(n.0),
            duration_s: n.1,
            duration_ns: n.2,
            priority: if is_exact(&fields) { u16::MAX } else { n.3 },
            idle_timeout_s: n.4,
            hard_timeout_s: n.5,
            flags: FlowModFlags::empty(),
            cookie: n.6,
            packet_count: n.7,
            byte_count: n.8,
            fields,
            instructions,
        })
        .boxed()
}

fn reply() -> BoxedStrategy<MultipartReply> {
    let desc = (text(), text(), text(), text(), text()).prop_map(
        |(manufacturer, hardware, software, serial_number, datapath)| SwitchDesc {
            manufacturer,
            hardware,
            software,
            serial_number,
            datapath,
        },
    );
    let sums = any::<(u64, u64, u32)>().prop_map(|n| AggregateStats {
        packet_count: n.0,
        byte_count: n.1,
        flow_count: n.2,
    });
    let table = any::<(u8, u32, u32, u64, u64)>().prop_map(|n| TableStats {
        table: TableId(n.0),
        max_entries: n.1,
        active: n.2,
        lookups: n.3,
        matches: n.4,
    });
    let ports = (port(), any::<[u64; 12]>()).prop_map(|(number, n)| PortStats {
        number,
        rx_packets: n[0],
        tx_packets: n[1],
        rx_bytes: n[2],
        tx_bytes: n[3],
        rx_dropped: n[4],
        tx_dropped: n[5],
        rx_errors: n[6],
        tx_errors: n[7],
        rx_frame_err: n[8],
        rx_over_err: n[9],
        rx_crc_err: n[10],
        collisions: n[11],
        ..PortStats::default()
    });
    let queues = (port(), any::<(u32, u64, u64, u64)>()).prop_map(|(port, n)| QueueStats {
        port,
        queue: n.0,
        tx_bytes: n.1,
        tx_packets: n.2,
        tx_errors: n.3,
        ..QueueStats::default()
    });
    prop_oneof![
        desc.prop_map(MultipartReply::Desc),
        list(flow_stats()).prop_map(MultipartReply::Flow),
        sums.prop_map(MultipartReply::Aggregate),
        list(table.boxed()).prop_map(MultipartReply::Table),
        list(ports.boxed()).prop_map(MultipartReply::PortStats),
        list(queues.boxed()).prop_map(MultipartReply::Queue),
        vendor().prop_map(MultipartReply::Experimenter),
    ]
    .boxed()
}

fn packet_in() -> BoxedStrategy<Message> {
    let reasons = vec![PacketInReason::NoMatch, PacketInReason::Action];
    (buffer(), any::<u16>(), port(), select(reasons), bytes(80))
        .prop_map(|(buffer_id, total_len, port, reason, data)| {
            Message::PacketIn(PacketIn {
                buffer_id,
                total_len,
                reason,
                table: TableId(0),
                cookie: u64::MAX,
                fields: Match::default().with(OxmField::InPort, port.0.into()),
                data,
            })
        })
        .boxed()
}

fn packet_out() -> BoxedStrategy<Message> {
    (buffer(), port(), actions(), bytes(80))
        .prop_map(|(buffer_id, port, actions, data)| {
            let none = [PortNo::ANY, PortNo(0)].contains(&port);
            let in_port = if none { PortNo::CONTROLLER } else { port };
            Message::PacketOut(PacketOut { buffer_id, in_port, actions, data })
        })
        .boxed()
}

fn flow_removed() -> BoxedStrategy<Message> {
    let reasons = vec![
        FlowRemovedReason::IdleTimeout,
        FlowRemovedReason::HardTimeout,
        FlowRemovedReason::Delete,
    ];
    (fields(), select(reasons), any::<(u64, u16, u32, u32, u16, u64, u64)>())
        .prop_map(|(fields, reason, n)| {
            Message::FlowRemoved(FlowRemoved {
                wording: Wording::default(),
                cookie: n.0,
                priority: if is_exact(&fields) { u16::MAX } else { n.1 },
                reason,
                table: TableId(0),
                duration_s: n.2,
                duration_ns: n.3,
                idle_timeout_s: n.4,
                hard_timeout_s: 0,
                packet_count: n.5,
                byte_count: n.6,
                fields,
            })
        })
        .boxed()
}

fn switch_message() -> BoxedStrategy<Message> {
    let features = (any::<(u64, u32, u8, u32, u32)>(), list(port_desc())).prop_map(|(n, ports)| {
        let later = Capabilities::GROUP_STATS | Capabilities::PORT_BLOCKED;
        Message::FeaturesReply(Features {
            datapath_id: n.0,
            buffers: n.1,
            tables: n.2,
            capabilities: Capabilities::from_bits_retain(n.3) - later,
            actions: n.4,
            ports,
            ..Features::default()
        })
    });
    let config = (select(FragmentMode::ALL), any::<u16>())
        .prop_map(|(fragments, miss_send_len)| SwitchConfig { fragments, miss_send_len });
    let port_mod = (port(), any::<([u8; 6], u32, u32)>(), self::features()).prop_map(
        |(number, (mac, config, mask), advertise)| PortMod {
            number,
            hw_addr: Mac(mac),
            config: PortConfig::from_bits_retain(config),
            // The bits of the spanning tree are taken and mean nothing.
            mask: PortConfig::from_bits_retain(mask & !0b1010),
            advertise,
        },
    );
    let status = (select(PortReason::ALL), port_desc())
        .prop_map(|(reason, port)| Message::PortStatus(PortStatus { reason, port }));
    let queues = port().prop_flat_map(|port| {
        list(queue(port))
            .prop_map(move |queues| Message::QueueGetConfigReply(QueueConfig { port, queues }))
    });
    prop_oneof![
        features,
        config.clone().prop_map(Message::GetConfigReply),
        config.prop_map(Message::SetConfig),
        port_mod.prop_map(Message::PortMod),
        status,
        queues,
        (1u32..0xff00).prop_map(|port| Message::QueueGetConfigRequest(PortNo(port))),
    ]
    .boxed()
}

/// A code that 1.0 has, or numbers that it does not define.
fn error() -> BoxedStrategy<Message> {
    let codes = vec![
        ErrorKind::Known(ErrorCode::HelloFailedIncompatible),
        ErrorKind::Known(ErrorCode::BadRequestBadMultipart),
        ErrorKind::Known(ErrorCode::BadActionBadQueue),
        ErrorKind::Known(ErrorCode::FlowModFailedTableFull),
        ErrorKind::Known(ErrorCode::FlowModFailedUnknown),
        ErrorKind::Known(ErrorCode::PortModFailedBadHwAddr),
        ErrorKind::Known(ErrorCode::QueueOpFailedEperm),
        ErrorKind::Unknown { kind: 6, code: 0 },
    ];
    (select(codes), bytes(70))
        .prop_map(|(kind, data)| Message::Error(ErrorMsg { kind, data }))
        .boxed()
}

fn message() -> BoxedStrategy<Message> {
    let bare = select(vec![
        Message::FeaturesRequest,
        Message::GetConfigRequest,
        Message::BarrierRequest,
        Message::BarrierReply,
    ]);
    prop_oneof![
        bare,
        any::<Option<u32>>()
            .prop_map(|bits| Message::Hello(Hello { versions: bits.map(VersionSet) })),
        error(),
        bytes(50).prop_map(Message::EchoRequest),
        bytes(50).prop_map(Message::EchoReply),
        vendor().prop_map(Message::Experimenter),
        switch_message(),
        packet_in(),
        packet_out(),
        flow_removed(),
        flow_mod(),
        request().prop_map(|body| Message::MultipartRequest(Part::last(body))),
        (any::<bool>(), reply())
            .prop_map(|(more, body)| Message::MultipartReply(Part { more, body })),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn every_message_comes_back_as_it_was(message in message(), xid: u32) {
        let bytes = message.encode(Version::V1_0, xid).unwrap();
        let (header, back) = Message::decode(&bytes).unwrap();
        prop_assert_eq!((header.version, header.xid), (1, xid));
        prop_assert_eq!(usize::from(header.length), bytes.len());
        prop_assert_eq!(back, message);
    }

    #[test]
    fn any_bytes_are_read_or_refused(kind in 0u8..24, body in vec(any::<u8>(), 0..200)) {
        let mut bytes = vec![1, kind, 0, 8 + body.len() as u8, 0, 0, 0, 1];
        bytes[2..4].copy_from_slice(&(8 + body.len() as u16).to_be_bytes());
        bytes.extend(body);
        if let Ok((_, message)) = Message::decode(&bytes) {
            let again = message.encode(Version::V1_0, 1).unwrap();
            prop_assert_eq!(Message::decode(&again).map(|(_, message)| message), Ok(message));
        }
    }

    #[test]
    fn whatever_1_3_says_1_0_is_told_something(fields in fields(), list in actions()) {
        let extra = Match(fields.0).with(OxmField::TunnelId, 5).with(OxmField::Metadata, 6);
        let flow = FlowStats {
            wording: Wording::default(),
            table: TableId(3),
            duration_s: 0,
            duration_ns: 0,
            priority: 0,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: FlowModFlags::RESET_COUNTS,
            cookie: 0,
            packet_count: 0,
            byte_count: 0,
            fields: extra,
            instructions: vec![
                Instruction::Meter(MeterId(1)),
                Instruction::ApplyActions(list.clone()),
                Instruction::GotoTable(TableId(4)),
            ],
        };
        let reply = MultipartReply::Flow(vec![flow]);
        let parts = encode_reply(Version::V1_0, 1, &reply, false).unwrap();
        let (_, message) = Message::decode(&parts[0]).unwrap();
        let Message::MultipartReply(Part { body: MultipartReply::Flow(back), .. }) = message else {
            panic!("{message:?}")
        };
        let kept = if list.is_empty() { vec![] } else { vec![Instruction::ApplyActions(list)] };
        prop_assert_eq!(&back[0].instructions, &kept);
        prop_assert_eq!(back[0].table, TableId(3));
    }
}
