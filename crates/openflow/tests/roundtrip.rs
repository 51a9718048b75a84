//! decode ∘ encode = identity, on every message that can be made up from arbitrary fields.

use openflow::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn bytes(max: usize) -> BoxedStrategy<Vec<u8>> {
    vec(any::<u8>(), 0..max).boxed()
}

/// Bodies of things whose length on the wire is a multiple of 8: 8n bytes after a header of 8.
fn padded() -> BoxedStrategy<Vec<u8>> {
    (0..4usize).prop_flat_map(|n| vec(any::<u8>(), n * 8)).boxed()
}

fn text<const N: usize>() -> BoxedStrategy<FixedText<N>> {
    bytes(N + 4).prop_map(|bytes| FixedText::new(&bytes)).boxed()
}

fn list<T: std::fmt::Debug + 'static>(item: BoxedStrategy<T>) -> BoxedStrategy<Vec<T>> {
    vec(item, 0..5).boxed()
}

fn field() -> BoxedStrategy<OxmField> {
    select(OxmField::every().collect::<Vec<_>>()).boxed()
}

fn known_oxm() -> BoxedStrategy<Oxm> {
    (field(), any::<u128>()).prop_map(|(field, value)| Oxm::exact(field, value)).boxed()
}

fn oxm() -> BoxedStrategy<Oxm> {
    let masked = (field(), any::<u128>(), any::<u128>())
        .prop_map(|(field, value, mask)| Oxm::masked(field, value, mask));
    let unknown = (2u16..0x8000, 0u8..128, any::<bool>(), bytes(20)).prop_map(
        |(class, number, masked, body)| Oxm::Unknown(UnknownOxm { class, number, masked, body }),
    );
    prop_oneof![known_oxm(), masked, unknown].boxed()
}

fn oxms() -> BoxedStrategy<Match> {
    list(oxm()).prop_map(Match).boxed()
}

fn oxm_ids() -> BoxedStrategy<Vec<OxmId>> {
    list((field(), any::<bool>()).prop_map(|(field, masked)| OxmId::of(field, masked)).boxed())
}

fn action() -> BoxedStrategy<Action> {
    let set_masked = (field(), any::<u128>(), any::<u128>())
        .prop_map(|(field, value, mask)| Action::SetField(Oxm::masked(field, value, mask)));
    let output = (any::<u32>(), any::<u16>())
        .prop_map(|(port, max_len)| Action::Output { port: PortNo(port), max_len });
    let experimenter = (any::<u32>(), padded())
        .prop_map(|(experimenter, body)| Action::Experimenter { experimenter, body });
    let fixed = select(vec![
        Action::PopVlan,
        Action::PopPbb,
        Action::CopyTtlOut,
        Action::CopyTtlIn,
        Action::DecMplsTtl,
        Action::DecNwTtl,
    ]);
    let typed = any::<u16>().prop_flat_map(|ether| {
        select(vec![
            Action::PushVlan(ether),
            Action::PushMpls(ether),
            Action::PopMpls(ether),
            Action::PushPbb(ether),
        ])
    });
    let numbered = any::<u32>().prop_flat_map(|number| {
        let ttl = number as u8;
        select(vec![
            Action::Group(GroupId(number)),
            Action::SetQueue(number),
            Action::SetMplsTtl(ttl),
            Action::SetNwTtl(ttl),
        ])
    });
    let set = known_oxm().prop_map(Action::SetField);
    prop_oneof![output, fixed, typed, numbered, set, set_masked, experimenter].boxed()
}

fn instruction() -> BoxedStrategy<Instruction> {
    prop_oneof![
        any::<u8>().prop_map(|table| Instruction::GotoTable(TableId(table))),
        any::<(u64, u64)>().prop_map(|(value, mask)| Instruction::WriteMetadata { value, mask }),
        list(action()).prop_map(Instruction::WriteActions),
        list(action()).prop_map(Instruction::ApplyActions),
        Just(Instruction::ClearActions),
        any::<u32>().prop_map(|id| Instruction::Meter(MeterId(id))),
        (any::<u32>(), padded())
            .prop_map(|(experimenter, body)| Instruction::Experimenter { experimenter, body }),
    ]
    .boxed()
}

