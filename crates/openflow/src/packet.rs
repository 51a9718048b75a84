//! Packets between switch and controller (OpenFlow 1.3.5 §7.3.7, §7.4.1).

use crate::action::Action;
use crate::ids::{PortNo, TableId};
use crate::matching::Match;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Why a packet goes to the controller.
    PacketInReason: u8 {
        /// A table-miss entry sent it.
        NoMatch = 0,
        /// An action sent it.
        Action = 1,
        /// Its TTL ran out.
        InvalidTtl = 2,
    }
}

/// A packet for the controller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PacketIn {
    /// Where the switch keeps the whole packet, if it does.
    pub buffer_id: Option<u32>,
    /// Length of the whole frame.
    pub total_len: u16,
    /// Why it comes.
    pub reason: PacketInReason,
    /// Table of the entry that sent it.
    pub table: TableId,
    /// Cookie of the entry that sent it; `u64::MAX` = none.
    pub cookie: u64,
    /// Pipeline fields: ingress port, metadata, tunnel id.
    pub fields: Match,
    /// The frame's first bytes.
    pub data: Vec<u8>,
}

/// A packet to send.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PacketOut {
    /// A packet that the switch keeps, instead of `data`.
    pub buffer_id: Option<u32>,
    /// Ingress port to assume, or [`PortNo::CONTROLLER`].
    pub in_port: PortNo,
    /// What to do with it.
    pub actions: Vec<Action>,
    /// The frame; empty when `buffer_id` names one.
    pub data: Vec<u8>,
}
