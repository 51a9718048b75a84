//! Frames longer than IP can say (Linux "BIG TCP"): as large frames that are not.
//!
//! Over IPv4 such a frame says a length of 0. Over IPv6 it is a jumbogram: 0 too, and the length in a hop-by-hop option (RFC 2675), which frames of
//! an ordinary length must not have.

use super::{Segments, plan};
use crate::checksum::BadOffload;
use crate::parse::chunk;
use crate::{Gso, HEAD_MAX, Head, Offload, ip_proto, nested};

/// A hop-by-hop header with the jumbo option alone: next header, length 0, type 0xc2, length 4, then the jumbogram's.
const JUMBO: [u8; 3] = [0, 0xc2, 4];
const IPV6: usize = 40;

/// Removes the jumbo option from the head of a frame in this state.
pub fn remove_jumbo(head: &mut Head, offload: &mut Offload) {
    const LEN: usize = 8;
    let bytes = head.bytes();
    let Some(ip) = nested::ip_in_frame(bytes, 0) else { return };
    let Some(header) = chunk::<{ IPV6 + LEN }>(bytes, ip) else { return };
    let is_jumbo = header[0] >> 4 == 6 && header[4..6] == [0, 0];
    if !is_jumbo || header[6] != ip_proto::HOP_BY_HOP || header[IPV6 + 1..IPV6 + 4] != JUMBO {
        return;
    }
    let next = header[IPV6];
    if head.close(ip + IPV6, LEN).is_ok() {
        head.bytes_mut()[ip + 6] = next;
        if let Some(checksum) = &mut offload.checksum {
            checksum.start = checksum.start.saturating_sub(LEN as u16);
        }
    }
}

/// Plans the cut of a TCP frame of `total_len` bytes, of whatever length, into large frames of the same segments.
///
/// # Errors
/// As [`plan`].
pub fn split<'a>(
    head: &'a [u8],
    total_len: usize,
    offload: &Offload,
) -> Result<Segments<'a>, BadOffload> {
    let is_tcp = matches!(offload.gso, Gso::TcpV4 | Gso::TcpV6);
    let size = usize::from(offload.gso_size);
    if !is_tcp || size == 0 {
        return Err(BadOffload);
    }
    // All headers lie in a head, so this much payload fits whatever they are.
    let ids = ((usize::from(u16::MAX) - HEAD_MAX) / size).max(1);
    let pieces = plan(head, total_len, &Offload { gso_size: (ids * size) as u16, ..*offload })?;
    Ok(Segments { ids, ..pieces })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Frame, Ipv4, Ipv6, Tcp};
    use crate::checksum::complete;

    const PAYLOAD: usize = 180_000;
    const SIZE: u16 = 1428;

    /// Every frame that a frame in this state ends as.
    fn cut(frame: &[u8], segments: &Segments<'_>) -> Vec<Vec<u8>> {
        let one = |index| {
            let mut out = vec![0; segments.header_len()];
            segments.write_headers(index, &mut out);
            out.extend(&frame[segments.payload(index)]);
            out
        };
        (0..segments.count()).map(one).collect()
    }

    fn done(frame: &[u8], offload: &Offload) -> Vec<Vec<u8>> {
        let segments = plan(frame, frame.len(), offload).expect("it can be cut");
        let mut all = cut(frame, &segments);
        all.iter_mut().for_each(|one| complete(one, segments.checksum()).expect("a segment"));
        all
    }

    fn big(frame: Frame, gso: Gso) -> (Vec<u8>, Offload) {
        let data: Vec<u8> = (0..PAYLOAD).map(|at| (at * 7 + at / 256) as u8).collect();
        let tcp = Tcp { flags: 0x98, ..Tcp::default() };
        let (frame, partial) = frame.tcp(tcp).payload(&data).finish_partial().expect("TCP");
        let checksum = Some(partial);
        (frame, Offload { checksum, gso, gso_size: SIZE, ..Offload::default() })
    }

    #[test]
    fn a_frame_longer_than_ip_can_say_ends_as_the_same_segments_as_if_it_could() {
        let ethernet = || Frame::ethernet([2; 6], [4; 6]);
        let v4 = big(ethernet().ipv4(Ipv4::default()), Gso::TcpV4);
        let v6 = big(ethernet().vlan(0x8100, 7).ipv6(Ipv6::default()), Gso::TcpV6);
        for (frame, offload) in [v4, v6] {
            let wanted = done(&frame, &offload);
            let pieces = split(&frame, frame.len(), &offload).expect("it can be split");
            assert!(pieces.count() == 3 && pieces.payload(0).len() + 100 < 65_536);
            let got: Vec<_> =
                cut(&frame, &pieces).iter().flat_map(|piece| done(piece, &offload)).collect();
            assert!(got == wanted, "{} and {} segments", got.len(), wanted.len());
        }
    }

    #[test]
    fn a_jumbo_option_goes_and_other_options_stay() {
        let with = |rest: &[u8]| {
            let frame = Frame::ethernet([2; 6], [4; 6]).ipv6(Ipv6::default());
            big(frame.extension(ip_proto::HOP_BY_HOP, rest), Gso::TcpV6)
        };
        let (mut frame, mut offload) = with(&[0, 0xc2, 4, 0, 2, 0xbf, 0x20]);
        frame[18..20].fill(0);
        let mut head = Head::copy_of(&frame);
        let start = offload.checksum.expect("a sum").start;
        remove_jumbo(&mut head, &mut offload);
        assert_eq!(offload.checksum.expect("a sum").start, start - 8);
        let plain = big(Frame::ethernet([2; 6], [4; 6]).ipv6(Ipv6::default()), Gso::TcpV6).0;
        assert_eq!(head.bytes()[20..100], plain[20..100]);
        let (mut frame, mut offload) = with(&[0, 5, 2, 0, 0, 1, 0]);
        frame[18..20].fill(0);
        let mut head = Head::copy_of(&frame);
        remove_jumbo(&mut head, &mut offload);
        assert_eq!(head.bytes(), &frame[..256]);
    }
}