fn flow_mod() -> BoxedStrategy<FlowMod> {
    let numbers = any::<(u64, u64, u8, u16, u16, u16)>();
    let filters = (any::<Option<u32>>(), any::<u32>(), any::<u32>(), any::<u16>());
    (numbers, filters, select(FlowModCommand::ALL), oxms(), list(instruction()))
        .prop_map(
            |(
                (cookie, cookie_mask, table, idle, hard, priority),
                filters,
                command,
                fields,
                instructions,
            )| FlowMod {
                cookie,
                cookie_mask,
                table: TableId(table),
                command,
                idle_timeout_s: idle,
                hard_timeout_s: hard,
                priority,
                buffer_id: filters.0.filter(|id| *id != u32::MAX),
                out_port: PortNo(filters.1),
                out_group: GroupId(filters.2),
                flags: FlowModFlags::from_bits_retain(filters.3),
                fields,
                instructions,
                version: Version::V1_3,
                wording: Wording::default(),
            },
        )
        .boxed()
}

fn flow_removed() -> BoxedStrategy<FlowRemoved> {
    (any::<(u64, u16, u8, u32, u32, u16, u16, u64, u64)>(), select(FlowRemovedReason::ALL), oxms())
        .prop_map(|(n, reason, fields)| FlowRemoved {
            wording: Wording::default(),
            cookie: n.0,
            priority: n.1,
            reason,
            table: TableId(n.2),
            duration_s: n.3,
            duration_ns: n.4,
            idle_timeout_s: n.5,
            hard_timeout_s: n.6,
            packet_count: n.7,
            byte_count: n.8,
            fields,
        })
        .boxed()
}

fn flow_stats() -> BoxedStrategy<FlowStats> {
    (any::<(u8, u32, u32, u16, u16, u16, u16, u64, u64, u64)>(), oxms(), list(instruction()))
        .prop_map(|(n, fields, instructions)| FlowStats {
            wording: Wording::default(),
            table: TableId(n.0),
            duration_s: n.1,
            duration_ns: n.2,
            priority: n.3,
            idle_timeout_s: n.4,
            hard_timeout_s: n.5,
            flags: FlowModFlags::from_bits_retain(n.6),
            cookie: n.7,
            packet_count: n.8,
            byte_count: n.9,
            fields,
            instructions,
        })
        .boxed()
}

fn buckets() -> BoxedStrategy<Vec<Bucket>> {
    let bucket =
        (any::<(u16, u32, u32)>(), list(action())).prop_map(|((weight, port, group), actions)| {
            Bucket { weight, watch_port: PortNo(port), watch_group: GroupId(group), actions }
        });
    list(bucket.boxed())
}

fn bands() -> BoxedStrategy<Vec<MeterBand>> {
    let kind = prop_oneof![
        Just(BandKind::Drop),
        any::<u8>().prop_map(|prec_level| BandKind::DscpRemark { prec_level }),
        any::<u32>().prop_map(|experimenter| BandKind::Experimenter { experimenter }),
    ];
    list(
        (kind, any::<(u32, u32)>())
            .prop_map(|(kind, (rate, burst_size))| MeterBand { kind, rate, burst_size })
            .boxed(),
    )
}

fn counter() -> BoxedStrategy<Counter> {
    any::<(u64, u64)>().prop_map(|(packets, bytes)| Counter { packets, bytes }).boxed()
}

