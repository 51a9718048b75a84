//! The header that the kernel puts before a frame on a TAP or a packet socket: a frame's [`Offload`], as bytes.
//!
//! `struct virtio_net_hdr` (VIRTIO 1.2 §5.1.6), little endian, which on this machine is the host's order: `flags` 0, `gso_type` 1, `hdr_len` 2..4, `gso_size` 4..6,
//! `csum_start` 6..8, `csum_offset` 8..10.

use crate::frame::TxFrame;
use wire::segment::UdpTunnel;
use wire::{Gso, Offload, PartialChecksum};

const _: () = assert!(cfg!(target_endian = "little"), "the header is in host order");

/// Its length without `num_buffers`.
pub(crate) const LEN: usize = 10;

/// Its length with what a TAP says of UDP tunnels (`struct virtio_net_hdr_v1_hash_tunnel`, VIRTIO 1.4 §5.1.6): the outer UDP header 20..22, the
/// inner IP header 22..24.
pub(crate) const TUNNEL_LEN: usize = 24;

const TUNNEL_SUMMED: u8 = 8;
const TUNNEL_V4: u8 = 0x20;
const TUNNEL_V6: u8 = 0x40;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// The header contradicts the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadHeader;

/// Where its fields stand in a number, from the lowest bit.
mod at {
    pub(super) const KIND: u32 = 8;
    pub(super) const HEADER_LEN: u32 = 16;
    pub(super) const GSO_SIZE: u32 = 32;
    pub(super) const START: u32 = 48;
    pub(super) const OFFSET: u32 = 64;
}

/// Reads the header of a frame of `frame_len` bytes.
///
/// # Errors
/// [`BadHeader`] for an unknown kind, a segment size of 0, a large frame without a checksum to complete, or a checksum field
/// outside the frame.
pub(crate) fn decode(header: &[u8; LEN], frame_len: usize) -> Result<Offload, BadHeader> {
    let mut all = [0; 16];
    all[..LEN].copy_from_slice(header);
    decode_number(u128::from_le_bytes(all), frame_len)
}

/// As [`decode`], from a TAP. Of a tunnel nothing is kept: the headers say all of it.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_tunnelled(
    header: &[u8; TUNNEL_LEN],
    frame_len: usize,
) -> Result<Offload, BadHeader> {
    let mut plain = *header.first_chunk::<LEN>().expect("it is longer");
    plain[1] &= !(TUNNEL_V4 | TUNNEL_V6);
    decode(&plain, frame_len)
}

/// As [`encode`], for a TAP; with what it must know of the UDP tunnel that the frame is in, if that is told.
pub(crate) fn encode_tunnelled(frame: &TxFrame<'_>, tunnel: Option<UdpTunnel>) -> [u8; TUNNEL_LEN] {
    let mut header = bytes(encode_number(frame));
    if let Some(UdpTunnel { outer_l4, inner_ip, is_v6, has_checksum }) = tunnel {
        header[0] |= if has_checksum { TUNNEL_SUMMED } else { 0 };
        header[1] |= if is_v6 { TUNNEL_V6 } else { TUNNEL_V4 };
        header[20..22].copy_from_slice(&outer_l4.to_le_bytes());
        header[22..24].copy_from_slice(&inner_ip.to_le_bytes());
    }
    header
}

/// As [`decode`], of a number whose lowest bytes are the header's, the first one lowest.
#[inline]
pub(crate) fn decode_number(header: u128, frame_len: usize) -> Result<Offload, BadHeader> {
    let (flags, kind) = (header as u8, (header >> at::KIND) as u8);
    let number = |at: u32| (header >> at) as u16;
    let checksum = (flags & NEEDS_CSUM != 0)
        .then(|| PartialChecksum { start: number(at::START), offset: number(at::OFFSET) });
    let gso = match kind & !GSO_ECN {
        GSO_NONE => Gso::None,
        GSO_TCPV4 => Gso::TcpV4,
        GSO_TCPV6 => Gso::TcpV6,
        GSO_UDP_L4 => Gso::Udp,
        _ => return Err(BadHeader),
    };
    if checksum.is_some_and(|at| usize::from(at.start) + usize::from(at.offset) + 2 > frame_len) {
        return Err(BadHeader);
    }
    let verified = flags & DATA_VALID != 0;
    if gso == Gso::None {
        return Ok(Offload { checksum, verified, ..Offload::default() });
    }
    let gso_size = number(at::GSO_SIZE);
    if gso_size == 0 || checksum.is_none() {
        return Err(BadHeader);
    }
    Ok(Offload { checksum, gso, gso_size, gso_ecn: kind & GSO_ECN != 0, verified })
}

