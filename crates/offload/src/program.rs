//! One exact flow's way through a switch, as constants: the form that any rung can run.

use crate::headers::Outside;
use arrayvec::ArrayVec;
use flow::{Credits, PortAt, Stamp};
use wire::{Field, Key, WORDS, eth_type};

/// Most limits on one flow's way: bands of its meter.
pub const MAX_LIMITS: usize = 4;

/// Most greatest rates on one flow's way: its queue's and its exit's.
pub const MAX_SHAPES: usize = 2;

/// Most edits of one program.
pub const MAX_EDITS: usize = 16;

/// Bits by which every rung tells flows apart: a frame that differs from `key` in one of them is no frame of its flow.
///
/// They are where it came in, both Ethernet addresses, tag, types, DSCP, addresses, and ports or ICMP type and code. Not among
/// them is what differs from frame to frame of one flow: ECN, TCP flags, the IPv6 flow label. A table that asks for those
/// keeps the flow on the worker.
pub fn told_apart(key: &Key) -> Key {
    const ALWAYS: [Field; 11] = [
        Field::InPort,
        Field::EthDst,
        Field::EthSrc,
        Field::EthType,
        Field::VlanVid,
        Field::VlanPcp,
        Field::IpProto,
        Field::IpDscp,
        Field::IpFrag,
        Field::TpSrc,
        Field::TpDst,
    ];
    let addresses = match key.get(Field::EthType) as u16 {
        eth_type::IPV6 => [Field::Ipv6Src, Field::Ipv6Dst],
        _ => [Field::Ipv4Src, Field::Ipv4Dst],
    };
    let mut bits = Key::default();
    ALWAYS.iter().chain(&addresses).for_each(|&field| bits.set(field, field.full()));
    bits
}

/// Bits that are known of every frame of the flow of `key`: what tells flows apart, and what rungs take only if it is 0.
///
/// [`flow::Snapshot::resolve`] is asked with these.
pub fn known(key: &Key) -> Key {
    let mut known = Key([u64::MAX; WORDS]);
    let varies = [Field::IpEcn, Field::TcpFlags];
    varies.iter().for_each(|&field| known.set(field, 0));
    if key.get(Field::EthType) as u16 == eth_type::IPV6 {
        known.set(Field::Ipv6Flabel, 0);
    }
    known
}

/// One exact flow's way through a switch.
///
/// The flow is IPv4 without options or IPv6 without extension headers, no fragment, with at most one tag, of type 0x8100 and with
/// its drop bit clear. A rung leaves every other frame to the worker, and every frame that is longer than [`FlowProgram::max_len`],
/// or whose TTL is below 2 where [`Patch::dec_ttl`](crate::Patch) is set.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowProgram {
    /// Where its frames come in.
    pub from: PortAt,
    /// Its bits, [`told_apart`] all others; `in_port` is `from.port`.
    pub key: Key,
    /// In order: pops, sets, TTL, pushes. A field is set once.
    pub edits: ArrayVec<Edit, MAX_EDITS>,
    /// Where they leave.
    pub exit: PortAt,
    /// Longest frame that the exit takes, as it comes in: bytes of the frame, or of each segment of a large one, with all headers.
    pub max_len: u32,
    /// Limits that it passes, all of the same meter: each takes for itself, and one that refuses is enough. The first that does is the one that decides.
    pub limits: ArrayVec<LimitId, MAX_LIMITS>,
    /// The queue that they leave by; 0: none.
    pub queue: u32,
    /// Greatest rates of that queue and of the exit. A frame for which one of them has nothing left waits, which it can only on the worker.
    pub shapes: ArrayVec<LimitId, MAX_SHAPES>,
    /// What a frame adds to, beside the ports that it comes and leaves by.
    pub credits: Credits,
    /// Bytes that edits add.
    pub growth: i16,
    /// Until when it holds.
    pub stamp: Stamp,
    /// Of a flow that leaves by a tunnel: what is put around its frames, and the rest of their way, to `exit`. `credits`, `growth` and `stamp` are
    /// those of its own switch.
    pub underlay: Option<Box<Underlay>>,
    /// Of a flow that comes by a tunnel: what is around its frames, and how they came to `from`, the tunnel's port. Then it leaves by none.
    pub approach: Option<Box<Approach>>,
}

impl FlowProgram {
    /// Whether it does the same to the same frames, and they count for the same.
    pub fn does_what(&self, other: &Self) -> bool {
        let way = |of: &Self| (of.from, of.key, of.exit, of.max_len, of.queue);
        way(self) == way(other)
            && self.edits == other.edits
            && self.limits == other.limits
            && self.shapes == other.shapes
            && self.credits.is_same(&other.credits)
            && match (&self.underlay, &other.underlay) {
                (None, None) => true,
                (Some(one), Some(other)) => one.does_what(other),
                _ => false,
            }
            && match (&self.approach, &other.approach) {
                (None, None) => true,
                (Some(one), Some(other)) => one.does_what(other),
                _ => false,
            }
    }
}

/// The rest of the way of a flow that leaves by a tunnel.
#[derive(Clone, PartialEq, Debug)]
pub struct Underlay {
    /// What is put around its frames, as they leave the host.
    pub outside: Outside,
    /// The same as the underlay's switch gets it.
    pub plain: Outside,
    /// The tunnel's port.
    pub tunnel: PortAt,
    /// The queue that its frames leave by there; 0: none.
    pub queue: u32,
    /// Where the packets come in at the underlay's switch.
    pub from: PortAt,
    /// What a packet adds to there.
    pub credits: Credits,
    /// Bytes that edits there add.
    pub growth: i16,
    /// Until when that holds.
    pub stamp: Stamp,
}

/// The way of a flow that comes by a tunnel, up to its own switch.
#[derive(Clone, PartialEq, Debug)]
pub struct Approach {
    /// Where its packets come in at the underlay's switch: what is said of the program's frames is said of what is in those.
    pub from: PortAt,
    /// Their bits, [`told_apart`] all others; VXLAN over IPv4.
    pub key: Key,
    /// The tunnel's identifier in them.
    pub vni: u32,
    /// Where they leave that switch: the port of the host's own address.
    pub door: PortAt,
    /// The queue that they leave by there; 0: none.
    pub queue: u32,
    /// What a packet adds to there.
    pub credits: Credits,
    /// Bytes that edits there add: a tag is taken off.
    pub growth: i16,
    /// Until when that holds.
    pub stamp: Stamp,
}

/// One edit of a frame, its value known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Edit {
    /// Takes the tag off.
    PopVlan,
    /// Puts a value in a field's place.
    Set {
        /// The field.
        field: Field,
        /// What every frame of the flow has there.
        old: u128,
        /// What it gets.
        new: u128,
    },
    /// TTL or hop limit less 1, 2 or more before.
    DecTtl,
    /// Puts a tag on.
    PushVlan {
        /// Its type.
        tpid: u16,
        /// Priority, drop bit, VLAN id.
        tci: u16,
    },
}

/// A limit's place in the array of words that worker and rungs share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LimitId(pub u32);