fn port() -> BoxedStrategy<PortDesc> {
    (any::<(u32, [u8; 6], [u32; 8])>(), text())
        .prop_map(|((number, mac, n), name)| PortDesc {
            number: PortNo(number),
            hw_addr: Mac(mac),
            name,
            // The bits of 1.0 have no place here.
            config: PortConfig::from_bits_retain(n[0] & !0x1a),
            state: PortState::from_bits_retain(n[1]),
            current: PortFeatures::from_bits_retain(n[2]),
            advertised: PortFeatures::from_bits_retain(n[3]),
            supported: PortFeatures::from_bits_retain(n[4]),
            peer: PortFeatures::from_bits_retain(n[5]),
            current_speed_kbps: n[6],
            max_speed_kbps: n[7],
        })
        .boxed()
}

fn port_stats() -> BoxedStrategy<PortStats> {
    any::<(u32, [u64; 12], u32, u32)>()
        .prop_map(|(number, n, duration_s, duration_ns)| PortStats {
            number: PortNo(number),
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
            duration_s,
            duration_ns,
        })
        .boxed()
}

fn queue_config() -> BoxedStrategy<QueueConfig> {
    let property = prop_oneof![
        any::<u16>().prop_map(QueueProperty::MinRate),
        any::<u16>().prop_map(QueueProperty::MaxRate),
        (any::<u32>(), padded())
            .prop_map(|(experimenter, body)| QueueProperty::Experimenter { experimenter, body }),
    ];
    let queue = (any::<(u32, u32)>(), list(property.boxed()))
        .prop_map(|((id, port), properties)| Queue { id, port: PortNo(port), properties });
    (any::<u32>(), list(queue.boxed()))
        .prop_map(|(port, queues)| QueueConfig { port: PortNo(port), queues })
        .boxed()
}

fn table_features() -> BoxedStrategy<TableFeatures> {
    let id = prop_oneof![
        (0u16..0xffff).prop_map(TypeId::Standard),
        (any::<u32>(), bytes(9))
            .prop_map(|(experimenter, body)| TypeId::Experimenter { experimenter, body }),
    ];
    let scope = select(vec![EntryScope::Regular, EntryScope::Miss]).boxed();
    let types = (scope.clone(), list(id.boxed()));
    let fields = (scope.clone(), oxm_ids());
    let property = prop_oneof![
        types.clone().prop_map(|(scope, ids)| TableProperty::Instructions(scope, ids)),
        types.clone().prop_map(|(scope, ids)| TableProperty::WriteActions(scope, ids)),
        types.prop_map(|(scope, ids)| TableProperty::ApplyActions(scope, ids)),
        (scope.clone(), bytes(9)).prop_map(|(scope, next)| TableProperty::NextTables(
            scope,
            next.into_iter().map(TableId).collect()
        )),
        oxm_ids().prop_map(TableProperty::Match),
        oxm_ids().prop_map(TableProperty::Wildcards),
        fields.clone().prop_map(|(scope, ids)| TableProperty::WriteSetField(scope, ids)),
        fields.prop_map(|(scope, ids)| TableProperty::ApplySetField(scope, ids)),
        (scope, any::<(u32, u32)>(), bytes(9)).prop_map(
            |(scope, (experimenter, exp_type), body)| {
                TableProperty::Experimenter { scope, experimenter, exp_type, body }
            }
        ),
    ];
    (any::<(u8, u64, u64, u32, u32)>(), text(), list(property.boxed()))
        .prop_map(|(n, name, properties)| TableFeatures {
            table: TableId(n.0),
            name,
            metadata_match: n.1,
            metadata_write: n.2,
            config: n.3,
            max_entries: n.4,
            properties,
        })
        .boxed()
}

fn experimenter() -> BoxedStrategy<Experimenter> {
    (any::<(u32, u32)>(), bytes(30))
        .prop_map(|((experimenter, exp_type), body)| Experimenter { experimenter, exp_type, body })
        .boxed()
}

