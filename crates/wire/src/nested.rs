//! Which packet lies inside which: tags, shims and I-TAGs before an IP header, and a guest's own tunnels behind it.
//!
//! A tunnel is known by what it carries, not by its UDP port: guests choose ports as they like. What is taken for a packet inside must end where
//! the packet around it ends, and its IPv4 header must have a right checksum. VXLAN (RFC 7348), Geneve (RFC 8926), GRE (RFC 2784, RFC 2890), IP in
//! IP (RFC 2003, RFC 4213), and IP right behind UDP.

use crate::checksum::{fold, sum};
use crate::ip::{self, IpPacket};
use crate::parse::{ITAG, chunk};
use crate::tunnel::Gre;
use crate::{eth_type, ip_proto};

/// Packets around another one that are looked through. Chosen: a tunnel in a tunnel.
pub(crate) const TUNNELS: usize = 2;

const ADDRESSES: usize = 12;
pub(crate) const UDP: usize = 8;
/// Bytes of a VXLAN header, and of a Geneve header without options.
pub(crate) const SHIM: usize = 8;
/// An Ethernet frame, as GRE and Geneve name it.
pub(crate) const ETHERNET: u16 = 0x6558;

/// Where the IP header is in the Ethernet frame that begins at `at`.
pub(crate) fn ip_in_frame(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + ADDRESSES;
    loop {
        let kind = u16::from_be_bytes(*chunk(bytes, at)?);
        at += 2;
        match kind {
            eth_type::IPV4 | eth_type::IPV6 => return Some(at),
            eth_type::VLAN | eth_type::SERVICE_VLAN => at += 2,
            eth_type::PBB => at += ITAG,
            eth_type::MPLS | eth_type::MPLS_UPSTREAM => return behind_shims(bytes, at),
            _ => return None,
        }
    }
}

/// What follows the last shim of a stack.
fn behind_shims(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let &[_, _, third, _] = chunk(bytes, at)?;
        at += 4;
        if third & 1 == 1 {
            return Some(at);
        }
    }
}

/// The packet inside `outer`, if that is a tunnel's.
pub(crate) fn inside(bytes: &[u8], outer: &IpPacket) -> Option<IpPacket> {
    let l4 = outer.l4.filter(|_| !outer.is_fragment)?;
    match outer.proto {
        ip_proto::UDP => behind_udp(bytes, outer, l4 + UDP),
        ip_proto::GRE => {
            let (gre, len) = Gre::parse(bytes.get(l4..)?)?;
            carried(bytes, outer, gre.protocol, l4 + len)
        }
        ip_proto::IPV4 | ip_proto::IPV6 => packet(bytes, outer, l4),
        _ => None,
    }
}

fn behind_udp(bytes: &[u8], outer: &IpPacket, at: usize) -> Option<IpPacket> {
    let &[options, _, kind @ ..] = chunk::<4>(bytes, at)?;
    let geneve = at + SHIM + 4 * usize::from(options & 0x3f);
    carried(bytes, outer, ETHERNET, at + SHIM)
        .or_else(|| carried(bytes, outer, u16::from_be_bytes(kind), geneve))
        .or_else(|| packet(bytes, outer, at))
}

/// The packet in what begins at `at` and is of this kind.
fn carried(bytes: &[u8], outer: &IpPacket, kind: u16, at: usize) -> Option<IpPacket> {
    match kind {
        ETHERNET => packet(bytes, outer, ip_in_frame(bytes, at)?),
        eth_type::IPV4 | eth_type::IPV6 => packet(bytes, outer, at),
        eth_type::MPLS => packet(bytes, outer, behind_shims(bytes, at)?),
        _ => None,
    }
}

fn packet(bytes: &[u8], outer: &IpPacket, at: usize) -> Option<IpPacket> {
    let packet = ip::packet(bytes, at).filter(|packet| packet.end == outer.end)?;
    let header = bytes.get(at..packet.l4?)?;
    (packet.version == 6 || fold(sum(header)) == 0xffff).then_some(packet)
}