/// Writes the header for a frame.
pub(crate) fn encode(frame: &TxFrame<'_>) -> [u8; LEN] {
    bytes(encode_number(frame))
}

/// Writes the header for a frame that is not large.
pub(crate) fn plain<const N: usize>(checksum: Option<PartialChecksum>) -> [u8; N] {
    bytes(plain_number(checksum))
}

/// As [`encode`], of a frame in this state that begins with `head`.
pub(crate) fn header(offload: &Offload, head: &[u8]) -> [u8; LEN] {
    bytes(number(offload, head))
}

/// Whether this is the header of a large UDP frame.
pub(crate) fn is_udp(header: &[u8; LEN]) -> bool {
    header[1] == GSO_UDP_L4
}

/// As [`encode`], for [`decode_number`].
#[inline]
pub(crate) fn encode_number(frame: &TxFrame<'_>) -> u128 {
    number(&frame.offload, frame.head)
}

#[inline]
fn number(offload: &Offload, head: &[u8]) -> u128 {
    let &Offload { checksum, gso, gso_size, gso_ecn, verified } = offload;
    let valid = if checksum.is_none() && verified { DATA_VALID } else { 0 };
    let header = plain_number(checksum) | u128::from(valid);
    let kind = match gso {
        Gso::None => return header,
        Gso::TcpV4 => GSO_TCPV4,
        Gso::TcpV6 => GSO_TCPV6,
        Gso::Udp => GSO_UDP_L4,
    };
    let kind = if gso_ecn { kind | GSO_ECN } else { kind };
    header
        | u128::from(kind) << at::KIND
        | u128::from(header_len(offload, head)) << at::HEADER_LEN
        | u128::from(gso_size) << at::GSO_SIZE
}

/// The header for a frame that is not large, likewise.
#[inline]
pub(crate) fn plain_number(checksum: Option<PartialChecksum>) -> u128 {
    let Some(PartialChecksum { start, offset }) = checksum else { return 0 };
    u128::from(NEEDS_CSUM) | u128::from(start) << at::START | u128::from(offset) << at::OFFSET
}

fn bytes<const N: usize>(header: u128) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..LEN].copy_from_slice(&header.to_le_bytes()[..LEN]);
    bytes
}

/// Bytes up to the payload: a hint that tells the kernel how much to keep in one piece.
fn header_len(offload: &Offload, head: &[u8]) -> u16 {
    const UDP: usize = 8;
    const TCP_DATA_OFFSET: usize = 12;
    let l4 = offload.checksum.map_or(0, |at| usize::from(at.start));
    let transport = match offload.gso {
        Gso::Udp => UDP,
        _ => head.get(l4 + TCP_DATA_OFFSET).map_or(0, |&byte| usize::from(byte >> 4) * 4),
    };
    (l4 + transport).min(head.len()) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Body;
    use proptest::prelude::*;

    fn offload() -> impl Strategy<Value = Offload> {
        let gso = prop_oneof![Just(Gso::None), Just(Gso::TcpV4), Just(Gso::TcpV6), Just(Gso::Udp)];
        (gso, 14_u16..100, 1_u16..9000, any::<bool>(), any::<bool>()).prop_map(
            |(gso, start, size, ecn, marked)| {
                let large = gso != Gso::None;
                let checksum = (large || marked).then_some(PartialChecksum { start, offset: 16 });
                let gso_size = if large { size } else { 0 };
                Offload {
                    checksum,
                    gso,
                    gso_size,
                    gso_ecn: large && ecn,
                    verified: !large && !marked,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn encode_then_decode_is_the_identity(offload in offload()) {
            let frame = TxFrame { head: &[0x50; 200], body: Body::default(), offload, tunnel_id: 0, tun_dst: 0 };
            prop_assert_eq!(decode(&encode(&frame), frame.len()), Ok(offload));
        }

        #[test]
        fn a_decoded_checksum_field_lies_inside_the_frame(header: [u8; LEN], len in 0_usize..70_000) {
            if let Ok(Offload { checksum: Some(at), .. }) = decode(&header, len) {
                prop_assert!(usize::from(at.start) + usize::from(at.offset) + 2 <= len);
            }
        }
    }

    #[test]
    fn a_large_frame_without_size_or_checksum_is_refused() {
        let mut header = [NEEDS_CSUM, GSO_TCPV4, 0, 0, 0, 0, 34, 0, 16, 0];
        assert_eq!(decode(&header, 100), Err(BadHeader));
        (header[0], header[4]) = (0, 1);
        assert_eq!(decode(&header, 100), Err(BadHeader));
    }
}