fn flow_request() -> BoxedStrategy<FlowStatsRequest> {
    (any::<(u8, u32, u32, u64, u64)>(), oxms())
        .prop_map(|(n, fields)| FlowStatsRequest {
            table: TableId(n.0),
            out_port: PortNo(n.1),
            out_group: GroupId(n.2),
            cookie: n.3,
            cookie_mask: n.4,
            fields,
        })
        .boxed()
}

fn request() -> BoxedStrategy<MultipartRequest> {
    prop_oneof![
        select(vec![
            MultipartRequest::Desc,
            MultipartRequest::Table,
            MultipartRequest::GroupDesc,
            MultipartRequest::GroupFeatures,
            MultipartRequest::MeterFeatures,
            MultipartRequest::PortDesc,
        ]),
        flow_request().prop_map(MultipartRequest::Flow),
        flow_request().prop_map(MultipartRequest::Aggregate),
        any::<u32>().prop_map(|id| MultipartRequest::PortStats(PortNo(id))),
        any::<(u32, u32)>()
            .prop_map(|(port, queue)| MultipartRequest::Queue { port: PortNo(port), queue }),
        any::<u32>().prop_map(|id| MultipartRequest::Group(GroupId(id))),
        any::<u32>().prop_map(|id| MultipartRequest::Meter(MeterId(id))),
        any::<u32>().prop_map(|id| MultipartRequest::MeterConfig(MeterId(id))),
        list(table_features()).prop_map(MultipartRequest::TableFeatures),
        experimenter().prop_map(MultipartRequest::Experimenter),
    ]
    .boxed()
}

fn reply() -> BoxedStrategy<MultipartReply> {
    let group_stats = (any::<(u32, u32, u32, u32)>(), counter(), list(counter())).prop_map(
        |(n, total, buckets)| GroupStats {
            id: GroupId(n.0),
            ref_count: n.1,
            total,
            duration_s: n.2,
            duration_ns: n.3,
            buckets,
        },
    );
    let group_desc = (select(GroupType::ALL), any::<u32>(), buckets())
        .prop_map(|(kind, id, buckets)| GroupDesc { kind, id: GroupId(id), buckets });
    let meter_stats = (any::<(u32, u32, u32, u32)>(), counter(), list(counter())).prop_map(
        |(n, input, bands)| MeterStats {
            id: MeterId(n.0),
            flow_count: n.1,
            input,
            duration_s: n.2,
            duration_ns: n.3,
            bands,
        },
    );
    let meter_config = (any::<(u16, u32)>(), bands()).prop_map(|((flags, id), bands)| {
        MeterConfig { flags: MeterFlags::from_bits_retain(flags), id: MeterId(id), bands }
    });
    let table = any::<(u8, u32, u64, u64)>().prop_map(|(table, active, lookups, matches)| {
        TableStats { table: TableId(table), max_entries: 0, active, lookups, matches }
    });
    let queue = any::<(u32, u32, u64, u64, u64, u32, u32)>().prop_map(|n| QueueStats {
        port: PortNo(n.0),
        queue: n.1,
        tx_bytes: n.2,
        tx_packets: n.3,
        tx_errors: n.4,
        duration_s: n.5,
        duration_ns: n.6,
    });
    let desc = (text(), text(), text(), text(), text()).prop_map(
        |(manufacturer, hardware, software, serial, datapath)| SwitchDesc {
            manufacturer,
            hardware,
            software,
            serial_number: serial,
            datapath,
        },
    );
    let group_features =
        any::<(u32, u32, [u32; 4], [u32; 4])>().prop_map(|(types, bits, max_groups, actions)| {
            GroupFeatures {
                types,
                capabilities: GroupCapabilities::from_bits_retain(bits),
                max_groups,
                actions,
            }
        });
    let meter_features = any::<(u32, u32, u16, u8, u8)>().prop_map(|n| MeterFeatures {
        max_meter: n.0,
        band_types: n.1,
        capabilities: MeterFlags::from_bits_retain(n.2),
        max_bands: n.3,
        max_color: n.4,
    });
    let sums = any::<(u64, u64, u32)>().prop_map(|(packet_count, byte_count, flow_count)| {
        AggregateStats { packet_count, byte_count, flow_count }
    });
    prop_oneof![
        desc.prop_map(MultipartReply::Desc),
        list(flow_stats()).prop_map(MultipartReply::Flow),
        sums.prop_map(MultipartReply::Aggregate),
        list(table.boxed()).prop_map(MultipartReply::Table),
        list(port_stats()).prop_map(MultipartReply::PortStats),
        list(queue.boxed()).prop_map(MultipartReply::Queue),
        list(group_stats.boxed()).prop_map(MultipartReply::Group),
        list(group_desc.boxed()).prop_map(MultipartReply::GroupDesc),
        group_features.prop_map(MultipartReply::GroupFeatures),
        list(meter_stats.boxed()).prop_map(MultipartReply::Meter),
        list(meter_config.boxed()).prop_map(MultipartReply::MeterConfig),
        meter_features.prop_map(MultipartReply::MeterFeatures),
        list(table_features()).prop_map(MultipartReply::TableFeatures),
        list(port()).prop_map(MultipartReply::PortDesc),
        experimenter().prop_map(MultipartReply::Experimenter),
    ]
    .boxed()
}

