//! Actions and instructions as the tables hold them, in suiro's own terms (OpenFlow 1.3.5 §5.9, §5.12).
//!
//! The OpenFlow agent translates protocol values to these and back, so that nothing here knows a protocol version.

use wire::Field;

/// A port number local to one switch; the reserved ones are [`Output`] variants.
pub type PortNo = u32;

/// Where an output action sends a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// A port of this switch. Sending to the ingress port this way drops with [`wire::DropReason::NoDestination`].
    Port(PortNo),
    /// Back out of the ingress port (`OFPP_IN_PORT`).
    InPort,
    /// Every port but the ingress (`OFPP_ALL`).
    All,
    /// Every port but the ingress and those with `OFPPC_NO_FLOOD` (`OFPP_FLOOD`).
    Flood,
    /// MAC learning and forwarding (`OFPP_NORMAL`).
    Normal,
    /// To the controller, at most `max_len` bytes (0xffff: all of them).
    Controller {
        /// Most bytes to send.
        max_len: u16,
    },
    /// Through the tables from the start; only in a packet-out (`OFPP_TABLE`).
    Table,
    /// The switch's local port (`OFPP_LOCAL`), if it has one.
    Local,
}

/// One action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Send a copy as the packet is now.
    Output(Output),
    /// Process through a group.
    Group(u32),
    /// Queue for later outputs.
    SetQueue(u32),
    /// Push an outer VLAN tag of this Ethernet type (0x8100 or 0x88a8).
    PushVlan(u16),
    /// Push a tag of type 0x8100 onto a packet that has none (1.0's set_vlan_vid and set_vlan_pcp).
    EnsureVlan,
    /// Pop the outer VLAN tag.
    PopVlan,
    /// Push an MPLS shim of this Ethernet type (0x8847 or 0x8848).
    PushMpls(u16),
    /// Pop the first MPLS shim; the frame's type becomes this.
    PopMpls(u16),
    /// Push a PBB I-TAG (0x88e7).
    PushPbb(u16),
    /// Pop the I-TAG.
    PopPbb,
    /// Replace the bits of `mask` of a field.
    SetField {
        /// The field.
        field: Field,
        /// New value, right-aligned.
        value: u128,
        /// Bits to replace ([`Field::full`] for all).
        mask: u128,
    },
    /// Copy TTL outwards (MPLS ← next inner header).
    CopyTtlOut,
    /// Copy TTL inwards.
    CopyTtlIn,
    /// Set the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrement the MPLS TTL; at 0 the packet is dropped.
    DecMplsTtl,
    /// Set the IPv4 TTL or IPv6 hop limit.
    SetNwTtl(u8),
    /// Decrement it; at 0 the packet is dropped or sent to the controller.
    DecNwTtl,
}

/// A flow entry's instructions, at most one of each kind, in their order of execution (OpenFlow 1.3.5 §5.9).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Instructions {
    /// Meter to pass first.
    pub meter: Option<u32>,
    /// Actions to apply at once.
    pub apply: Vec<Action>,
    /// Clear the action set.
    pub clear: bool,
    /// Actions to merge into the action set.
    pub write: Vec<Action>,
    /// Metadata bits to write: value, mask.
    pub metadata: Option<(u64, u64)>,
    /// Next table, always a later one.
    pub goto: Option<u8>,
}
