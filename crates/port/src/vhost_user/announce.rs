//! A guest that has moved here says nothing by itself for a while, so its front-end asks us to announce it (`VHOST_USER_SEND_RARP`): a frame from
//! its address, as if it had sent one, makes every switch on the way learn where it is now.

use crate::batch::{BodyAt, Slot};
use wire::Offload;

/// Fills a slot with a reverse ARP request for the guest's own address (RFC 903), to all, padded to the least length of a frame.
pub(super) fn fill(slot: &mut Slot, mac: [u8; 6]) {
    /// Ethernet, IPv4, lengths of their addresses, "request reverse" (RFC 903).
    const REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 3];
    let nowhere = [0; 4];
    let parts = [&[0xff; 6][..], &mac, &[0x80, 0x35], &REQUEST, &mac, &nowhere, &mac, &nowhere];
    let frame = parts.concat();
    let area = &mut slot.head.area()[..LEN];
    area.fill(0);
    area[..frame.len()].copy_from_slice(&frame);
    slot.head.set_len(LEN);
    slot.body = BodyAt::Nowhere;
    slot.offload = Offload::default();
}

/// Bytes of the shortest Ethernet frame, without its FCS.
const LEN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::RxBatch;

    #[test]
    fn the_frame_names_the_guest_as_sender_and_as_the_one_asked_for() {
        let mut batch = RxBatch::default();
        let slot = &mut batch.free()[0];
        let mac = [2, 0, 0, 0, 0, 9];
        fill(slot, mac);
        let bytes = slot.head.bytes();
        assert_eq!((bytes.len(), slot.frame_len()), (60, 60));
        assert_eq!(
            [&bytes[..6], &bytes[6..12], &bytes[22..28], &bytes[32..38]],
            [&[0xff; 6], &mac, &mac, &mac]
        );
        assert_eq!(bytes[12..14], [0x80, 0x35]);
    }
}