fn error() -> BoxedStrategy<ErrorMsg> {
    let kind = prop_oneof![
        select(ErrorCode::ALL).prop_map(ErrorKind::Known),
        any::<(u32, u16)>().prop_map(|(experimenter, exp_type)| ErrorKind::Experimenter {
            experimenter,
            exp_type
        }),
        (14u16..0xffff, any::<u16>()).prop_map(|(kind, code)| ErrorKind::Unknown { kind, code }),
    ];
    (kind, bytes(70)).prop_map(|(kind, data)| ErrorMsg { kind, data }).boxed()
}

fn packet_in() -> BoxedStrategy<PacketIn> {
    (any::<Option<u32>>(), any::<(u16, u8, u64)>(), select(PacketInReason::ALL), oxms(), bytes(80))
        .prop_map(|(buffer, (total_len, table, cookie), reason, fields, data)| PacketIn {
            buffer_id: buffer.filter(|id| *id != u32::MAX),
            total_len,
            reason,
            table: TableId(table),
            cookie,
            fields,
            data,
        })
        .boxed()
}

fn small_messages() -> BoxedStrategy<Message> {
    let config = (select(FragmentMode::ALL), any::<u16>())
        .prop_map(|(fragments, miss_send_len)| SwitchConfig { fragments, miss_send_len })
        .boxed();
    let role = (select(Role::ALL), any::<u64>())
        .prop_map(|(role, generation_id)| RoleMsg { role, generation_id })
        .boxed();
    let events = any::<[u32; 6]>()
        .prop_map(|n| AsyncConfig {
            packet_in: [n[0], n[1]],
            port_status: [n[2], n[3]],
            flow_removed: [n[4], n[5]],
        })
        .boxed();
    let features = any::<(u64, u32, u8, u8, u32, u32)>().prop_map(|n| Features {
        datapath_id: n.0,
        buffers: n.1,
        tables: n.2,
        auxiliary_id: n.3,
        capabilities: Capabilities::from_bits_retain(n.4),
        actions: n.5,
        ports: vec![],
    });
    prop_oneof![
        select(vec![
            Message::FeaturesRequest,
            Message::GetConfigRequest,
            Message::BarrierRequest,
            Message::BarrierReply,
            Message::GetAsyncRequest,
        ]),
        any::<Option<u32>>()
            .prop_map(|set| Message::Hello(Hello { versions: set.map(VersionSet) })),
        error().prop_map(Message::Error),
        bytes(40).prop_map(Message::EchoRequest),
        bytes(40).prop_map(Message::EchoReply),
        experimenter().prop_map(Message::Experimenter),
        features.prop_map(Message::FeaturesReply),
        config.clone().prop_map(Message::GetConfigReply),
        config.prop_map(Message::SetConfig),
        role.clone().prop_map(Message::RoleRequest),
        role.prop_map(Message::RoleReply),
        events.clone().prop_map(Message::GetAsyncReply),
        events.prop_map(Message::SetAsync),
        any::<(u8, u32)>().prop_map(|(table, config)| Message::TableMod(TableMod {
            table: TableId(table),
            config
        })),
        any::<u32>().prop_map(|port| Message::QueueGetConfigRequest(PortNo(port))),
        queue_config().prop_map(Message::QueueGetConfigReply),
    ]
    .boxed()
}

