//! Ports (OpenFlow 1.3.5 §7.2.1, §7.3.4.5, §7.3.5.7, §7.4.3) and queues (§7.2.2, §7.3.6).

use crate::fixed_text::PortName;
use crate::ids::PortNo;
use crate::wire_enum::wire_enum;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::fmt::Debug for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

bitflags::bitflags! {
    /// `OFPPC_*`, with the bits of 1.0 that 1.3 left out at their old places.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct PortConfig: u32 {
        /// Administratively down.
        const PORT_DOWN = 1;
        /// 1.0 only: no spanning tree.
        const NO_STP = 2;
        /// Drop what arrives.
        const NO_RECV = 4;
        /// 1.0 only: drop spanning tree frames that arrive.
        const NO_RECV_STP = 8;
        /// 1.0 only: not part of a flood.
        const NO_FLOOD = 16;
        /// Drop what is sent.
        const NO_FWD = 32;
        /// No packet-in for what arrives without a match.
        const NO_PACKET_IN = 64;
    }
}

bitflags::bitflags! {
    /// `OFPPS_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct PortState: u32 {
        /// No carrier.
        const LINK_DOWN = 1;
        /// Blocked by a protocol of the switch.
        const BLOCKED = 2;
        /// Live for fast failover.
        const LIVE = 4;
    }
}

bitflags::bitflags! {
    /// `OFPPF_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct PortFeatures: u32 {
        /// 10 Mbit/s half duplex.
        const HD_10MB = 1;
        /// 10 Mbit/s full duplex.
        const FD_10MB = 1 << 1;
        /// 100 Mbit/s half duplex.
        const HD_100MB = 1 << 2;
        /// 100 Mbit/s full duplex.
        const FD_100MB = 1 << 3;
        /// 1 Gbit/s half duplex.
        const HD_1GB = 1 << 4;
        /// 1 Gbit/s full duplex.
        const FD_1GB = 1 << 5;
        /// 10 Gbit/s.
        const FD_10GB = 1 << 6;
        /// 40 Gbit/s.
        const FD_40GB = 1 << 7;
        /// 100 Gbit/s.
        const FD_100GB = 1 << 8;
        /// 1 Tbit/s.
        const FD_1TB = 1 << 9;
        /// A rate that is not in this list.
        const OTHER = 1 << 10;
        /// Copper.
        const COPPER = 1 << 11;
        /// Fibre.
        const FIBER = 1 << 12;
        /// Auto-negotiation.
        const AUTONEG = 1 << 13;
        /// Pause.
        const PAUSE = 1 << 14;
        /// Asymmetric pause.
        const PAUSE_ASYM = 1 << 15;
    }
}

/// A port as the switch describes it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortDesc {
    /// Its number.
    pub number: PortNo,
    /// Its MAC address.
    pub hw_addr: Mac,
    /// Its name.
    pub name: PortName,
    /// What is configured.
    pub config: PortConfig,
    /// What is observed.
    pub state: PortState,
    /// Features now.
    pub current: PortFeatures,
    /// Features that it advertises.
    pub advertised: PortFeatures,
    /// Features that it supports.
    pub supported: PortFeatures,
    /// Features that its peer advertises.
    pub peer: PortFeatures,
    /// Bit rate now, kbit/s.
    pub current_speed_kbps: u32,
    /// Highest bit rate, kbit/s.
    pub max_speed_kbps: u32,
}

wire_enum! {
    /// What happened to a port.
    PortReason: u8 {
        /// It is new.
        Add = 0,
        /// It is gone.
        Delete = 1,
        /// Something about it changed.
        Modify = 2,
    }
}

/// News of a port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PortStatus {
    /// What happened.
    pub reason: PortReason,
    /// The port.
    pub port: PortDesc,
}

/// A change of a port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PortMod {
    /// The port.
    pub number: PortNo,
    /// Its MAC address, which must be right.
    pub hw_addr: Mac,
    /// New configuration bits.
    pub config: PortConfig,
    /// Which bits to change.
    pub mask: PortConfig,
    /// Features to advertise; empty = no change.
    pub advertise: PortFeatures,
}

/// A port's counters; `u64::MAX` = not counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(
    missing_docs,
    reason = "the counters have the names of §7.3.5.7, which says what they count"
)]
pub struct PortStats {
    pub number: PortNo,
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_frame_err: u64,
    pub rx_over_err: u64,
    pub rx_crc_err: u64,
    pub collisions: u64,
    pub duration_s: u32,
    pub duration_ns: u32,
}

/// Every queue, in requests (`OFPQ_ALL`).
pub const ALL_QUEUES: u32 = 0xffff_ffff;

/// A property of a queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum QueueProperty {
    /// Guaranteed rate in 1/10 of a percent of the port's; above 1000 = none.
    MinRate(u16),
    /// Highest rate in 1/10 of a percent of the port's; above 1000 = none.
    MaxRate(u16),
    /// An experimenter's property.
    Experimenter {
        /// Who defined it.
        experimenter: u32,
        /// What follows the experimenter id and its padding; the wire pads it to a length of 8n.
        body: Vec<u8>,
    },
}

/// A queue of a port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Queue {
    /// Its number.
    pub id: u32,
    /// Its port.
    pub port: PortNo,
    /// Its properties.
    pub properties: Vec<QueueProperty>,
}

/// The queues of a port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QueueConfig {
    /// The port that was asked for.
    pub port: PortNo,
    /// Its queues.
    pub queues: Vec<Queue>,
}

/// A queue's counters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(
    missing_docs,
    reason = "the counters have the names of §7.3.5.8, which says what they count"
)]
pub struct QueueStats {
    pub port: PortNo,
    pub queue: u32,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    pub duration_s: u32,
    pub duration_ns: u32,
}
