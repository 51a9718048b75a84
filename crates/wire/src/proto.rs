//! Numbers that name protocols on the wire (IANA and IEEE registries).

/// Ethernet types.
pub mod eth_type {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Customer VLAN tag, IEEE 802.1Q.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// MPLS, downstream-assigned label.
    pub const MPLS: u16 = 0x8847;
    /// MPLS, upstream-assigned label ("multicast").
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    /// Service VLAN tag, IEEE 802.1ad.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// Provider backbone bridging, the I-TAG.
    pub const PBB: u16 = 0x88e7;
    /// The smallest Ethernet type; anything below is the length of an IEEE 802.3 frame.
    pub const MIN: u16 = 0x0600;
    /// What OpenFlow shows for an 802.3 frame without SNAP (`OFP_DL_TYPE_NOT_ETH_TYPE`, OpenFlow 1.0 §5.2.3).
    pub const NOT_A_TYPE: u16 = 0x05ff;

    /// Whether the type announces a VLAN tag.
    pub const fn is_vlan(eth_type: u16) -> bool {
        matches!(eth_type, VLAN | SERVICE_VLAN)
    }

    /// Whether the type announces an MPLS shim.
    pub const fn is_mpls(eth_type: u16) -> bool {
        matches!(eth_type, MPLS | MPLS_UPSTREAM)
    }

    /// Whether the type announces an IP header.
    pub const fn is_ip(eth_type: u16) -> bool {
        matches!(eth_type, IPV4 | IPV6)
    }
}

/// IP protocol and IPv6 next-header numbers.
pub mod ip_proto {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IPv4 inside IP.
    pub const IPV4: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 inside IP.
    pub const IPV6: u8 = 41;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// GRE.
    pub const GRE: u8 = 47;
    /// Encapsulating security payload.
    pub const ESP: u8 = 50;
    /// Authentication header.
    pub const AUTH: u8 = 51;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// No next header.
    pub const NO_NEXT: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION: u8 = 60;
    /// SCTP.
    pub const SCTP: u8 = 132;
}
