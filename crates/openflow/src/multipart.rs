//! Multipart requests and their replies (OpenFlow 1.3.5 §7.3.5; 1.0 calls them statistics).

use crate::action::Instruction;
use crate::fixed_text::FixedText;
use crate::flow_mod::FlowModFlags;
use crate::group::{GroupDesc, GroupFeatures, GroupStats};
use crate::ids::{GroupId, MeterId, PortNo, TableId};
use crate::matching::Match;
use crate::meter::{MeterConfig, MeterFeatures, MeterStats};
use crate::port::{PortDesc, PortStats, QueueStats};
use crate::switch::Experimenter;
use crate::table::{TableFeatures, TableStats};
use crate::wire_enum::wire_enum;
use crate::wording::Wording;

wire_enum! {
    /// Which multipart.
    MultipartKind: u16 {
        /// Description of the switch.
        Desc = 0,
        /// Flow entries.
        Flow = 1,
        /// Sums over flow entries.
        Aggregate = 2,
        /// Table counters.
        Table = 3,
        /// Port counters.
        PortStats = 4,
        /// Queue counters.
        Queue = 5,
        /// Group counters.
        Group = 6,
        /// Group descriptions.
        GroupDesc = 7,
        /// Group features.
        GroupFeatures = 8,
        /// Meter counters.
        Meter = 9,
        /// Meter descriptions.
        MeterConfig = 10,
        /// Meter features.
        MeterFeatures = 11,
        /// Table features.
        TableFeatures = 12,
        /// Port descriptions.
        PortDesc = 13,
        /// An experimenter's.
        Experimenter = 0xffff,
    }
}

/// Which flow entries a request asks for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowStatsRequest {
    /// Table, or [`TableId::ALL`].
    pub table: TableId,
    /// Entries that output here; [`PortNo::ANY`] = no filter.
    pub out_port: PortNo,
    /// Entries that use this group; [`GroupId::ANY`] = no filter.
    pub out_group: GroupId,
    /// Cookie bits to agree on.
    pub cookie: u64,
    /// Which cookie bits; 0 = no filter.
    pub cookie_mask: u64,
    /// Entries at least as specific as this.
    pub fields: Match,
}

impl Default for FlowStatsRequest {
    fn default() -> Self {
        Self {
            table: TableId::ALL,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            cookie: 0,
            cookie_mask: 0,
            fields: Match::default(),
        }
    }
}

/// One flow entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowStats {
    /// Its table.
    pub table: TableId,
    /// Its age: whole seconds.
    pub duration_s: u32,
    /// Its age: nanoseconds beyond.
    pub duration_ns: u32,
    /// Its priority.
    pub priority: u16,
    /// Its idle timeout.
    pub idle_timeout_s: u16,
    /// Its hard timeout.
    pub hard_timeout_s: u16,
    /// Its options.
    pub flags: FlowModFlags,
    /// Its cookie.
    pub cookie: u64,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
    /// Its match.
    pub fields: Match,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
    /// What the version in which it came alone says.
    pub wording: Wording,
}

/// Sums over flow entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AggregateStats {
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
    /// Entries.
    pub flow_count: u32,
}

/// A description for people.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SwitchDesc {
    /// Manufacturer.
    pub manufacturer: FixedText<256>,
    /// Hardware.
    pub hardware: FixedText<256>,
    /// Software.
    pub software: FixedText<256>,
    /// Serial number.
    pub serial_number: FixedText<32>,
    /// Which switch this is, for people.
    pub datapath: FixedText<256>,
}

/// What is asked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MultipartRequest {
    /// Description of the switch.
    Desc,
    /// Flow entries.
    Flow(FlowStatsRequest),
    /// Sums over flow entries.
    Aggregate(FlowStatsRequest),
    /// Table counters.
    Table,
    /// Counters of a port, or of all ([`PortNo::ANY`]).
    PortStats(PortNo),
    /// Counters of queues.
    Queue {
        /// Port, or [`PortNo::ANY`].
        port: PortNo,
        /// Queue, or [`crate::ALL_QUEUES`].
        queue: u32,
    },
    /// Counters of a group, or of all.
    Group(GroupId),
    /// Description of a group, or of all (1.3: always all).
    GroupDesc,
    /// What groups can do.
    GroupFeatures,
    /// Counters of a meter, or of all.
    Meter(MeterId),
    /// Description of a meter, or of all.
    MeterConfig(MeterId),
    /// What meters can do.
    MeterFeatures,
    /// What tables can do; a list that is not empty asks to change it.
    TableFeatures(Vec<TableFeatures>),
    /// Description of the ports.
    PortDesc,
    /// An experimenter's request.
    Experimenter(Experimenter),
}

