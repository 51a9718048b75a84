//! A partial checksum that lost its mark.
//!
//! Linux hands frames between veth devices with checksums left to do, and XDP programs and AF_XDP sockets see the bytes without
//! the mark (`CHECKSUM_PARTIAL`). The bytes tell all the same: such a field holds the folded sum of the pseudo-header.

use crate::checksum::fold;
use crate::ip::{self, IpPacket, checksum_offset};
use crate::parse::chunk;
use crate::{Head, Layers, PartialChecksum, ip_proto};

/// The checksum that a source without marks left to do, if the frame looks so: TCP or UDP whose field holds the folded
/// pseudo-header sum, or SCTP whose field is 0.
///
/// Mistaking a complete checksum for a partial one is harmless: if it equals the pseudo-header's sum by chance, completing it
/// gives the same value again. A frame that was damaged on the way escapes the receiver's check that way once in 65536 times.
///
/// Fragments are never partial, and under a routing header the field's true destination is not known.
pub fn is_partial(head: &Head, layers: &Layers) -> Option<PartialChecksum> {
    if layers.l4 == 0 {
        return None;
    }
    let bytes = head.bytes();
    let packet = ip::packet(bytes, usize::from(layers.ip)).filter(|packet| !packet.is_fragment)?;
    let (start, l4) = (layers.l4, usize::from(layers.l4));
    if packet.proto == ip_proto::SCTP {
        let is_zero = chunk(bytes, l4 + usize::from(PartialChecksum::CRC_OFFSET)) == Some(&[0; 4]);
        return is_zero.then_some(PartialChecksum { start, offset: PartialChecksum::CRC_OFFSET });
    }
    let offset = match packet.proto {
        ip_proto::TCP | ip_proto::UDP => checksum_offset(packet.proto)?,
        _ => return None,
    };
    let field = u16::from_be_bytes(*chunk(bytes, l4 + usize::from(offset))?);
    (field == pseudo_header(&packet, l4)?).then_some(PartialChecksum { start, offset })
}

/// The folded sum of the pseudo-header.
fn pseudo_header(packet: &IpPacket, l4: usize) -> Option<u16> {
    let len = packet.end?.checked_sub(l4)?;
    Some(fold(packet.addresses? + u64::from(packet.proto) + len as u64))
}
