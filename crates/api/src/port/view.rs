//! What is shown of a port.

use super::{FrontEndView, PortKind, PortSpec};
use crate::{DropView, Fault, IfName, Mac, Netns, Peer, PortName, PortQueueView, Rate, SwitchName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A port's counters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PortCountersView {
    /// Frames into the switch.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames out of the switch.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames offered that did not get in.
    pub rx_drops: Vec<DropView>,
    /// Frames that did not get out.
    pub tx_drops: Vec<DropView>,
}

/// Which core serves a receive queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// The queue.
    pub queue: usize,
    /// The core.
    pub core: usize,
}

/// A port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PortView {
    /// Its switch.
    pub switch: SwitchName,
    /// Its name.
    pub name: PortName,
    /// Its OpenFlow number; 4294967294 is the switch's local port.
    pub number: u32,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: PortKind,
    /// What it was asked to be, with its number; `null` from a node that does not tell.
    #[serde(default)]
    pub spec: Option<PortSpec>,
    /// Its interface.
    pub interface: Option<IfName>,
    /// The interface's network namespace.
    pub netns: Option<Netns>,
    /// The other end of a vlink.
    pub peer: Option<Peer>,
    /// Its MAC address.
    pub mac: Option<Mac>,
    /// Its MTU; 0 when it has none.
    pub mtu: u32,
    /// Whether it is wanted up.
    pub admin_up: bool,
    /// Whether its interface is up.
    pub up: bool,
    /// Whether a frame sent now would reach a peer.
    pub carrier: bool,
    /// Mbit/s; 0 when unknown.
    pub speed_mbps: u32,
    /// How frames are exchanged.
    pub mode: String,
    /// Which faster door is missing and why, and what was changed on the interface.
    pub notes: Vec<String>,
    /// `file` or `api`: who made it.
    pub origin: String,
    /// Which cores serve its receive queues.
    pub queues: Vec<QueueView>,
    /// Bit/s that leave by it in all; `null` when it takes what it can.
    pub rate: Option<Rate>,
    /// What packets wait in that leave by it, by number.
    pub queue: Vec<PortQueueView>,
    /// Its counters.
    pub counters: PortCountersView,
    /// The guest of a vhost-user port that is open.
    #[serde(default)]
    pub guest: Option<FrontEndView>,
    /// The SAs of a tunnel that is encrypted.
    #[serde(default)]
    pub sas: Vec<SaView>,
    /// Where a tunnel that is encrypted seals.
    #[serde(default)]
    pub sealing: Option<SealingView>,
    /// What suiro forwards itself of a tunnel's packets, if it was asked to.
    #[serde(default)]
    pub forwarding: Option<ForwardingView>,
    /// Why it is not open, if it is not.
    pub fault: Option<Fault>,
}

/// A security association of an encrypted tunnel (ESP).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SaView {
    /// `out` or `in`.
    pub direction: String,
    /// Its security parameters index.
    pub spi: u32,
    /// Packets sealed or opened since it came into use.
    pub packets: u64,
    /// The next sequence number to be sent, or the highest received.
    pub sequence: u64,
    /// Packets refused because they were there before, or are too old to know.
    pub replayed: u64,
    /// Packets refused because they were changed, or are of another key.
    pub bad_icv: u64,
    /// Packets refused because they were cut short or held something else.
    pub malformed: u64,
}

/// Where an encrypted tunnel seals.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SealingView {
    /// The core of a thread of its own; `null`: each packet where its frame is forwarded.
    pub core: Option<usize>,
    /// Why there.
    pub why: String,
    /// Packets that threads of its own have sealed and sent.
    pub packets: u64,
    /// Packets that they could not send, though their frames were counted as sent.
    pub lost: Vec<DropView>,
}

/// What suiro forwards itself of a tunnel's packets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ForwardingView {
    /// Packets that left past the kernel.
    pub past: u64,
    /// Packets that left through the kernel, which had to find the way, or to refuse them.
    pub through: u64,
    /// Why packets go through the kernel now, if they do.
    pub hindrance: Option<String>,
}