/// What is answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MultipartReply {
    /// Description of the switch.
    Desc(SwitchDesc),
    /// Flow entries.
    Flow(Vec<FlowStats>),
    /// Sums over flow entries.
    Aggregate(AggregateStats),
    /// Table counters.
    Table(Vec<TableStats>),
    /// Port counters.
    PortStats(Vec<PortStats>),
    /// Queue counters.
    Queue(Vec<QueueStats>),
    /// Group counters.
    Group(Vec<GroupStats>),
    /// Group descriptions.
    GroupDesc(Vec<GroupDesc>),
    /// Group features.
    GroupFeatures(GroupFeatures),
    /// Meter counters.
    Meter(Vec<MeterStats>),
    /// Meter descriptions.
    MeterConfig(Vec<MeterConfig>),
    /// Meter features.
    MeterFeatures(MeterFeatures),
    /// Table features.
    TableFeatures(Vec<TableFeatures>),
    /// Port descriptions.
    PortDesc(Vec<PortDesc>),
    /// An experimenter's reply.
    Experimenter(Experimenter),
}

impl MultipartRequest {
    /// Which multipart it is.
    pub fn kind(&self) -> MultipartKind {
        match self {
            Self::Desc => MultipartKind::Desc,
            Self::Flow(_) => MultipartKind::Flow,
            Self::Aggregate(_) => MultipartKind::Aggregate,
            Self::Table => MultipartKind::Table,
            Self::PortStats(_) => MultipartKind::PortStats,
            Self::Queue { .. } => MultipartKind::Queue,
            Self::Group(_) => MultipartKind::Group,
            Self::GroupDesc => MultipartKind::GroupDesc,
            Self::GroupFeatures => MultipartKind::GroupFeatures,
            Self::Meter(_) => MultipartKind::Meter,
            Self::MeterConfig(_) => MultipartKind::MeterConfig,
            Self::MeterFeatures => MultipartKind::MeterFeatures,
            Self::TableFeatures(_) => MultipartKind::TableFeatures,
            Self::PortDesc => MultipartKind::PortDesc,
            Self::Experimenter(_) => MultipartKind::Experimenter,
        }
    }
}

impl MultipartReply {
    /// Which multipart it is.
    pub fn kind(&self) -> MultipartKind {
        match self {
            Self::Desc(_) => MultipartKind::Desc,
            Self::Flow(_) => MultipartKind::Flow,
            Self::Aggregate(_) => MultipartKind::Aggregate,
            Self::Table(_) => MultipartKind::Table,
            Self::PortStats(_) => MultipartKind::PortStats,
            Self::Queue(_) => MultipartKind::Queue,
            Self::Group(_) => MultipartKind::Group,
            Self::GroupDesc(_) => MultipartKind::GroupDesc,
            Self::GroupFeatures(_) => MultipartKind::GroupFeatures,
            Self::Meter(_) => MultipartKind::Meter,
            Self::MeterConfig(_) => MultipartKind::MeterConfig,
            Self::MeterFeatures(_) => MultipartKind::MeterFeatures,
            Self::TableFeatures(_) => MultipartKind::TableFeatures,
            Self::PortDesc(_) => MultipartKind::PortDesc,
            Self::Experimenter(_) => MultipartKind::Experimenter,
        }
    }
}

/// A multipart message's body and whether more of the same transaction follow (`OFPMPF_*_MORE`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Part<T> {
    /// More parts follow.
    pub more: bool,
    /// This part.
    pub body: T,
}

impl<T> Part<T> {
    /// A body that is complete.
    pub fn last(body: T) -> Self {
        Self { more: false, body }
    }
}
