//! Headers as values.

/// An Ethernet frame. What its headers say of what follows is derived, unless a set-field made it say otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Destination, 48 bits.
    pub dst: u64,
    /// Source, 48 bits.
    pub src: u64,
    /// VLAN tags, outermost first.
    pub tags: Vec<Tag>,
    /// Ethernet type of the shims.
    pub mpls_type: u16,
    /// MPLS shims, outermost first.
    pub shims: Vec<Shim>,
    /// What follows.
    pub payload: Payload,
    /// The Ethernet type, if it is not that of the first shim or the payload.
    pub named: Option<u16>,
}

/// A VLAN tag (IEEE 802.1Q §9.6), its drop-eligible bit 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// 0x8100 or 0x88a8.
    pub tpid: u16,
    /// Priority.
    pub pcp: u8,
    /// Id.
    pub vid: u16,
}

/// An MPLS shim (RFC 3032).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shim {
    /// Label.
    pub label: u32,
    /// Traffic class.
    pub tc: u8,
    /// Bottom of stack.
    pub bottom: bool,
    /// TTL.
    pub ttl: u8,
}

/// What follows tags and shims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// IPv4 or IPv6.
    Ip(Ip),
    /// ARP for IPv4 on Ethernet.
    Arp(Arp),
    /// A customer's frame behind an I-TAG.
    Pbb(Pbb),
}

/// A PBB I-TAG (IEEE 802.1Q §9.7) and the customer's frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pbb {
    /// Priority.
    pub pcp: u8,
    /// Service instance.
    pub isid: u32,
    /// The customer's frame.
    pub customer: Box<Frame>,
}

/// ARP (RFC 826).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arp {
    pub op: u16,
    pub sha: u64,
    pub spa: u32,
    pub tha: u64,
    pub tpa: u32,
}

/// IPv4 (RFC 791) or IPv6 (RFC 8200).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ip {
    /// 4 or 6.
    pub version: u8,
    /// DSCP.
    pub dscp: u8,
    /// ECN.
    pub ecn: u8,
    /// Flow label, IPv6 only.
    pub flow_label: u32,
    /// Offset in units of 8 bytes, and whether more fragments follow; `None` = not a fragment.
    pub fragment: Option<(u16, bool)>,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Source.
    pub src: u128,
    /// Destination.
    pub dst: u128,
    /// IPv4 options, a multiple of 4 bytes.
    pub options: Vec<u8>,
    /// IPv6 extension headers.
    pub extensions: Vec<Extension>,
    /// What is carried.
    pub transport: Transport,
    /// The protocol, if it is not that of the transport.
    pub named: Option<u8>,
}

/// An IPv6 extension header with a length byte: its number, and its bytes after next header and length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extension(pub u8, pub Vec<u8>);

/// What IP carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transport {
    /// RFC 9293.
    Tcp(Tcp),
    /// RFC 768: source, destination, whether there is a checksum.
    Udp(u16, u16, bool),
    /// RFC 9260: source, destination.
    Sctp(u16, u16),
    /// RFC 792.
    Icmpv4(Icmp),
    /// RFC 4443.
    Icmpv6(Icmp),
    /// RFC 4861.
    Nd(Nd),
    /// IP in IP (RFC 2003, RFC 2473).
    Ip(Box<Ip>),
    /// A later fragment's bytes of this protocol.
    Rest(u8),
}

/// TCP ports and flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tcp {
    pub src: u16,
    pub dst: u16,
    pub flags: u16,
}

/// ICMP or ICMPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Icmp {
    pub kind: u8,
    pub code: u8,
}

/// A neighbour solicitation or advertisement with one link-layer address option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nd {
    /// Type and code.
    pub icmp: Icmp,
    /// Target.
    pub target: u128,
    /// 1 = source's address, 2 = target's.
    pub option: u8,
    /// The address.
    pub address: u64,
}

impl Payload {
    /// Its Ethernet type.
    pub fn eth_type(&self) -> u16 {
        match self {
            Self::Ip(ip) if ip.version == 4 => 0x0800,
            Self::Ip(_) => 0x86dd,
            Self::Arp(_) => 0x0806,
            Self::Pbb(_) => 0x88e7,
        }
    }
}

impl Transport {
    /// Its protocol number.
    pub fn proto(&self) -> u8 {
        match self {
            Self::Tcp(_) => 6,
            Self::Udp(..) => 17,
            Self::Sctp(..) => 132,
            Self::Icmpv4(_) => 1,
            Self::Icmpv6(_) | Self::Nd(_) => 58,
            Self::Ip(ip) if ip.version == 4 => 4,
            Self::Ip(_) => 41,
            Self::Rest(proto) => *proto,
        }
    }
}

impl Ip {
    /// The protocol that the header says.
    pub fn proto(&self) -> u8 {
        self.named.unwrap_or(self.transport.proto())
    }
}

impl Frame {
    /// The type after the tags.
    pub fn eth_type(&self) -> u16 {
        let own = if self.shims.is_empty() { self.payload.eth_type() } else { self.mpls_type };
        self.named.unwrap_or(own)
    }

    /// The IP packet, if OpenFlow sees one: not below shims or an I-TAG.
    pub fn ip(&mut self) -> Option<&mut Ip> {
        match &mut self.payload {
            Payload::Ip(ip) if self.shims.is_empty() => Some(ip),
            _ => None,
        }
    }
}
