//! What an input makes the hostile peer say: messages of small choices, so that they meet each other's flows, groups and ports.

use openflow::{
    Action, AsyncConfig, BandKind, Bucket, Experimenter, FlowMod, FlowModCommand, FlowModFlags,
    FlowStatsRequest, FragmentMode, GroupId, GroupMod, GroupModCommand, GroupType, Instruction,
    Mac, Match, Message, MeterBand, MeterFlags, MeterId, MeterMod, MeterModCommand,
    MultipartRequest, Oxm, OxmField, PacketOut, Part, PortConfig, PortFeatures, PortMod, PortNo,
    Role, RoleMsg, SwitchConfig, TableId, TableMod, Version,
};

/// The rest of an input. At its end every choice is the first one.
pub struct Script<'i>(pub &'i [u8]);

impl Script<'_> {
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// Up to `most` of something.
    fn some<T>(&mut self, most: u8, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        let count = self.byte() % (most + 1);
        (0..count).map(|_| make(self)).collect()
    }

    pub fn port(&mut self) -> PortNo {
        let reserved =
            [PortNo::ANY, PortNo::CONTROLLER, PortNo::NORMAL, PortNo::IN_PORT, PortNo::TABLE];
        self.pick(
            &[&[PortNo(1), PortNo(2), PortNo(3), PortNo(0), PortNo::ALL], &reserved[..]].concat(),
        )
    }

    fn table(&mut self) -> TableId {
        self.pick(&[TableId(0), TableId(1), TableId(2), TableId(253), TableId::MAX, TableId::ALL])
    }

    fn group(&mut self) -> GroupId {
        self.pick(&[GroupId(1), GroupId(2), GroupId(3), GroupId::MAX, GroupId::ALL, GroupId::ANY])
    }

    fn meter(&mut self) -> MeterId {
        self.pick(&[
            MeterId(1),
            MeterId(2),
            MeterId(0),
            MeterId::MAX,
            MeterId::CONTROLLER,
            MeterId::ALL,
        ])
    }

    fn buffer(&mut self) -> Option<u32> {
        self.pick(&[None, Some(0), Some(1), Some(256), Some(0x0100_0000), Some(u32::MAX - 1)])
    }

    fn fields(&mut self) -> Match {
        let value = u128::from(self.byte());
        let ipv4 = Match::default().with(OxmField::EthType, 0x0800);
        match self.byte() % 8 {
            0 => Match::default(),
            1 => Match::default().with(OxmField::InPort, value % 4),
            2 => ipv4.with(OxmField::Ipv4Dst, value),
            3 => ipv4.with_masked(OxmField::Ipv4Src, value << 8, 0xffff_ff00),
            4 => ipv4.with(OxmField::IpProto, 6).with(OxmField::TcpDst, value),
            5 => Match::default().with_masked(OxmField::Metadata, value, 0xff),
            // Without what they need first.
            6 => Match::default().with(OxmField::TcpDst, value),
            _ => Match::default().with_masked(OxmField::VlanVid, 0x1000 | value, 0x1fff),
        }
    }

    fn action(&mut self) -> Action {
        match self.byte() % 12 {
            0..4 => Action::Output { port: self.port(), max_len: self.pick(&[0, 64, 0xffff]) },
            4 | 5 => Action::Group(self.group()),
            6 => Action::SetQueue(self.byte().into()),
            7 => Action::PushVlan(self.pick(&[0x8100, 0x88a8, 0x0800])),
            8 => self.pick_simple(),
            9 => Action::SetField(Oxm::exact(OxmField::Ipv4Dst, self.byte().into())),
            10 => Action::SetField(Oxm::exact(OxmField::EthSrc, self.byte().into())),
            _ => Action::Experimenter { experimenter: 0x2320, body: vec![0; 4] },
        }
    }

    fn pick_simple(&mut self) -> Action {
        let simple = [Action::PopVlan, Action::DecNwTtl, Action::CopyTtlOut, Action::PopPbb];
        simple[usize::from(self.byte()) % simple.len()].clone()
    }

    fn instruction(&mut self) -> Instruction {
        match self.byte() % 8 {
            0..3 => Instruction::ApplyActions(self.some(4, Self::action)),
            3 => Instruction::WriteActions(self.some(4, Self::action)),
            4 => Instruction::GotoTable(self.table()),
            5 => Instruction::Meter(self.meter()),
            6 => Instruction::WriteMetadata { value: self.byte().into(), mask: 0xff },
            _ => Instruction::ClearActions,
        }
    }

    fn flow_mod(&mut self, version: Version) -> FlowMod {
        use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
        FlowMod {
            command: self.pick(&[Add, Add, Add, Modify, ModifyStrict, Delete, DeleteStrict]),
            table: self.table(),
            fields: self.fields(),
            priority: self.pick(&[0x8000, 0, 1, 0xffff]),
            cookie: self.byte().into(),
            cookie_mask: self.pick(&[0, 0xff, u64::MAX]),
            idle_timeout_s: self.pick(&[0, 1, 60]),
            hard_timeout_s: self.pick(&[0, 1, 60]),
            buffer_id: self.buffer(),
            out_port: self.pick(&[PortNo::ANY, PortNo(1), PortNo(2)]),
            out_group: self.pick(&[GroupId::ANY, GroupId(1), GroupId(2)]),
            flags: FlowModFlags::from_bits_retain(self.byte().into()),
            instructions: self.some(3, Self::instruction),
            version,
        }
    }

    fn bucket(&mut self) -> Bucket {
        Bucket {
            weight: self.byte().into(),
            watch_port: self.pick(&[PortNo::ANY, PortNo(1), PortNo(9)]),
            watch_group: self.pick(&[GroupId::ANY, GroupId(1), GroupId(2)]),
            actions: self.some(3, Self::action),
        }
    }

    fn group_mod(&mut self) -> GroupMod {
        use GroupModCommand::{Add, Delete, Modify};
        use GroupType::{All, FastFailover, Indirect, Select};
        GroupMod {
            command: self.pick(&[Add, Add, Modify, Delete]),
            kind: self.pick(&[All, Select, Indirect, FastFailover]),
            id: self.group(),
            buckets: self.some(3, Self::bucket),
        }
    }

    fn band(&mut self) -> MeterBand {
        let remark = BandKind::DscpRemark { prec_level: self.byte() };
        let foreign = BandKind::Experimenter { experimenter: 7 };
        MeterBand {
            kind: self.pick(&[BandKind::Drop, BandKind::Drop, remark, foreign]),
            rate: self.pick(&[1, 0, 1000, u32::MAX]),
            burst_size: self.pick(&[0, 1, u32::MAX]),
        }
    }

    fn meter_mod(&mut self) -> MeterMod {
        use MeterModCommand::{Add, Delete, Modify};
        MeterMod {
            command: self.pick(&[Add, Add, Modify, Delete]),
            flags: MeterFlags::from_bits_retain(self.byte().into()),
            id: self.meter(),
            bands: self.some(3, Self::band),
        }
    }

    fn packet_out(&mut self) -> PacketOut {
        PacketOut {
            buffer_id: self.buffer(),
            in_port: self.port(),
            actions: self.some(4, Self::action),
            data: vec![0x45; self.byte().into()],
        }
    }

    fn port_mod(&mut self) -> PortMod {
        PortMod {
            number: self.port(),
            hw_addr: self.pick(&[Mac([2, 0, 0, 0, 0, 1]), Mac::default()]),
            config: PortConfig::from_bits_retain(self.byte().into()),
            mask: PortConfig::from_bits_retain(self.byte().into()),
            advertise: PortFeatures::empty(),
        }
    }

    fn filter(&mut self) -> FlowStatsRequest {
        let (table, fields) = (self.table(), self.fields());
        FlowStatsRequest { table, fields, ..FlowStatsRequest::default() }
    }

    fn multipart(&mut self) -> Part<MultipartRequest> {
        let body = match self.byte() % 15 {
            0 => MultipartRequest::Flow(self.filter()),
            1 => MultipartRequest::Aggregate(self.filter()),
            2 => MultipartRequest::Table,
            3 => MultipartRequest::PortStats(self.port()),
            4 => MultipartRequest::Queue { port: self.port(), queue: self.byte().into() },
            5 => MultipartRequest::Group(self.group()),
            6 => MultipartRequest::GroupDesc,
            7 => MultipartRequest::GroupFeatures,
            8 => MultipartRequest::Meter(self.meter()),
            9 => MultipartRequest::MeterConfig(self.meter()),
            10 => MultipartRequest::MeterFeatures,
            11 => MultipartRequest::TableFeatures(Vec::new()),
            12 => MultipartRequest::PortDesc,
            13 => MultipartRequest::Desc,
            _ => MultipartRequest::Experimenter(self.experimenter()),
        };
        Part { more: self.byte() % 4 == 3, body }
    }

    fn experimenter(&mut self) -> Experimenter {
        Experimenter { experimenter: 0x2320, exp_type: self.byte().into(), body: vec![1; 8] }
    }

    fn config(&mut self) -> SwitchConfig {
        let fragments =
            self.pick(&[FragmentMode::Normal, FragmentMode::Drop, FragmentMode::Reassemble]);
        SwitchConfig { fragments, miss_send_len: self.pick(&[0, 128, 0xffff]) }
    }

    fn role(&mut self) -> RoleMsg {
        let role = self.pick(&[Role::Equal, Role::Master, Role::Slave, Role::NoChange]);
        RoleMsg { role, generation_id: self.pick(&[0, 1, 2, u64::MAX, 1 << 63]) }
    }

    fn events(&mut self) -> AsyncConfig {
        let mut mask = || [self.byte().into(), self.byte().into()];
        AsyncConfig { packet_in: mask(), port_status: mask(), flow_removed: mask() }
    }

    /// A valid message, or one that only a switch may send.
    pub fn message(&mut self, version: Version) -> Message {
        match self.byte() % 24 {
            0..7 => Message::FlowMod(self.flow_mod(version)),
            7 | 8 => Message::GroupMod(self.group_mod()),
            9 => Message::MeterMod(self.meter_mod()),
            10 => Message::PacketOut(self.packet_out()),
            11 => Message::PortMod(self.port_mod()),
            12 => Message::TableMod(TableMod { table: self.table(), config: self.byte().into() }),
            13 | 14 => Message::MultipartRequest(self.multipart()),
            15 => Message::BarrierRequest,
            16 => Message::RoleRequest(self.role()),
            17 => Message::SetAsync(self.events()),
            18 => Message::GetAsyncRequest,
            19 => Message::SetConfig(self.config()),
            20 => Message::EchoRequest(vec![7; 16 * usize::from(self.byte())]),
            21 => Message::QueueGetConfigRequest(self.port()),
            22 => Message::FeaturesRequest,
            _ => self.odd_one(),
        }
    }

    fn odd_one(&mut self) -> Message {
        match self.byte() % 5 {
            0 => Message::GetConfigRequest,
            1 => Message::BarrierReply,
            2 => Message::EchoReply(Vec::new()),
            3 => Message::Experimenter(self.experimenter()),
            _ => Message::RoleReply(self.role()),
        }
    }
}
