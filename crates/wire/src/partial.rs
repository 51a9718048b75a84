//! A partial checksum that lost its mark.
//!
//! Linux hands frames between veth devices with checksums left to do, and XDP programs and AF_XDP sockets see the bytes without
//! the mark (`CHECKSUM_PARTIAL`). The bytes tell all the same: such a field holds the folded sum of the pseudo-header. In a guest's own tunnel it
//! is the innermost packet's that is left to do; the tunnel's UDP checksum, if it has one, is already that of the frame with the inner one done.

use crate::checksum::{fold, sum};
use crate::ip::{IpPacket, checksum_offset};
use crate::nested::{self, TUNNELS};
use crate::parse::chunk;
use crate::{Head, Layers, PartialChecksum, ip, ip_proto};

/// The checksum that a source without marks left to do, if the frame looks so: TCP or UDP whose field holds the folded
/// pseudo-header sum, or SCTP whose field is 0; behind tags, shims, I-TAGs, and in tunnels of guests.
///
/// Mistaking a complete checksum for a partial one is harmless: if it equals the pseudo-header's sum by chance, completing it
/// gives the same value again. A frame that was damaged on the way escapes the receiver's check that way once in 65536 times.
///
/// Fragments are never partial, and under a routing header the field's true destination is not known.
pub fn is_partial(head: &Head, layers: &Layers) -> Option<PartialChecksum> {
    let bytes = head.bytes();
    let at = match layers.ip {
        0 => nested::ip_in_frame(bytes, 0)?,
        at => usize::from(at),
    };
    partial(bytes, &ip::packet(bytes, at)?, TUNNELS)
}

/// The one in `packet`, which has at most `tunnels` packets inside.
fn partial(bytes: &[u8], packet: &IpPacket, tunnels: usize) -> Option<PartialChecksum> {
    let l4 = packet.l4.filter(|_| !packet.is_fragment)?;
    own(bytes, packet, l4).or_else(|| {
        let inner = nested::inside(bytes, packet).filter(|_| tunnels > 0)?;
        let partial = partial(bytes, &inner, tunnels - 1)?;
        agrees(bytes, packet, l4, partial).then_some(partial)
    })
}

/// The packet's own.
fn own(bytes: &[u8], packet: &IpPacket, l4: usize) -> Option<PartialChecksum> {
    let start = l4 as u16;
    if packet.proto == ip_proto::SCTP {
        let is_zero = chunk(bytes, l4 + usize::from(PartialChecksum::CRC_OFFSET)) == Some(&[0; 4]);
        return is_zero.then_some(PartialChecksum { start, offset: PartialChecksum::CRC_OFFSET });
    }
    let offset = match packet.proto {
        ip_proto::TCP | ip_proto::UDP => checksum_offset(packet.proto)?,
        _ => return None,
    };
    let at = l4 + usize::from(offset);
    let field = u16::from_be_bytes(*chunk(bytes, at)?);
    let is_in_packet = packet.end.is_some_and(|end| at + 2 <= end);
    let is_pseudo = field == fold(pseudo_header(packet, l4)?);
    (is_in_packet && is_pseudo).then_some(PartialChecksum { start, offset })
}

/// Whether the checksum of a packet around the one with this partial checksum is right once that is done: the headers tell, for what the inner
/// one covers will sum to the complement of what its field holds.
fn agrees(bytes: &[u8], packet: &IpPacket, l4: usize, partial: PartialChecksum) -> bool {
    let udp: Option<&[u8; 8]> = chunk(bytes, l4).filter(|_| packet.proto == ip_proto::UDP);
    if udp.is_none_or(|udp| udp[6..] == [0, 0]) {
        return true;
    }
    let start = usize::from(partial.start);
    let field = chunk(bytes, start + usize::from(partial.offset)).map(|at| u16::from_be_bytes(*at));
    let (Some(field), Some(pseudo)) = (field, pseudo_header(packet, l4)) else { return false };
    !partial.is_crc() && fold(pseudo + sum(&bytes[l4..start]) + u64::from(!field)) == 0xffff
}

/// The sum of the pseudo-header.
fn pseudo_header(packet: &IpPacket, l4: usize) -> Option<u64> {
    let len = packet.end?.checked_sub(l4)?;
    Some(packet.addresses? + u64::from(packet.proto) + len as u64)
}
