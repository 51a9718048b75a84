//! Numbers that OpenFlow gives to ports, groups, meters and tables, with the reserved ones by name.
//!
//! Values are those of OpenFlow 1.3 (32 bits); a version with narrower numbers translates in its codec.

/// A port number of one switch (OpenFlow 1.3.5 §7.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PortNo(pub u32);

impl PortNo {
    /// The largest number of an ordinary port (`OFPP_MAX`).
    pub const MAX: PortNo = PortNo(0xffff_ff00);
    /// Back out of the ingress port.
    pub const IN_PORT: PortNo = PortNo(0xffff_fff8);
    /// Through the tables; only in a packet-out.
    pub const TABLE: PortNo = PortNo(0xffff_fff9);
    /// MAC learning and forwarding.
    pub const NORMAL: PortNo = PortNo(0xffff_fffa);
    /// Every port but the ingress and those with [`crate::PortConfig::NO_FLOOD`] (1.0) or blocked.
    pub const FLOOD: PortNo = PortNo(0xffff_fffb);
    /// Every port but the ingress.
    pub const ALL: PortNo = PortNo(0xffff_fffc);
    /// The controller.
    pub const CONTROLLER: PortNo = PortNo(0xffff_fffd);
    /// The switch's own port.
    pub const LOCAL: PortNo = PortNo(0xffff_fffe);
    /// No port in particular: "any" in filters, "none" in packet-outs.
    pub const ANY: PortNo = PortNo(0xffff_ffff);

    /// Whether the number may belong to a port of the switch other than the reserved ones: 1..=`OFPP_MAX`.
    pub fn is_ordinary(self) -> bool {
        self.0 != 0 && self <= Self::MAX
    }
}

/// A group's number (OpenFlow 1.3.5 §7.3.4.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The largest number of a real group (`OFPG_MAX`).
    pub const MAX: GroupId = GroupId(0xffff_ff00);
    /// Every group, in deletions and statistics requests.
    pub const ALL: GroupId = GroupId(0xffff_fffc);
    /// No group in particular.
    pub const ANY: GroupId = GroupId(0xffff_ffff);
}

/// A meter's number (OpenFlow 1.3.5 §7.3.4.4); meters start at 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MeterId(pub u32);

impl MeterId {
    /// The largest number of a real meter (`OFPM_MAX`).
    pub const MAX: MeterId = MeterId(0xffff_0000);
    /// The meter of the slow path.
    pub const SLOWPATH: MeterId = MeterId(0xffff_fffd);
    /// The meter of the controller connection.
    pub const CONTROLLER: MeterId = MeterId(0xffff_fffe);
    /// Every meter, in deletions and statistics requests.
    pub const ALL: MeterId = MeterId(0xffff_ffff);
}

/// A flow table's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TableId(pub u8);

impl TableId {
    /// The largest number of a real table (`OFPTT_MAX`).
    pub const MAX: TableId = TableId(0xfe);
    /// Every table, in deletions and statistics requests.
    pub const ALL: TableId = TableId(0xff);
}

/// `max_len` of an output to the controller that asks for the whole packet (`OFPCML_NO_BUFFER`).
pub const WHOLE_PACKET: u16 = 0xffff;

/// `OFP_NO_BUFFER`, which values here express as `None`.
pub(crate) const NO_BUFFER: u32 = 0xffff_ffff;