fn message() -> BoxedStrategy<Message> {
    let packet_out = (any::<Option<u32>>(), any::<u32>(), list(action()), bytes(80)).prop_map(
        |(buffer, port, actions, data)| PacketOut {
            buffer_id: buffer.filter(|id| *id != u32::MAX),
            in_port: PortNo(port),
            actions,
            data,
        },
    );
    let group_mod =
        (select(GroupModCommand::ALL), select(GroupType::ALL), any::<u32>(), buckets()).prop_map(
            |(command, kind, id, buckets)| GroupMod { command, kind, id: GroupId(id), buckets },
        );
    let meter_mod = (select(MeterModCommand::ALL), any::<(u16, u32)>(), bands()).prop_map(
        |(command, (flags, id), bands)| MeterMod {
            command,
            flags: MeterFlags::from_bits_retain(flags),
            id: MeterId(id),
            bands,
        },
    );
    let port_mod = any::<(u32, [u8; 6], u32, u32, u32)>().prop_map(|n| PortMod {
        number: PortNo(n.0),
        hw_addr: Mac(n.1),
        config: PortConfig::from_bits_retain(n.2),
        mask: PortConfig::from_bits_retain(n.3),
        advertise: PortFeatures::from_bits_retain(n.4),
    });
    let status =
        (select(PortReason::ALL), port()).prop_map(|(reason, port)| PortStatus { reason, port });
    prop_oneof![
        3 => small_messages(),
        1 => packet_in().prop_map(Message::PacketIn),
        1 => flow_removed().prop_map(Message::FlowRemoved),
        1 => status.prop_map(Message::PortStatus),
        1 => packet_out.prop_map(Message::PacketOut),
        2 => flow_mod().prop_map(Message::FlowMod),
        1 => group_mod.prop_map(Message::GroupMod),
        1 => port_mod.prop_map(Message::PortMod),
        1 => meter_mod.prop_map(Message::MeterMod),
        2 => (any::<bool>(), request()).prop_map(|(more, body)| Message::MultipartRequest(Part { more, body })),
        3 => (any::<bool>(), reply()).prop_map(|(more, body)| Message::MultipartReply(Part { more, body })),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn decode_is_the_inverse_of_encode(message in message(), xid in any::<u32>()) {
        let bytes = message.encode(Version::V1_3, xid).unwrap();
        let (header, decoded) = Message::decode(&bytes).unwrap();
        prop_assert_eq!(decoded, message);
        prop_assert_eq!((header.xid, header.version), (xid, 4));
        prop_assert_eq!(next_frame(&bytes), Ok(Some(&bytes[..])));
    }

    #[test]
    fn a_message_cut_anywhere_is_refused_or_read_without_panic(message in message(), cut in any::<prop::sample::Index>()) {
        let mut bytes = message.encode(Version::V1_3, 1).unwrap();
        bytes.truncate(8 + cut.index(bytes.len() - 7));
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        let _ = Message::decode(&bytes);
    }

    #[test]
    fn checking_never_panics(flow in flow_mod()) {
        let _ = flow.check();
    }
}
