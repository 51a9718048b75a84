//! What a rung does to a frame's bytes.

/// Bytes of a head that a patch may change: Ethernet, IPv6, ports, rounded up.
pub const PATCHED: usize = 64;

/// What a rung does to a frame's bytes, as constants.
///
/// Places are those of the frame *without its tag*: addresses at 0, type at 12, the network header at 14. The order is: tag off, bytes and
/// sums, TTL, tag on. Sums are one's complement sums of 16-bit words, in host order, to be added to the sum that a checksum
/// stands for (RFC 1624): `checksum' = !(!checksum + sum)`, carries folded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Patch {
    /// Bits that stay.
    pub keep: [u8; PATCHED],
    /// Bits that replace the others: `head[i] & keep[i] | put[i]`.
    pub put: [u8; PATCHED],
    /// What the changed bytes add to the IPv4 header's sum; the TTL not included.
    pub ip_sum: u16,
    /// What changed addresses add to the pseudo-header's sum: to a partial checksum and to a complete one of TCP, UDP, ICMPv6.
    pub pseudo_sum: u16,
    /// What changed ports add to the transport's sum: to a complete checksum only.
    pub ports_sum: u16,
    /// Whether the TTL or hop limit is decremented. The IPv4 header's sum then loses 0x0100.
    pub dec_ttl: bool,
    /// Whether the tag is taken off.
    pub pop: bool,
    /// The tag that is put on.
    pub push: Option<Tag>,
}

/// A VLAN tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag {
    /// Its type.
    pub tpid: u16,
    /// Priority, drop bit, VLAN id.
    pub tci: u16,
}

impl Patch {
    /// Changes nothing.
    pub const NOTHING: Self = Self {
        keep: [0xff; PATCHED],
        put: [0; PATCHED],
        ip_sum: 0,
        pseudo_sum: 0,
        ports_sum: 0,
        dec_ttl: false,
        pop: false,
        push: None,
    };
}
