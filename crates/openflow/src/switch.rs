//! A connection's set-up and a switch's own properties (OpenFlow 1.3.5 §7.3.1 to §7.3.3, §7.3.9, §7.3.10, §7.5).

use crate::ids::TableId;
use crate::port::PortDesc;
use crate::version::VersionSet;
use crate::wire_enum::wire_enum;

/// The first message on a connection. Its header's version is the sender's newest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Hello {
    /// The version bitmap, if the sender gave one.
    pub versions: Option<VersionSet>,
}

/// A message of an experimenter (1.0: vendor).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Experimenter {
    /// Who defined it.
    pub experimenter: u32,
    /// Its number there.
    pub exp_type: u32,
    /// What follows.
    pub body: Vec<u8>,
}

bitflags::bitflags! {
    /// `OFPC_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Capabilities: u32 {
        /// Flow statistics.
        const FLOW_STATS = 1;
        /// Table statistics.
        const TABLE_STATS = 2;
        /// Port statistics.
        const PORT_STATS = 4;
        /// Group statistics (1.0: spanning tree).
        const GROUP_STATS = 8;
        /// Can reassemble fragments.
        const IP_REASM = 32;
        /// Queue statistics.
        const QUEUE_STATS = 64;
        /// 1.0 only: matches IP addresses in ARP.
        const ARP_MATCH_IP = 128;
        /// Blocks looping ports.
        const PORT_BLOCKED = 256;
    }
}

/// What the switch is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Features {
    /// Its datapath id.
    pub datapath_id: u64,
    /// Packets that it can buffer.
    pub buffers: u32,
    /// Its tables.
    pub tables: u8,
    /// 0 on the main connection.
    pub auxiliary_id: u8,
    /// What it can do.
    pub capabilities: Capabilities,
    /// 1.0 only: bit per supported action. (1.3 has a reserved word here, which is kept.)
    pub actions: u32,
    /// 1.0 only: its ports. From 1.3 on they come by multipart, and this list is neither encoded nor decoded.
    pub ports: Vec<PortDesc>,
}

wire_enum! {
    /// What the switch does with IP fragments (`OFPC_FRAG_*`).
    FragmentMode: u16 {
        /// No special handling; ports of fragments match as 0.
        Normal = 0,
        /// Drop them.
        Drop = 1,
        /// Reassemble them first.
        Reassemble = 2,
    }
}

/// A switch's configuration by OpenFlow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwitchConfig {
    /// Fragments.
    pub fragments: FragmentMode,
    /// Most bytes of a packet-in that no action's `max_len` governs.
    pub miss_send_len: u16,
}

wire_enum! {
    /// A controller's role.
    Role: u32 {
        /// Asks for the role without changing it.
        NoChange = 0,
        /// Full access.
        Equal = 1,
        /// Full access, alone.
        Master = 2,
        /// Read-only.
        Slave = 3,
    }
}

/// A request for a role, and its answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RoleMsg {
    /// The role.
    pub role: Role,
    /// Orders the elections of masters.
    pub generation_id: u64,
}

/// Which events a connection is sent. Index 0: as equal or master, 1: as slave. Bit n = reason number n.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AsyncConfig {
    /// By [`crate::PacketInReason`].
    pub packet_in: [u32; 2],
    /// By [`crate::PortReason`].
    pub port_status: [u32; 2],
    /// By [`crate::FlowRemovedReason`].
    pub flow_removed: [u32; 2],
}

impl Default for AsyncConfig {
    /// The initial configuration that §6.3.6 recommends: everything to masters and equals but not "invalid TTL"
    /// packet-ins; to slaves only port status.
    fn default() -> Self {
        Self { packet_in: [0b011, 0], port_status: [0b111, 0b111], flow_removed: [0b1111, 0] }
    }
}

/// A change of a table's configuration; 1.3 has no effective bit (`config` is deprecated there, 0..=3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableMod {
    /// The table, or [`TableId::ALL`].
    pub table: TableId,
    /// `OFPTC_*`.
    pub config: u32,
}
