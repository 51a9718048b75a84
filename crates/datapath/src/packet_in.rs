//! The bytes of a packet-in.

use port::Body;
use wire::{Offload, checksum};

/// The frame's first `max_len` bytes (0xffff: all) in memory of their own, with every checksum in place.
///
/// A controller has nobody to complete a checksum for it. A partial one is summed over the whole frame, also over what is cut off
/// then; a large (GSO) frame is treated as the one long packet that its headers describe, so that the controller sees what
/// the guest sent. A checksum whose place lies outside the frame is left as it is: the controller gets the frame as it came.
pub(crate) fn bytes(head: &[u8], body: Body<'_>, offload: &Offload, max_len: u16) -> Vec<u8> {
    let total = head.len() + body.len();
    let wanted = if max_len == u16::MAX { total } else { total.min(usize::from(max_len)) };
    let Some(partial) = offload.checksum else { return first(head, body, wanted) };
    let mut data = first(head, body, total);
    let _ = checksum::complete(&mut data, partial);
    data.truncate(wanted);
    data
}

fn first(head: &[u8], body: Body<'_>, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    let from_head = len.min(head.len());
    data[..from_head].copy_from_slice(&head[..from_head]);
    body.copy_to(0, &mut data[from_head..]);
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::PartialChecksum;

    #[test]
    fn head_and_body_are_joined_and_cut() {
        let (head, body) = ([1, 2, 3], [4, 5]);
        let whole = |max_len| bytes(&head, Body::private(&body), &Offload::default(), max_len);
        assert_eq!(whole(u16::MAX), [1, 2, 3, 4, 5]);
        assert_eq!(whole(4), [1, 2, 3, 4]);
        assert_eq!(whole(2), [1, 2]);
        assert_eq!(whole(0), [0; 0]);
    }

    #[test]
    fn a_partial_checksum_counts_the_bytes_that_are_cut_off() {
        let offload = Offload {
            checksum: Some(PartialChecksum { start: 0, offset: 0 }),
            ..Offload::default()
        };
        let data = bytes(&[0, 0, 0x12, 0x34], Body::private(&[0x56, 0x78]), &offload, 4);
        assert_eq!(data, [&(!(0x1234u16 + 0x5678)).to_be_bytes()[..], &[0x12, 0x34]].concat());
    }

    #[test]
    fn a_checksum_outside_the_frame_changes_nothing() {
        let offload = Offload {
            checksum: Some(PartialChecksum { start: 90, offset: 6 }),
            ..Offload::default()
        };
        assert_eq!(bytes(&[1, 2, 3], Body::default(), &offload, u16::MAX), [1, 2, 3]);
    }
}
