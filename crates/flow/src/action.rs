//! Actions and instructions as the tables hold them, in suiro's own terms (OpenFlow 1.3.5 §5.9, §5.12).
//!
//! The OpenFlow agent translates protocol values to these and back, so that nothing here knows a protocol version.

use crate::limits::{MAX_ACTIONS, units};
use wire::{Field, Key, eth_type, ip_proto};

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

/// A header behind IP, of those that share places in the key: the ports of three, the type and code of two.
///
/// OpenFlow has a field of its own for each (1.3.5 §7.2.3.7, table 12), and to set one changes no other's header (§7.2.5.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// TCP over either IP.
    Tcp,
    /// UDP over either IP.
    Udp,
    /// SCTP over either IP.
    Sctp,
    /// ICMP over IPv4.
    Icmpv4,
    /// ICMPv6 over IPv6.
    Icmpv6,
}

impl Transport {
    /// The transports that have a field in common; none for a field that belongs to one header only.
    pub const fn with(field: Field) -> &'static [Self] {
        match field {
            Field::TpSrc | Field::TpDst => &[Self::Tcp, Self::Udp, Self::Sctp],
            Field::IcmpType | Field::IcmpCode => &[Self::Icmpv4, Self::Icmpv6],
            _ => &[],
        }
    }

    /// Whether that is what the IP header says. A later fragment says so too, but has no such header.
    #[inline]
    pub fn is_named_by(self, key: &Key) -> bool {
        let over = |ip: u16| key.get(Field::EthType) == u128::from(ip);
        key.get(Field::IpProto) == u128::from(self.ip_proto())
            && match self {
                Self::Tcp | Self::Udp | Self::Sctp => true,
                Self::Icmpv4 => over(eth_type::IPV4),
                Self::Icmpv6 => over(eth_type::IPV6),
            }
    }

    pub(crate) const fn ip_proto(self) -> u8 {
        match self {
            Self::Tcp => ip_proto::TCP,
            Self::Udp => ip_proto::UDP,
            Self::Sctp => ip_proto::SCTP,
            Self::Icmpv4 => ip_proto::ICMP,
            Self::Icmpv6 => ip_proto::ICMPV6,
        }
    }
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
        /// The transport whose field it is, for a field that several have ([`Transport::with`]).
        of: Option<Transport>,
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
    /// Parts that change no packet.
    pub wording: Wording,
}

impl Instructions {
    /// What their actions take, in units of a plain entry ([`crate::Pipeline::weight`]).
    pub fn weight(&self) -> u64 {
        units((self.apply.len() + self.write.len()) as u64)
    }
}

/// Parts of instructions that change no packet, kept because statistics repeat them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Wording {
    /// `max_len` of each output but to the controller, those of `apply` first; zeros at the end are left out.
    pub max_len: Vec<u16>,
    /// There is an apply-actions instruction without actions.
    pub empty_apply: bool,
    /// There is a write-actions instruction without actions.
    pub empty_write: bool,
}

/// Why actions or instructions were refused. Each maps to one OpenFlow error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ActionError {
    /// `OFPBAC_BAD_OUT_PORT`: a number that no port can have, or the tables outside a packet-out.
    #[error("no packet can go to {0:?} from here")]
    BadOutPort(Output),
    /// `OFPBAC_BAD_ARGUMENT`: an Ethernet type that the pushed header cannot have.
    #[error("{0:?} has an impossible argument")]
    BadArgument(Action),
    /// `OFPBAC_TOO_MANY`.
    #[error("more than {MAX_ACTIONS} actions")]
    TooMany,
    /// `OFPBAC_BAD_QUEUE`.
    #[error("no packet can go to queue {0:#x}")]
    BadQueue(u32),
    /// `OFPBAC_BAD_OUT_GROUP`.
    #[error("group {0} does not exist")]
    BadOutGroup(u32),
    /// `OFPBAC_MATCH_INCONSISTENT`: neither match nor an earlier action promises the header.
    #[error("the match does not promise the header that {0:?} needs")]
    MatchInconsistent(Action),
    /// `OFPBAC_BAD_SET_TYPE`: not in the frame, or no transport has the field, or nothing says which one's it is.
    #[error("field {} cannot be set", .0.name())]
    BadSetType(Field),
    /// `OFPBAC_BAD_SET_ARGUMENT`: value or mask reach past the field, or say that there is no VLAN tag.
    #[error("field {} cannot have that value", .0.name())]
    BadSetArgument(Field),
    /// `OFPMMFC_UNKNOWN_METER`.
    #[error("meter {0} does not exist")]
    UnknownMeter(u32),
}
