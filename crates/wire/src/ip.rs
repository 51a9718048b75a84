//! One IP packet as checksums and segmentation see it: addresses, protocol, extent.

use crate::checksum::sum;
use crate::parse::{chain, chunk, ipv4_header_len};
use crate::{Gso, ip_proto};

/// An IP header of either version, with what lies between it and the transport.
pub(crate) struct IpPacket {
    /// 4 or 6.
    pub version: u8,
    /// Offset of the IP header.
    pub at: usize,
    /// The transport's protocol number.
    pub proto: u8,
    /// Offset of the transport header; `None` when the head ends before.
    pub l4: Option<usize>,
    /// Where the packet ends by its own account; may lie past the frame. `None` for a jumbogram.
    pub end: Option<usize>,
    /// Whether it is a fragment, first or later.
    pub is_fragment: bool,
    /// The sum of both addresses, which every pseudo-header begins with; `None` when a routing header hides the last destination.
    pub addresses: Option<u64>,
}

/// The IP packet at `at`, whichever version its first nibble says.
pub(crate) fn packet(bytes: &[u8], at: usize) -> Option<IpPacket> {
    match bytes.get(at)? >> 4 {
        4 => packet_v4(bytes, at),
        6 => packet_v6(bytes, at),
        _ => None,
    }
}

fn packet_v4(bytes: &[u8], at: usize) -> Option<IpPacket> {
    let len = ipv4_header_len(bytes.get(at..)?)?;
    let header: &[u8; 20] = chunk(bytes, at)?;
    Some(IpPacket {
        version: 4,
        at,
        proto: header[9],
        l4: Some(at + len),
        end: Some(at + usize::from(u16::from_be_bytes([header[2], header[3]]))),
        is_fragment: u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0,
        addresses: Some(sum(&header[12..])),
    })
}

fn packet_v6(bytes: &[u8], at: usize) -> Option<IpPacket> {
    let header: &[u8; 40] = chunk(bytes, at)?;
    let chain = chain(bytes, at)?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let is_jumbo = payload == 0 && header[6] == ip_proto::HOP_BY_HOP;
    Some(IpPacket {
        version: 6,
        at,
        proto: chain.proto,
        l4: chain.upper,
        end: (!is_jumbo).then_some(at + 40 + payload),
        is_fragment: chain.frag != 0,
        addresses: (!chain.routed).then(|| sum(&header[8..])),
    })
}

impl IpPacket {
    /// Whether a large frame of kind `gso` may carry this packet.
    pub fn carries(&self, gso: Gso) -> bool {
        let kind = match gso {
            Gso::None => false,
            Gso::TcpV4 => self.version == 4 && self.proto == ip_proto::TCP,
            Gso::TcpV6 => self.version == 6 && self.proto == ip_proto::TCP,
            Gso::Udp => self.proto == ip_proto::UDP,
        };
        kind && !self.is_fragment
    }
}

/// Where a transport keeps its 16-bit checksum, from its header's first byte.
pub(crate) const fn checksum_offset(proto: u8) -> Option<u16> {
    match proto {
        ip_proto::TCP => Some(16),
        ip_proto::UDP => Some(6),
        ip_proto::ICMP | ip_proto::ICMPV6 => Some(2),
        _ => None,
    }
}
