//! The header before a frame in a guest's ring, checked against what its driver negotiated.
//!
//! As `vnet`, and `num_buffers` 10..12, which is the ring's affair (VIRTIO 1.2 §5.1.6).

use crate::frame::TxFrame;
use crate::vnet;
use vhost::{Features, NetHeader};
use wire::{DropReason, Gso, Offload};

/// Bits of `flags`, and of `flags` and `gso_type`: without any there is nothing more to say.
const FLAGS: u128 = 0xff;
const FLAGS_AND_KIND: u128 = 0xffff;

/// Whether a driver says nothing of a frame.
#[inline]
pub(super) fn is_plain(header: NetHeader) -> bool {
    header.0 & FLAGS_AND_KIND == 0
}

/// What a driver says of a frame of `frame_len` bytes.
///
/// # Errors
/// The header contradicts the frame, or uses what was not negotiated (VIRTIO 1.2 §5.1.6.2.1).
pub(super) fn decode(
    header: NetHeader,
    frame_len: usize,
    features: Features,
) -> Result<Offload, DropReason> {
    if is_plain(header) {
        return Ok(Offload::default());
    }
    let offload = vnet::decode_number(header.0, frame_len).map_err(|_| DropReason::BadSource)?;
    // Only a device vouches for checksums (§5.1.6.2.1).
    let offload = Offload { verified: false, ..offload };
    if features.contains(needs(&offload, &SENT)) { Ok(offload) } else { Err(DropReason::BadSource) }
}

/// What to say to a driver that takes the frame as it is; `None` if this one does not.
pub(super) fn encode(frame: &TxFrame<'_>, features: Features) -> Option<NetHeader> {
    if !takes(features, frame) {
        return None;
    }
    let header = vnet::encode_number(frame);
    // Without GUEST_CSUM there are no flags (§5.1.6.4.1).
    let allowed = if features.contains(Features::GUEST_CSUM) { FLAGS } else { 0 };
    Some(NetHeader(header & (!FLAGS | allowed)))
}

/// Whether a driver takes the frame as it is (VIRTIO 1.2 §5.1.6.4.1); no driver completes a CRC32c.
fn takes(features: Features, frame: &TxFrame<'_>) -> bool {
    features.contains(needs(&frame.offload, &TAKEN)) && !crate::plain::is_needed(frame)
}

/// The features for each kind of state.
struct Names {
    checksum: Features,
    tcp_v4: Features,
    tcp_v6: Features,
    ecn: Features,
    udp: Features,
}

/// For frames that a driver sends.
const SENT: Names = Names {
    checksum: Features::CSUM,
    tcp_v4: Features::HOST_TSO4,
    tcp_v6: Features::HOST_TSO6,
    ecn: Features::HOST_ECN,
    udp: Features::HOST_USO,
};

/// For frames that it takes.
const TAKEN: Names = Names {
    checksum: Features::GUEST_CSUM,
    tcp_v4: Features::GUEST_TSO4,
    tcp_v6: Features::GUEST_TSO6,
    ecn: Features::GUEST_ECN,
    // The state does not tell them apart, and drivers have both or none.
    udp: Features::GUEST_USO4.union(Features::GUEST_USO6),
};

fn needs(offload: &Offload, names: &Names) -> Features {
    let checksum = if offload.checksum.is_some() { names.checksum } else { Features::empty() };
    let ecn = if offload.gso_ecn { names.ecn } else { Features::empty() };
    let gso = match offload.gso {
        Gso::None => Features::empty(),
        Gso::TcpV4 => names.tcp_v4,
        Gso::TcpV6 => names.tcp_v6,
        Gso::Udp => names.udp,
    };
    checksum | ecn | gso
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Body;
    use vhost::HEADER_MAX;
    use wire::PartialChecksum;

    /// Flags, kind, hdr_len, gso_size, csum_start 34, csum_offset 16.
    const LARGE: [u8; HEADER_MAX] = [1, 1, 54, 0, 0xb4, 5, 34, 0, 16, 0, 0, 0];

    #[test]
    fn what_was_not_negotiated_is_refused() {
        let with = |features| decode(NetHeader::of(&LARGE), 3000, features);
        assert_eq!(with(Features::CSUM | Features::HOST_TSO4).unwrap().gso, Gso::TcpV4);
        for too_few in [Features::CSUM, Features::HOST_TSO4, Features::CSUM | Features::HOST_TSO6] {
            assert_eq!(with(too_few), Err(DropReason::BadSource));
        }
    }

    #[test]
    fn a_checksum_outside_the_frame_is_refused() {
        for (start, offset, len, verdict) in
            [(34, 16, 52, true), (34, 16, 51, false), (0xffff, 0xffff, 3000, false)]
        {
            let mut bytes = LARGE;
            bytes[1] = 0;
            bytes[6..8].copy_from_slice(&u16::to_le_bytes(start));
            bytes[8..10].copy_from_slice(&u16::to_le_bytes(offset));
            assert_eq!(
                decode(NetHeader::of(&bytes), len, Features::CSUM).is_ok(),
                verdict,
                "{start}+{offset} in {len}"
            );
        }
    }

    #[test]
    fn a_driver_cannot_vouch_for_checksums() {
        assert_eq!(decode(NetHeader(2), 60, Features::all()), Ok(Offload::default()));
    }

    #[test]
    fn a_frame_is_taken_as_it_is_only_by_a_driver_that_can() {
        let checksum = Some(PartialChecksum { start: 34, offset: 16 });
        let offload = Offload { checksum, gso: Gso::TcpV4, gso_size: 1448, ..Offload::default() };
        let mut head = [0; 60];
        (head[12], head[14], head[16], head[23]) = (8, 0x45, 16, 6); // IPv4 of five words and 4096 bytes, TCP
        let frame =
            TxFrame { head: &head, body: Body::default(), offload, tunnel_id: 0, tun_dst: 0 };
        assert!(takes(Features::GUEST_CSUM | Features::GUEST_TSO4, &frame));
        assert!(!takes(Features::GUEST_CSUM, &frame));
        let crc = Some(PartialChecksum { start: 34, offset: 8 });
        let sctp = TxFrame { offload: Offload { checksum: crc, ..Offload::default() }, ..frame };
        assert!(!takes(Features::all(), &sctp));
    }

    #[test]
    fn without_guest_csum_there_are_no_flags() {
        let offload = Offload { verified: true, ..Offload::default() };
        let frame =
            TxFrame { head: &[0; 60], body: Body::default(), offload, tunnel_id: 0, tun_dst: 0 };
        assert_eq!(encode(&frame, Features::empty()), Some(NetHeader::default()));
        assert_eq!(encode(&frame, Features::GUEST_CSUM), Some(NetHeader(2)));
    }
}
