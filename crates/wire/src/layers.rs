//! Where the headers of a parsed frame begin.

/// Offsets into a [`crate::Head`], from its first byte; 0 means "not there" (only Ethernet is at 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layers {
    /// First byte after the Ethernet type that ends the tags: the network header, the first MPLS shim or the PBB I-TAG.
    pub l3: u16,
    /// VLAN tags at offset 12.
    pub vlans: u8,
    /// MPLS shims parsed at `l3`.
    pub labels: u8,
    /// The IPv4 or IPv6 header (= `l3` unless MPLS shims precede it, 0 if there is none or it is not known).
    pub ip: u16,
    /// The transport or ICMP header; 0 for later fragments and truncated heads.
    pub l4: u16,
    /// First byte after the last header parsed (transport, ARP, or IP when nothing known follows); 0 if the head ends before or
    /// there is no such header.
    pub payload: u16,
}

impl Layers {
    /// Follows a header that was inserted (or, below 0, removed) before `l3`; what is not there stays so.
    pub(crate) fn move_by(&mut self, bytes: i16) {
        for offset in [&mut self.l3, &mut self.ip, &mut self.l4, &mut self.payload] {
            if *offset != 0 {
                *offset = offset.wrapping_add_signed(bytes);
            }
        }
    }
}
